"""Claims on two versions of torch, answered from a version matrix: both sides were measured in turns.

Why beside rows: rows of two versions come from other hours, and differ by more than releases do. Where a
store has a matrix whose cells fit both sides, its ratios stand for the models that it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torchgauge.records import ATTEMPTED, Status
from torchgauge.results.claims.choosing import NEWEST, PREVIOUS, fits, fits_torch
from torchgauge.results.claims.claim import Claim, Question, Side
from torchgauge.results.claims.member import Member, MemberState, decided, quotient
from torchgauge.results.claims.stored import Number
from torchgauge.results.matrix.state import find_state, matrix_ids
from torchgauge.results.matrix.table import Column, Entry, Row, Table, table_of
from torchgauge.results.store import Store
from torchgauge.suites.conflicts import release_of

ANSWERS = {"latency": False, "throughput": True}
"""Metrics that a ratio of latencies answers, and whether as its inverse."""
_TORCH_ALONE = {"torch"}
_ONE = Number(1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Paired:
    """What a matrix says of models, by suite and model; versions of base and head, and where and when."""

    members: dict[tuple[str, str], Member] = field(default_factory=dict)
    torch: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    machines: tuple[str, ...] = ()
    matrices: tuple[str, ...] = ()
    newest_at: float | None = None


def paired(claim: Claim, stores: Sequence[str], device: str, configuration: str) -> Paired:
    """What the newest fitting matrix of each of ``stores`` says of the claim's two sides."""
    question, select = claim.question, claim.select
    sides = question.sides
    if sides is None or question.measure not in ANSWERS or select.system:
        return Paired()
    if any(set(side.given) - _TORCH_ALONE for side in sides) or not any(side.torch for side in sides):
        return Paired()
    for path in stores:
        store = Store.open(path)
        for name in reversed(matrix_ids(store)):
            table = table_of(store, find_state(store, name))
            places = _places(table, *sides)
            if places is None or table.created_at < select.since or not fits(select.machine, table.machine):
                continue
            rows = [
                row
                for row in table.rows
                if fits(device, row.device)
                and fits(configuration, row.configuration)
                and (row.mode, row.dtype) == (select.mode, select.dtype)
                and row.size == (select.size or row.size)
            ]
            found = {(row.suite, row.model): _member(row, places, table, question) for row in rows}
            if found:
                base, head = (table.columns[at].torch for at in places)
                return Paired(
                    found, ((base,), (head,)), (table.machine,) if table.machine else (), (table.id,),
                    table.created_at,
                )  # fmt: skip
    return Paired()


def _places(table: Table, base: Side, head: Side) -> tuple[int, int] | None:
    """The cells of both sides; None where the matrix lacks one, or both are the same."""
    columns = [(at, each) for at, each in enumerate(table.columns) if each.torch and not each.repeats]
    order = sorted({each.torch for _, each in columns}, key=release_of, reverse=True)

    def place(side: Side) -> int | None:
        return next((at for at, column in columns if _fits(side, column, order)), None)

    found = place(base), place(head)
    if found[0] is None or found[1] is None or found[0] == found[1]:
        return None
    return found[0], found[1]


def _fits(side: Side, column: Column, order: Sequence[str]) -> bool:
    if side.torch in (NEWEST, PREVIOUS):
        place = 0 if side.torch == NEWEST else 1
        return order[place : place + 1] == [column.torch]
    return fits_torch(side.torch, column.torch)


def _member(row: Row, places: tuple[int, int], table: Table, question: Question) -> Member:
    key = row.suite, row.model
    entries = [row.entries[at] for at in places]
    for name, entry in zip(("base", "head"), entries, strict=True):
        if entry.status != "pass":
            return Member(*key, _state_of(entry), f"{name}: {entry.status}: {entry.reason}", case_id=row.case)
    numbers = [_number(entry, table.columns[at]) for entry, at in zip(entries, places, strict=True)]
    if None in [each.median for each in numbers]:
        reason = next((each.absent for each in numbers if each.median is None), "")
        return Member(*key, MemberState.NOT_MEASURED, reason, case_id=row.case)
    above, below = (numbers[0], numbers[1]) if ANSWERS[question.measure] else (numbers[1], numbers[0])
    ratio = quotient(above, below)
    state, reason = MemberState.MEASURED, ""
    if question.condition is not None:
        state, reason = decided(question.condition, ratio, exact=False)
    return Member(*key, state, reason, ratio.median, ratio.low, ratio.high, Status.PASS, row.case)


def _number(entry: Entry, column: Column) -> Number:
    """The latency over the baseline's, which is 1 for the baseline itself."""
    if column.baseline:
        return _ONE
    return Number(entry.ratio, entry.low, entry.high, "" if entry.ratio else entry.reason or "no ratio")


def _state_of(entry: Entry) -> MemberState:
    if entry.status == "missing":
        return MemberState.NOT_MEASURED
    return MemberState.FAILED if Status(entry.status) in ATTEMPTED else MemberState.REFUSED
