"""Who keeps the others waiting, from the flight records of all processes."""

from __future__ import annotations

from typing import Any

import pytest

from torchgauge.harness.flight_records import (
    Call,
    Culprits,
    FlightRecord,
    calls_of,
    culprits,
    still_waiting,
)

SUM, COPY = ("all_reduce", "8 float"), ("broadcast", "8 float")


def record(
    rank: int, *signatures: tuple[str, str], waits: bool = False, place: str = "", group: str = ""
) -> Any:
    """A process that made these calls, and waits in the last one or in none."""
    calls = [Call(group, at, *each, ended=True) for at, each in enumerate(signatures, 1)]
    if waits:
        calls[-1] = Call(group, len(calls), *signatures[-1], ended=False)
    return FlightRecord(rank, tuple(calls), place)


def found(*records: FlightRecord | None) -> Culprits | None:
    """Who is to blame, of processes in the order of their ranks."""
    return culprits(dict(enumerate(records)))


def test_nobody_is_to_blame_where_nobody_waits() -> None:
    """However far apart the processes are."""
    assert found(record(0, SUM, SUM), record(1, SUM)) is None
    assert found() is None
    assert found(None, None) is None


def test_who_has_not_joined_is_named_with_the_call_and_the_place() -> None:
    """The call by its number, and where that process is instead."""
    said = found(record(0, SUM, SUM, waits=True), record(1, SUM, place="forward (model.py:12)"))
    assert said is not None
    assert (said.ranks, said.call) == ((1,), "all_reduce #2")
    assert said.why == (
        "rank 1 has not joined all_reduce #2 (8 float), in which rank 0 waits; "
        "rank 1 is in forward (model.py:12)"
    )


def test_who_told_nothing_is_to_blame_where_all_others_joined() -> None:
    """A process that is dead, or that never lets its threads run."""
    said = found(record(0, SUM, waits=True), None)
    assert said is not None
    assert (said.ranks, said.call) == ((1,), "all_reduce #1")
    assert "rank 1 reported nothing of all_reduce #1" in said.why


@pytest.mark.parametrize("other", [COPY, ("all_reduce", "16 float")], ids=["operation", "size"])
def test_the_one_that_calls_something_else_is_named(other: tuple[str, str]) -> None:
    """The fewest are wrong."""
    said = found(
        record(0, SUM, SUM, waits=True), record(1, SUM, other, waits=True), record(2, SUM, SUM, waits=True)
    )
    assert said is not None
    assert (said.ranks, said.call) == ((1,), f"{other[0]} #2")
    assert said.why == (
        f"the ranks make different calls: rank 1 calls {other[0]} #2 ({other[1]}), "
        "ranks 0, 2 call all_reduce #2 (8 float)"
    )


def test_of_two_the_less_usual_call_is_wrong() -> None:
    """By the calls before it; where nothing tells them apart, both are named."""
    said = found(record(0, SUM, SUM, SUM, waits=True), record(1, SUM, SUM, COPY, waits=True))
    assert said is not None
    assert (said.ranks, said.call) == ((1,), "broadcast #3")
    both = found(record(0, SUM, waits=True), record(1, COPY, waits=True))
    assert both is not None
    assert both.ranks == (0, 1)


def test_another_call_is_found_where_one_has_left_it_already() -> None:
    """A broadcast ends in its root while the others wait for a sum."""
    said = found(record(0, SUM, COPY), record(1, SUM, SUM, waits=True), record(2, SUM, SUM, waits=True))
    assert said is not None
    assert (said.ranks, said.call) == ((0,), "broadcast #2")


def test_all_in_one_call_are_slow_and_nobody_is_to_blame() -> None:
    """The network, or the message, is."""
    assert found(record(0, SUM, waits=True), record(1, SUM, waits=True)) is None


def test_a_call_that_all_are_in_hides_no_later_one() -> None:
    """The record of a process that was ended at once may say of the call before that it had not ended."""
    lags = FlightRecord(0, (Call("", 1, *SUM, ended=False), Call("", 2, *COPY, ended=False)))
    said = found(lags, record(1, SUM, SUM, waits=True), record(2, SUM, SUM, waits=True))
    assert said is not None
    assert (said.ranks, said.call) == ((0,), "broadcast #2")


def test_a_group_whose_culprit_waits_nowhere_counts_first() -> None:
    """Rank 2 waits for rank 1 in one group, and that one for rank 0, which is to blame, in another."""
    one = FlightRecord(0)
    two = FlightRecord(1, (Call("pair", 1, *SUM, ended=False),))
    three = FlightRecord(2, (Call("", 1, *SUM, ended=False),))
    said = found(one, two, three)
    assert said is not None
    assert 0 in said.ranks


def entry(number: int, **more: Any) -> dict[str, Any]:
    """An entry as torch's recorder dumps it."""
    plain = {
        "process_group": ["0", "default_pg"],
        "collective_seq_id": number,
        "profiling_name": "gloo:all_reduce",
        "input_sizes": [[2, 4]],
        "input_dtypes": ["Float"],
        "state": "scheduled",
        "retired": True,
        "is_p2p": False,
    }
    return {**plain, **more}


def test_what_ended_between_two_readings_does_not_wait() -> None:
    """A record lags a moment behind its call."""
    first, second = calls_of([entry(1, retired=False)]), calls_of([entry(1), entry(2, retired=False)])
    assert all(call.ended for call in still_waiting(first, second))
    assert not still_waiting(first, first)[0].ended


def test_most_of_all_processes_are_not_to_blame_for_a_new_call() -> None:
    """A second bucket of another size, in which two wait for a third that was stopped and tells nothing."""
    bucket = ("all_reduce", "30 float32")
    said = found(record(0, SUM, bucket, waits=True), None, record(2, SUM, bucket, waits=True))
    assert said is not None
    assert said.ranks == (1,)


def test_inputs_of_some_operations_differ_from_process_to_process() -> None:
    """Of a scatter only the root has inputs: who is absent is to blame, and not who has none."""
    root, other = ("scatter", "8 float32, 8 float32"), ("scatter", "no tensor")
    said = found(record(0, SUM, root, waits=True), record(1, SUM, other, waits=True), record(2, SUM))
    assert said is not None
    assert (said.ranks, said.call) == ((2,), "scatter #2")
