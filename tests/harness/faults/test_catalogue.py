"""No fault is left out, each test that the catalogue names is there, and the page says what it says."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

sys.path.insert(0, __file__.rpartition("/")[0])

from catalogue import HERE, PAGE, ROOT, Fault, faults, written

MOST = 43


def test_every_number_is_there_once() -> None:
    """In order."""
    assert [fault.number for fault in faults()] == list(range(1, MOST + 1))


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: str(fault.number))
def test_a_fault_is_injected_by_tests_that_exist_or_says_why_not(fault: Fault) -> None:
    """What is seen is what tests show; what no test does has a reason."""
    assert bool(fault.seen) is bool(fault.tests)
    assert fault.tests or fault.missing
    for name in fault.tests:  # may be empty: what is missing says why
        path, _, function = name.partition("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name


def test_the_page_says_what_the_catalogue_says() -> None:
    """``python tests/harness/faults/catalogue.py --write`` writes it again."""
    assert PAGE.read_text(encoding="utf-8") == written()


def test_make_faults_is_given_all_tests() -> None:
    """As arguments of pytest, each once."""
    said = subprocess.run(
        [sys.executable, str(HERE / "catalogue.py")], capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(said) == len(set(said))
    assert set(said) == {test for fault in faults() for test in fault.tests}
