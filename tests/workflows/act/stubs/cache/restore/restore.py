"""What actions/cache/restore does, from ``ACT_CACHES``: the key itself, else the newest with a beginning."""

import os
import tarfile
from pathlib import Path


def main():
    """Restore the first that fits; finding none is no error."""
    store, keys = Path(os.environ["ACT_CACHES"]), os.environ["KEYS"].splitlines()
    for prefix in (os.environ["KEY"], *(line.strip() for line in keys if line.strip())):
        found = [path for path in store.glob("*.tar") if path.stem.startswith(prefix)]
        if found:
            newest = max(found, key=lambda path: path.stat().st_mtime_ns)
            with tarfile.open(newest) as tar:
                tar.extractall("/", filter="fully_trusted")
            print(f"Cache restored from key: {newest.stem}")
            return
    print("Cache not found for input keys: " + ", ".join(keys))


if __name__ == "__main__":
    main()
