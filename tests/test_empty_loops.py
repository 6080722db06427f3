"""A loop of assertions that runs zero times fails its test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FILE = """
import pytest

def test_loop(subjects):
    for each in subjects:
        assert each

def test_all(subjects):
    assert all(each for each in subjects)

def test_not_any(subjects):
    assert not any(each == 2 for each in subjects)

def test_inner_loop(subjects):
    for each in ([], [1]):
        for inner in each:
            assert inner

def test_excused(subjects):
    for each in subjects:  # may be empty: nothing is promised of them
        assert each

def test_of_no_assertion(subjects):
    for each in subjects:
        print(each)

@pytest.fixture
def subjects():
    return [SUBJECT]
"""
WATCHED = ("test_all", "test_loop", "test_not_any")


def outcome(folder: Path, subject: str) -> tuple[set[str], str]:
    """Names of the tests of ``FILE`` that failed, and the output, in a pytest of its own."""
    (folder / "test_file.py").write_text(FILE.replace("SUBJECT", subject), encoding="utf-8")
    (folder / "conftest.py").write_text((TESTS / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "nightly.txt").touch()
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(folder),
        str(folder),
    ]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    failed = {
        line.split("::")[1].split()[0] for line in done.stdout.splitlines() if line.startswith("FAILED")
    }
    return failed, done.stdout


@pytest.mark.parametrize("again", ["at first", "from what pytest kept"])
def test_an_empty_subject_fails_its_test_and_a_full_one_does_not(tmp_path: Path, again: str) -> None:
    """An inner loop may be empty some of the times; with and without a cached rewriting."""
    runs = 1 if again == "at first" else 2
    for _ in range(runs):
        empty, text = outcome(tmp_path, "")
    assert empty == {*WATCHED}
    assert "test_file.py:5: for each in subjects:" in text
    full, _ = outcome(tmp_path, "1")
    assert full == set()
