"""A copy of the source as git would keep it: a test builds that, without what lies about in this tree."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def copy_source(target: Path) -> frozenset[str]:
    """Copy every file that git has, or would take, to ``target``; return their paths from there.

    Skips the test in a tree without git, where nothing says which files belong to it.
    """
    if not (ROOT / ".git").exists():
        pytest.skip("needs a checkout: only git knows which files are the source")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    copied = set()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():  # a file that was deleted and not yet committed is still listed
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)
            shutil.copymode(ROOT / name, target / name)
            copied.add(name)
    return frozenset(copied)
