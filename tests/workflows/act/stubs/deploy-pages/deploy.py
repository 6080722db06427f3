"""What actions/deploy-pages does: exactly one artifact of the run becomes the site, in ``ACT_PAGES``."""

import io
import os
import sys
import tarfile
import zipfile
from pathlib import Path

artifact = Path(os.environ["ACT_ARTIFACTS"]) / os.environ["GITHUB_RUN_ID"] / f"{os.environ['NAME']}.zip"
if not artifact.is_file():
    print(f"::error::no artifacts named {os.environ['NAME']!r} were found for this workflow run")
    sys.exit(1)
with zipfile.ZipFile(artifact) as archive:
    tar = io.BytesIO(archive.read("artifact.tar"))
with tarfile.open(fileobj=tar) as archive:
    archive.extractall(os.environ["ACT_PAGES"], filter="data")
