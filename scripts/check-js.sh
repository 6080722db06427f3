#!/bin/sh
# The types of the dashboard's modules (JSDoc), checked by TypeScript, which npm brings into the user's cache.
# Without npm or its registry this says so and passes; with TORCHGAUGE_REQUIRE_NPM set, as in our own workflow, it fails.
# Argument: a Python (python3 unless given).
set -u
version=5.9.3
integrity=sha512-jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw==
here=$(dirname "$0")
python=${1:-python3}
if ! command -v node >/dev/null || ! tsc=$("$python" "$here/npm_package.py" typescript "$version" "$integrity"); then
    echo "the types of the dashboard's modules are not checked: that needs node, npm and its registry" >&2
    [ -z "${TORCHGAUGE_REQUIRE_NPM:-}" ] && exit 0
    exit 1
fi
exec node "$tsc/lib/tsc.js" --noEmit --allowJs --checkJs --strict --noUnusedLocals --noImplicitReturns \
    --noFallthroughCasesInSwitch --target es2023 --module esnext --moduleResolution bundler \
    --lib es2023,dom,dom.iterable "$here"/../src/torchgauge/dashboard/static/*.js
