"""Every ending that our code can give has a reason and, where its status has causes, one of a closed list."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import torchgauge
from torchgauge.records import CAUSES_OF, Cause, Status

PACKAGE = Path(torchgauge.__file__).parent
PLACES = {"Outcome": (1, 3, 4), "Refusal": (0, 2, 1), "CheckOutcome": (0, 2, 1)}
"""Positions of status, cause and reason in the records that end a case."""
KEYS = ("status", "cause", "reason")


@cache
def endings() -> tuple[tuple[str, Status, dict[str, ast.expr]], ...]:
    """All of them, read once."""
    return tuple(read_endings())


def read_endings() -> Iterator[tuple[str, Status, dict[str, ast.expr]]]:
    """Where, status and arguments of each record of an ending whose status is written out."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PLACES
            ):
                continue
            given = dict(zip(KEYS, (None,) * 3, strict=True))
            for key, place in zip(KEYS, PLACES[node.func.id], strict=True):
                if place < len(node.args):
                    given[key] = node.args[place]
            given |= {word.arg: word.value for word in node.keywords if word.arg in KEYS}
            status = given["status"]
            if isinstance(status, ast.Attribute) and ast.unparse(status.value) == "Status":
                found = {key: value for key, value in given.items() if value is not None}
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", Status[status.attr], found


def test_the_places_are_those_of_the_records() -> None:
    """The positions above are true, else nothing would be found."""
    from torchgauge.records import Outcome, Refusal
    from torchgauge.suites.check import CheckOutcome

    for kind in (Outcome, Refusal, CheckOutcome):
        names = list(kind.__dataclass_fields__)
        assert tuple(names.index(key) for key in KEYS) == PLACES[kind.__name__], kind.__name__


def test_what_refines_a_status_is_always_given() -> None:
    """No skip, crash, exhausted memory, wrong number or broken environment without its cause."""
    found = endings()
    assert {status for _, status, _ in found} == set(Status)
    lacking = []
    for where, status, given in found:
        cause = given.get("cause")
        nothing = cause is None or (isinstance(cause, ast.Constant) and cause.value is None)
        if status in CAUSES_OF and nothing:
            lacking.append(f"{where}: {status.value}")
        if isinstance(cause, ast.Attribute) and ast.unparse(cause.value) == "Cause":
            assert Cause[cause.attr] in CAUSES_OF[status], where
    assert lacking == []


def test_every_ending_but_a_pass_has_a_reason() -> None:
    """A reader of a row is told why."""
    silent = [
        f"{where}: {status.value}"
        for where, status, given in endings()
        if status is not Status.PASS and ("reason" not in given or ast.unparse(given["reason"]) == "''")
    ]
    assert silent == []
