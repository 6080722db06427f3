"""What actions/upload-pages-artifact does: one artifact with one tar of plain files, at most 1 GB."""

import os
import sys
import tarfile
import zipfile
from pathlib import Path

MOST_BYTES = 1_000_000_000


def fail(message):
    """End as the real action ends: red, with an annotation."""
    print(f"::error::{message}")
    sys.exit(1)


def main():
    """Upload, or refuse."""
    site = Path(os.environ["SITE"])
    files = sorted(path for path in site.rglob("*") if not path.is_dir())
    if not files:
        fail(f"no files in {site}")
    if any(path.is_symlink() for path in files):
        fail("the site has links, which Pages does not serve")
    if sum(path.stat().st_size for path in files) > MOST_BYTES:
        fail("the site has more than 1 GB")
    store = Path(os.environ["ACT_ARTIFACTS"]) / os.environ["GITHUB_RUN_ID"]
    store.mkdir(parents=True, exist_ok=True)
    tar = Path(os.environ["RUNNER_TEMP"]) / "artifact.tar"
    with tarfile.open(tar, "w") as archive:
        archive.add(site, ".")
    try:
        stream = (store / f"{os.environ['NAME']}.zip").open("xb")
    except FileExistsError:
        fail("Conflict: an artifact with this name already exists on the workflow run (409)")
    with stream, zipfile.ZipFile(stream, "w") as archive:
        archive.write(tar, "artifact.tar")


main()
