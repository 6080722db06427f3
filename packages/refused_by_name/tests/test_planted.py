"""The static scan on planted refusals: 95 % are found, and none of the innocent uses of the same words."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from refused_by_name.finding import Effect, Scanned
from refused_by_name.scan import scan

ROOT = Path(__file__).parent / "planted" / "planted_package"
PLANTED = {
    int(found[1]): number
    for number, line in enumerate((ROOT / "refusing.py").read_text().splitlines(), 1)
    if (found := re.search(r"# planted: (\d+)", line))
}


@pytest.fixture(scope="module")
def scanned() -> Scanned:
    """What the scan says of the planted package."""
    return scan(ROOT, "planted_package", "1.0")


def test_planted_refusals_are_found(scanned):
    """At least 19 of the first twenty, which raise, and of all of them 95 %."""
    raising = {each.line for each in scanned.of(Effect.RAISES) if each.file.endswith("refusing.py")}
    every = {each.line for each in scanned.refusals if each.file.endswith("refusing.py")}
    twenty = [number for number in PLANTED if number <= 20]
    assert len(twenty) == 20
    missed = [number for number in PLANTED if PLANTED[number] not in every]
    assert sum(PLANTED[number] in raising for number in twenty) >= 19, missed
    assert len(PLANTED) - len(missed) >= 0.95 * len(PLANTED), missed


def test_a_silent_return_is_another_path(scanned):
    """What does not raise is told apart."""
    (found,) = [each for each in scanned.refusals if each.line == PLANTED[29] and "refusing" in each.file]
    assert (found.effect, found.names) == (Effect.OTHER_PATH, ("cuda",))


def test_innocent_uses_of_the_words_are_not_accused(scanned):
    """Documentation, creation, test data, registration, printing, ability, tests for the host."""
    tree = ast.parse((ROOT / "innocent.py").read_text())
    assert sum(isinstance(node, (ast.FunctionDef, ast.ClassDef)) for node in tree.body) >= 20
    accused = [(each.line, each.test) for each in scanned.refusals if each.file.endswith("innocent.py")]
    assert accused == []


def test_a_refusal_says_who_is_let_through_and_what_is_raised(scanned):
    """File, line, function, names and message: what an issue upstream needs."""
    (found,) = [each for each in scanned.refusals if each.line == PLANTED[2] and "refusing" in each.file]
    assert found.file == "planted_package/refusing.py"
    assert (found.function, found.effect) == ("membership", Effect.RAISES)
    assert found.names == ("cpu", "cuda", "hpu", "mps", "xpu")
    assert found.says.startswith("ValueError(f'only supported on")


def test_each_place_is_told_once(scanned):
    """No line of the planted package has two refusals of one effect."""
    places = [(each.file, each.line, each.effect) for each in scanned.refusals]
    assert len(places) == len(set(places))
    assert scanned.files == 5
    assert scanned.unread == ()


def test_a_file_that_is_no_python_is_named(tmp_path):
    """It is counted, told, and ends nothing."""
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "__init__.py").write_text("def f(:\n")
    found = scan(folder, "broken")
    assert (found.files, found.refusals) == (1, ())
    assert found.unread == ("broken/__init__.py: SyntaxError",)
