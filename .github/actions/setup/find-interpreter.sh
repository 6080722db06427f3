#!/usr/bin/env bash
# The interpreter that the workflow or the runner names, as the output `python`; empty where neither does.
set -euo pipefail
found="${PYTHON:-${TORCHGAUGE_PYTHON:-}}"
if [ -n "$found" ] && ! PYTHONNOUSERSITE=1 "$(dirname "$found")/torchgauge" --version >&2; then
  echo "::error::there is no torchgauge beside $found; install it there, or name no interpreter"
  exit 2
fi
printf 'python=%s\n' "${found//$'\n'/}" >>"$GITHUB_OUTPUT"
