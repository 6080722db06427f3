#!/usr/bin/env bash
# Put torchgauge on the path of the steps that follow, and every cache into the job's own folder: what one job
# compiled or downloaded must not be what the next one runs. What is kept on purpose has a name: --compile-cache.
set -euo pipefail
# Before pip runs: a wheel that it built, or a file that ends in .pth in the user's site, is code too.
for variable in \
  "PYTHONNOUSERSITE=1" \
  "XDG_CACHE_HOME=$RUNNER_TEMP/cache" \
  "PIP_CACHE_DIR=$RUNNER_TEMP/cache/pip" \
  "TORCHINDUCTOR_CACHE_DIR=$RUNNER_TEMP/cache/inductor" \
  "TRITON_CACHE_DIR=$RUNNER_TEMP/cache/triton"; do
  export "${variable?}"
  printf '%s\n' "$variable" >>"$GITHUB_ENV"
done
if [ -z "${PYTHON:-}" ]; then
  # The torch that a container brings stays visible; beside a token that writes, nothing unlooked-at is.
  sees="--system-site-packages"
  if [ -n "${LOCKED:-}" ]; then sees="--clear"; fi
  python3 -m venv "$sees" "$RUNNER_TEMP/torchgauge"
  PYTHON="$RUNNER_TEMP/torchgauge/bin/python"
  PATH="$(dirname "$PYTHON"):$PATH"
  if [ -n "${INSTALL:-}" ]; then bash -euo pipefail -c "$INSTALL"; fi
  if [ -n "${LOCKED:-}" ]; then
    "$PYTHON" -m pip install --disable-pip-version-check --require-hashes -r "$LOCKED"
    "$PYTHON" -m pip install --disable-pip-version-check --no-deps --no-build-isolation "$TORCHGAUGE"
  else
    "$PYTHON" -m pip install --disable-pip-version-check "$TORCHGAUGE"
  fi
fi
dirname "$PYTHON" >>"$GITHUB_PATH"
printf 'python=%s\n' "$PYTHON" >>"$GITHUB_OUTPUT"
