#!/bin/sh
# The demo: real models on every device present, then the dashboard. Arguments: torchgauge, store, site.
# Two stages, so that a number is there in a minute and a dashboard in three: two small models on the host, which
# is always there, then the rest on every device. All that a number needs is done in both; only models are fewer.
# A case that fails is a result, not a broken demo: only usage errors and interrupts stop it.
set -u
torchgauge=$1 store=$2 site=$3

measure() {
    "$torchgauge" run timm huggingface --device "$1" --models "$2" --config eager,inductor --mode inference \
        --store "$store" --measure-seconds 1
    code=$?
    case $code in
        0 | 1 | 3) ;;
        *) exit $code ;;
    esac
    echo
}

build() {
    "$torchgauge" dashboard build "$store" --out "$site" || exit $?
    echo "The dashboard is in $(cd "$site" && pwd)/index.html"
}

"$torchgauge" devices || exit $?
echo
measure cpu resnet18,ElectraForCausalLM
build
echo "Open that file in a browser; it holds what was measured so far. More models follow: reload the page then."
echo
measure all deit_tiny_patch16_224.fb_in1k,lcnet_050,DistilBertForMaskedLM,DistillGPT2
build
echo "Reload the page. For queries, orders and charts type: $torchgauge dashboard serve $site"
echo "Every number there carries the command that reproduces it."
echo "The runs: $torchgauge results list --store $store"
