"""What pypa/gh-action-pypi-publish does, into ``ACT_INDEX``: only distributions, and each name only once."""

import os
import sys
from pathlib import Path


def fail(message):
    """End as the real action ends: red, with an annotation."""
    print(f"::error::{message}")
    sys.exit(1)


def main():
    """Publish every file of the folder, or none."""
    packages, index = Path(os.environ["PACKAGES"]), Path(os.environ["ACT_INDEX"])
    files = sorted(packages.iterdir()) if packages.is_dir() else []
    if not files:
        fail(f"no distribution packages were found in {packages}")
    for path in files:
        if not path.name.endswith((".whl", ".tar.gz")):
            fail(f"{path.name}: unknown distribution format")
        if (index / path.name).exists():
            fail(f"400 File already exists ({path.name!r})")
    index.mkdir(parents=True, exist_ok=True)
    for path in files:
        (index / path.name).write_bytes(path.read_bytes())


main()
