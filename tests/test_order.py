"""Holds what tests/conftest.py does to a run: what is left to the nightly form."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
QUICK = "import pytest\n@pytest.mark.parametrize('n', range(3))\ndef test_quick(n): pass\n"
PAIR = "def test_beside(): pass\ndef test_long(): pass\n"
CONFIGURATION = """[pytest]
addopts = --strict-markers --import-mode=importlib
markers =
    full: as ours
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of three files with this suite's conftest.py."""
    (tmp_path / "pytest.ini").write_text(CONFIGURATION)
    for name in ("conftest.py", "empty_loops.py", "run_summary.py", "warm_hosts.py"):
        (tmp_path / name).write_text((ROOT / "tests" / name).read_text())
    (tmp_path / "nightly.txt").write_text("")
    for name, text in (("a", QUICK), ("b", PAIR), ("c", QUICK)):
        (tmp_path / f"test_{name}.py").write_text(text)
    return tmp_path


def pytest_of(suite: Path, *words: str, code: int = 0) -> str:
    """What pytest prints in ``suite``, where it ends with ``code``."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=suite, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_what_is_named_as_nightly_is_left_to_the_nightly_form(suite: Path) -> None:
    """A file, a test, or one set of its parameters; and nothing of another name that begins alike."""
    (suite / "nightly.txt").write_text("# why\ntest_a.py\ntest_b.py::test_long\ntest_c.py::test_quick[1]\n")
    (suite / "test_ab.py").write_text(QUICK)
    words = ("--collect-only", "-q", "-m")
    left, nightly = (
        re.findall(r"^test_(\w+)\.py::(\S+)", pytest_of(suite, *words, mark), re.MULTILINE)
        for mark in ("not full", "full")
    )
    quick = [("ab", f"test_quick[{n}]") for n in range(3)]
    assert sorted(left) == [*quick, ("b", "test_beside"), ("c", "test_quick[0]"), ("c", "test_quick[2]")]
    assert sorted(nightly) == [
        *(("a", f"test_quick[{n}]") for n in range(3)),
        ("b", "test_long"),
        ("c", "test_quick[1]"),
    ]


def test_a_line_that_names_no_test_is_said(suite: Path) -> None:
    """The line fails beside the tests that ran; whoever runs one file is not asked for the others."""
    (suite / "nightly.txt").write_text("test_a.py::test_gone\n")
    for spread in ((), ("-n", "2")):
        printed = pytest_of(suite, *spread, code=1)
        assert "nightly.txt names no test by test_a.py::test_gone" in printed
        assert re.search(r"1 failed, \d+ passed", printed)
    assert "3 passed" in pytest_of(suite, "test_c.py")
