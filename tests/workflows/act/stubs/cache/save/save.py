"""What actions/cache/save does, into ``ACT_CACHES/KEY.tar``: a key is written once; trouble is a warning."""

import os
import sys
import tarfile
from pathlib import Path

MOST_KEY = 512


def main():
    """Save, or warn as the real action does; a key that is not valid is an error."""
    key = os.environ["KEY"]
    if not key or len(key) > MOST_KEY or "," in key:
        print(f"::error::the key is not valid: {key!r}")
        sys.exit(1)
    paths = [Path(line.strip()).expanduser() for line in os.environ["FILES"].splitlines() if line.strip()]
    there = [path for path in paths if path.exists()]
    target = Path(os.environ["ACT_CACHES"]) / f"{key}.tar"
    if not there:
        print("::warning::Path Validation Error: the path(s) to cache do not exist, so nothing is saved")
    elif target.exists():
        print(f"::warning::Failed to save: unable to reserve cache with key {key}")
    else:
        with tarfile.open(target, "w") as tar:
            for path in there:
                tar.add(path, arcname=str(path).lstrip("/"))
        print(f"Cache saved with key: {key}")


if __name__ == "__main__":
    main()
