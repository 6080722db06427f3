#!/bin/sh
# The demo: real models on every device present, then the dashboard. Arguments: torchgauge, store, site.
# A case that fails is a result, not a broken demo: only usage errors and interrupts stop it.
set -u
torchgauge=$1 store=$2 site=$3
"$torchgauge" devices || exit $?
"$torchgauge" run timm huggingface --tier smoke --device all --config eager,inductor --mode inference \
    --store "$store" --measure-seconds 1
code=$?
case $code in
    0 | 1 | 3) ;;
    *) exit $code ;;
esac
"$torchgauge" dashboard build "$store" --out "$site" || exit $?
echo
echo "The dashboard is in $(cd "$site" && pwd)/index.html"
echo "Type: $torchgauge dashboard serve $site"
echo "or open that file in a browser, where it is complete but for what scripts add: queries, orders and charts."
echo "Every number there carries the command that reproduces it; \`$torchgauge results list --store $store\` lists the runs."
