"""What actions/download-artifact does, from ``ACT_ARTIFACTS/RUN_ID/NAME.zip``."""

import fnmatch
import os
import sys
import zipfile
from pathlib import Path


def fail(message):
    """End as the real action ends: red, with an annotation."""
    print(f"::error::{message}")
    sys.exit(1)


def main():
    """Download, or refuse as the service does."""
    name, pattern, run = os.environ["NAME"], os.environ["PATTERN"], os.environ["RUN"]
    if run != os.environ["GITHUB_RUN_ID"] and not os.environ["TOKEN"]:
        fail("artifacts of another run need github-token")
    here = {path.stem: path for path in (Path(os.environ["ACT_ARTIFACTS"]) / run).glob("*.zip")}
    if name and name not in here:
        fail(f"unable to download artifact(s): artifact not found for name: {name}")
    chosen = [name] if name else [each for each in sorted(here) if fnmatch.fnmatchcase(each, pattern or "*")]
    where = Path(os.environ["WHERE"] or os.environ["GITHUB_WORKSPACE"])
    # Where exactly one artifact matches, the real action makes no folder of its name either.
    flat = bool(name) or os.environ["MERGE"] == "true" or len(chosen) == 1
    for each in chosen:
        target = where if flat else where / each
        target.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(here[each]) as archive:
            archive.extractall(target)
    print(f"total of {len(chosen)} artifact(s) downloaded")


main()
