#!/bin/sh
# The demo: real models on every device present, then the dashboard. Arguments: torchgauge, store, site.
# Two stages, so that a number and a dashboard are there soon: first a small model of each suite, then the rest.
# A case that fails is a result, not a broken demo: only usage errors and interrupts stop it.
set -u
torchgauge=$1 store=$2 site=$3
folder=$(cd "$(dirname "$0")" && pwd)
first='/^(resnet18|ElectraForCausalLM)$/'
rest='/^(deit_tiny_patch16_224.fb_in1k|lcnet_050|mobilenetv3_large_100|DistilBertForMaskedLM|DistillGPT2|T5Small)$/'

measure() {
    "$torchgauge" run timm huggingface --models "$1" --device all --config eager,inductor --mode inference \
        --store "$store" --measure-seconds 1 --durations "$folder/demo-durations.json"
    code=$?
    case $code in
        0 | 1 | 3) ;;
        *) exit $code ;;
    esac
}

build() {
    echo
    "$torchgauge" dashboard build "$store" --out "$site" || exit $?
    echo "The dashboard is in $(cd "$site" && pwd)/index.html"
}

"$torchgauge" devices || exit $?
echo
measure "$first"
build
echo "Open that file in a browser: it shows what was measured so far. More models follow; reload the page after that."
echo
measure "$rest"
build
echo "Reload the page. With \`$torchgauge dashboard serve $site\` it can do more: queries, orders and charts."
echo "Every number there carries the command that reproduces it; \`$torchgauge results list --store $store\` lists the runs."
