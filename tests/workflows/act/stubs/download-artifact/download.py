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


def numbered(here, ids):
    """The names of the artifacts with the numbers ``ids``; those of a replaced one are nobody's."""
    numbers = {each.strip() for each in ids.split(",") if each.strip()}
    if not all(each.isdecimal() for each in numbers):
        fail(f"Invalid artifact ID in {ids!r}. Must be a number.")
    found = []
    for name, path in sorted(here.items()):
        with zipfile.ZipFile(path) as archive:
            found += [name] if archive.comment.decode() in numbers else []
    return found or fail("None of the provided artifact IDs were found")


def main():
    """Download, or refuse as the service does."""
    name, pattern, run = os.environ["NAME"], os.environ["PATTERN"], os.environ["RUN"]
    if run != os.environ["GITHUB_RUN_ID"] and not os.environ["TOKEN"]:
        fail("artifacts of another run need github-token")
    here = {path.stem: path for path in (Path(os.environ["ACT_ARTIFACTS"]) / run).glob("*.zip")}
    ids = os.environ["IDS"]
    if name and ids:
        fail("Inputs 'name' and 'artifact-ids' cannot be used together. Please specify only one.")
    if name and name not in here:
        fail(f"unable to download artifact(s): artifact not found for name: {name}")
    # Without any of the three, also with an empty list of numbers, everything comes.
    matching = [each for each in sorted(here) if fnmatch.fnmatchcase(each, pattern or "*")]
    chosen = [name] if name else numbered(here, ids) if ids else matching
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
