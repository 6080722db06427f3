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


ACCOUNTS = ("assert_ended(", "assert_accounted(", "assert_whole(", "assert_complete(")
"""What asks for planned rows, journal, processes and leases; the first also for exit code and message."""
ELSEWISE = {
    "test_any_moment_will_do": "eight stores; nothing that is left is looked for after each",
    "test_amid_imports_it_ends_without_a_traceback": "before there is a run",
    "test_a_plan_that_is_not_this_version_s_or_damaged_is_refused": "before there is a run",
    "test_parts_that_do_not_belong_together_are_not_merged": "no run is made of them",
}
"""Tests of commands that account for no run, with the reason."""


def test_each_test_of_a_command_accounts_for_its_run() -> None:
    """By one function, so that none of them lacks one of the things that must hold after any fault."""
    lacking, seen = [], 0
    for name in dict.fromkeys(test for fault in faults() for test in fault.tests):
        path, _, function = name.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        node = next(
            each
            for each in ast.parse(text).body
            if isinstance(each, ast.FunctionDef) and each.name == function
        )
        if "sandbox" in {each.arg for each in node.args.args}:
            seen += 1
            body = ast.get_source_segment(text, node) or ""
            if function not in ELSEWISE and not any(each in body for each in ACCOUNTS):
                lacking.append(name)
    assert seen > len(ELSEWISE)
    assert lacking == []


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
