#!/bin/bash
# Half an hour on an accelerator that torchgauge has not run on yet: every step's store and log lie in OUT.
#
#   DEVICE=cuda OUT=folder PYTHON=python3 benchmarks/accelerator_day.sh STEP...
#
# No installation is needed: PYTHONPATH has torchgauge's src folder and the packages that PYTHON lacks.
# TORCHBENCH is a checkout of pytorch/benchmark, for the step `peer` alone.
here=$(cd "$(dirname "$0")" && pwd)
device=${DEVICE:-cuda} out=${OUT:?a folder} python=${PYTHON:-python3}
export PYTHONPATH=$here/../src:$here/accelerator_suite${PYTHONPATH:+:$PYTHONPATH} HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
mkdir -p "$out/stores"

# Usage: step NAME SECONDS COMMAND...; prints the end of the command's output, its exit code and duration.
step() {
    local name=$1 limit=$2 began=$SECONDS code
    shift 2
    timeout --signal INT --kill-after 30 "$limit" "$@" >"$out/$name.log" 2>&1
    code=$?
    echo "=== $name: exit $code, $((SECONDS - began)) s: $*"
    tail -n "${LINES_SHOWN:-25}" "$out/$name.log" | cut -c1-220
}
gauge() {
    local name=$1 limit=$2
    shift 2
    step "$name" "$limit" "$python" -m torchgauge "$@" --store "$out/stores/$name"
}

look() {
    step machine 60 "$python" -c "import torch, timm, transformers, os
print(torch.__version__, timm.__version__, transformers.__version__, torch.get_device_module('$device').device_count(), os.cpu_count())"
    step devices 120 "$python" -m torchgauge devices
    gauge doctor 240 doctor --device "$device"
}
truth() { step truth 240 "$python" "$here/accelerator_truth.py" "$device" --turns "${TURNS:-1}"; }
check() { gauge check 300 check --device "$device"; }
ops() { gauge ops 300 ops --device "$device" --dtype float32,bfloat16; }
smoke() {
    gauge smoke "${SECONDS_OF_SMOKE:-500}" run timm huggingface ${SMOKE:---tier smoke} --device "$device" --mode inference,training \
        --config eager,inductor --dtype float32,amp
}
full() {
    gauge full "${SECONDS_OF_FULL:-240}" run timm huggingface --models "${MODELS:-resnet18,vit_base_patch16_224,BertForMaskedLM,DistillGPT2}" \
        --size full --batch-profile pytorch --device "$device" --mode inference,training --config eager,inductor \
        --dtype amp
}
peer() {
    step peer "${SECONDS_OF_PEER:-400}" "$python" "$here/campaign.py" --torchbench "${TORCHBENCH:?a checkout}" --work "$out/peer" \
        --device "$device" --models "${MODELS:-mobilenetv2_100,repvgg_a2,deit_tiny_patch16_224.fb_in1k}" \
        --variants first-night --chunk 3 --threads 2
}
same() {
    gauge same "${SECONDS_OF_AB:-200}" ab accelerator --models encoder --config eager --mode inference --device "$device" \
        --base-env SLOWED_BY=0 --head-env SLOWED_BY=0
}
slowed() {
    gauge slowed "${SECONDS_OF_AB:-200}" ab accelerator --models encoder --config eager --mode inference --device "$device" \
        --base-env SLOWED_BY=0 --head-env SLOWED_BY=0.0417
}
sides() { gauge sides 300 run timm huggingface --tier smoke --device "cpu,$device" --mode inference --config eager; }

for name in "$@"; do "$name"; done
