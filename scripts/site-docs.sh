#!/bin/sh
# Build the documentation's site into the folder $1 with the pinned generator, in an environment of its own that
# is gone afterwards: for a job that has nothing but Python. On one's own machine `make docs` does it.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv"
python="$scratch/venv/bin/python"
"$python" -m pip install --disable-pip-version-check --quiet -c "$here/constraints.txt" "$here[docs]"
"$python" "$here/docs/sphinx/build.py" "$1"
