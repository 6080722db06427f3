"""Files of long tests are handed out first: the hook of tests/conftest.py and the words of the Makefile."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
QUICK = "import pytest\n@pytest.mark.parametrize('n', range(3))\ndef test_quick(n): pass\n"
LONG = "import pytest\ndef test_beside(): pass\n@pytest.mark.long\ndef test_long(): pass\n"
CONFIGURATION = "[pytest]\naddopts = --strict-markers --import-mode=importlib\nmarkers = long: as ours\n"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite with our conftest.py: two quick files with many tests around a long one with few."""
    (tmp_path / "pytest.ini").write_text(CONFIGURATION)
    for name in ("conftest.py", "empty_loops.py"):
        (tmp_path / name).write_text((ROOT / "tests" / name).read_text())
    for name, text in (("a", QUICK), ("b", LONG), ("c", QUICK)):
        (tmp_path / f"test_{name}.py").write_text(text)
    return tmp_path


def pytest_of(suite: Path, *words: str) -> str:
    """What pytest prints in ``suite``."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=suite, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_file_with_a_long_test_comes_first_and_whole(suite: Path) -> None:
    """The others keep their order, and so do the tests of a file."""
    found = re.findall(r"^test_(\w)\.py::(\w+)", pytest_of(suite, "--collect-only", "-q"), re.MULTILINE)
    assert found == [
        ("b", "test_beside"),
        ("b", "test_long"),
        *[("a", "test_quick")] * 3,
        *[("c", "test_quick")] * 3,
    ]


def test_a_worker_begins_with_it_as_make_test_starts_them(suite: Path) -> None:
    """The number of its tests does not matter: by that, xdist would hand it out last."""
    (words,) = set(re.findall(r"--dist loadfile[^\n]*?(?= -m |\n)", (ROOT / "Makefile").read_text()))
    said = pytest_of(suite, "-n", "1", "-v", *words.split())
    begun = re.findall(r"^\[gw0\].* test_(\w)\.py::", said, re.MULTILINE)
    assert begun == list("bbaaaccc")


def test_without_the_mark_nothing_moves(suite: Path) -> None:
    """The order is that of collection."""
    (suite / "test_b.py").write_text(QUICK)
    found = re.findall(r"^test_(\w)\.py::", pytest_of(suite, "--collect-only", "-q"), re.MULTILINE)
    assert found == list("aaabbbccc")
