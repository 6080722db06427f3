"""What ``gh release create`` does, into ``ACT_RELEASES/TAG``: notes and files, for a tag that is there."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("noun", choices=["release"])
parser.add_argument("verb", choices=["create"])
parser.add_argument("tag")
parser.add_argument("files", nargs="+", type=Path)
parser.add_argument("--repo", required=True)
parser.add_argument("--verify-tag", action="store_true")
parser.add_argument("--title", required=True)
parser.add_argument("--notes-file", required=True, type=Path)
given = parser.parse_intermixed_args()
if not os.environ.get("GH_TOKEN"):
    sys.exit("gh: To use GitHub CLI in a GitHub Actions workflow, set the GH_TOKEN environment variable.")
origin = Path(os.environ["ACT_ORIGINS"]) / given.repo
tags = subprocess.run(["git", "tag"], cwd=origin, capture_output=True, text=True, check=True).stdout.split()
if given.verify_tag and given.tag not in tags:
    sys.exit(f"tag {given.tag} doesn't exist in the repo {given.repo}, aborting due to --verify-tag flag")
release = Path(os.environ["ACT_RELEASES"]) / given.tag
release.mkdir(parents=True)
(release / "title").write_text(given.title, encoding="utf-8")
(release / "notes").write_text(given.notes_file.read_text(encoding="utf-8"), encoding="utf-8")
for file in given.files:
    (release / file.name).write_bytes(file.read_bytes())
