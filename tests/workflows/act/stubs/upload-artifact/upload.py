"""What actions/upload-artifact does, into ``ACT_ARTIFACTS/RUN_ID/NAME.zip``.

An artifact has a number of its own, which stands in the comment of its zip. ``ACT_LOSE`` is a fault of tests:
artifacts whose name fits that pattern are taken and then lost.
"""

import fnmatch
import glob
import os
import re
import secrets
import sys
import zipfile
from pathlib import Path

MOST_PER_RUN = 500


def fail(message):
    """End as the real action ends: red, with an annotation."""
    print(f"::error::{message}")
    sys.exit(1)


def found(lines, hidden):
    """The files that ``lines`` name, and the folder from which their names in the zip are counted."""
    roots, files = [], []
    for line in lines:
        matched = [Path(text) for text in glob.glob(line, recursive=True, include_hidden=hidden)]  # noqa: PTH207
        roots += [path if path.is_dir() else path.parent for path in matched]
        for path in matched:
            files += [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    files = sorted({path.absolute() for path in files})
    if not files:
        return [], Path()
    root = Path(os.path.commonpath([str(path.absolute()) for path in roots]))
    seen = [
        each for each in files if hidden or not any(part[0] == "." for part in each.relative_to(root).parts)
    ]
    return seen, root


def main():
    """Upload, or refuse as the service does."""
    name, choice = os.environ["NAME"], os.environ["NO_FILES"]
    if not name or re.search(r'["<>|*?:\r\n\\/]', name):
        fail(f"the artifact name is not valid: {name!r}")
    if choice not in ("warn", "error", "ignore"):
        fail(f"unrecognized if-no-files-found input: {choice}")
    if not re.fullmatch(r"[0-9]|[1-8][0-9]|90", os.environ["RETENTION"]):
        fail("retention-days must be 1 to 90")
    lines = [line.strip() for line in os.environ["FILES"].splitlines() if line.strip()]
    files, root = found(lines, os.environ["HIDDEN"] == "true")
    if not files:
        message = f"no files were found with the provided path: {' '.join(lines)}"
        if choice == "error":
            fail(message)
        print(f"::warning::{message}" if choice == "warn" else message)
        return
    store = Path(os.environ["ACT_ARTIFACTS"]) / os.environ["GITHUB_RUN_ID"]
    store.mkdir(parents=True, exist_ok=True)
    if len(list(store.iterdir())) >= MOST_PER_RUN:
        fail("too many artifacts")
    target = store / f"{name}.zip"
    if os.environ["OVERWRITE"] == "true":
        target.unlink(missing_ok=True)
    try:
        stream = target.open("xb")
    except FileExistsError:
        fail("Conflict: an artifact with this name already exists on the workflow run (409)")
    with stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:  # by content alone: the service keeps no modes and follows links
            archive.writestr(str(file.relative_to(root)), file.read_bytes())
        number = archive.comment = b"%d" % secrets.randbits(48)
    with Path(os.environ.get("GITHUB_OUTPUT", os.devnull)).open("a", encoding="utf-8") as outputs:
        outputs.write(f"artifact-id={number.decode()}\n")
    print(f"artifact {name} has {len(files)} files")
    if fnmatch.fnmatchcase(name, os.environ.get("ACT_LOSE", "")):
        target.unlink()


main()
