"""Who is to blame for a collective that hangs: what the flight recorders of all processes say, compared.

torch keeps the last collectives of each process, numbered in each group in the order of the calls. Whoever
waits has a call that did not end. With the records of all processes side by side, the first such number tells
who has not joined it, or has called something else there. torch's own analyser reads files of NCCL's watchdog
and fails on what gloo records; this compares what both have. Standard library only: both halves import it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

EVENT = "flight_record"
"""The event with which a process tells of its own."""
KEPT = 8
"""Newest calls of a group that a process tells of: enough to know which kind of call is usual there."""
UNEVEN = ("all_to_all", "alltoall", "gather", "scatter")
"""How the names of operations begin whose inputs may differ in size from process to process."""
DEFAULT_GROUPS = ("", "0", "default_pg")
"""Names of the group of all processes."""


@dataclass(frozen=True)
class Call:
    """A call of one process: the ``number``-th of its ``group``. ``sizes`` are what went in, as text."""

    group: str
    number: int
    operation: str
    sizes: str
    ended: bool

    @property
    def name(self) -> str:
        """``all_reduce #4``, with the group where that is not the one of all processes."""
        of = "" if self.group in DEFAULT_GROUPS else f" of group {self.group}"
        return f"{self.operation} #{self.number}{of}"

    @property
    def signature(self) -> tuple[str, str]:
        """What has to be equal in all processes."""
        return self.operation, "" if self.operation.startswith(UNEVEN) else self.sizes


@dataclass(frozen=True)
class FlightRecord:
    """What one process told: its newest calls of each group, and the ``place`` in its code."""

    rank: int
    calls: tuple[Call, ...] = ()
    place: str = ""


@dataclass(frozen=True)
class Culprits:
    """The processes that others wait for, in which ``call``, and why, in words."""

    ranks: tuple[int, ...]
    call: str
    why: str


def calls_of(entries: Iterable[Mapping[str, Any]]) -> tuple[Call, ...]:
    """The newest calls of each group, and all that did not end, of what torch's recorder dumped."""
    groups: dict[str, list[Call]] = {}
    for entry in entries:
        if entry.get("is_p2p"):
            continue  # numbered by pair, and no call of all
        name, _, operation = str(entry["profiling_name"]).rpartition(":")
        named = [str(each) for each in entry.get("process_group") or ()]
        group = next((each for each in reversed(named) if each and each != "undefined"), "")
        ended = bool(entry.get("retired")) or entry.get("state") == "completed"
        call = Call(group, int(entry["collective_seq_id"]), operation or name, _sizes(entry), ended)
        groups.setdefault(group, []).append(call)
    return tuple(
        call
        for calls in groups.values()
        for position, call in enumerate(sorted(calls, key=lambda one: one.number))
        if position >= len(calls) - KEPT or not call.ended
    )


def still_waiting(before: Sequence[Call], after: Sequence[Call]) -> tuple[Call, ...]:
    """``after``, where only what had not ended ``before`` either has not: a record lags behind its call."""
    waiting = {(call.group, call.number) for call in before if not call.ended}
    return tuple(
        replace(each, ended=each.ended or (each.group, each.number) not in waiting) for each in after
    )


def culprits(records: Mapping[int, FlightRecord | None]) -> Culprits | None:
    """Who keeps the others waiting, of processes by rank (None: it told nothing); None where nobody waits.

    Of several groups that of all processes counts first, and before it a group whose culprits wait nowhere.
    """
    told = {rank: record for rank, record in records.items() if record is not None}
    waiting = {rank for rank, record in told.items() if any(not call.ended for call in record.calls)}
    stuck = {call.group for record in told.values() for call in record.calls if not call.ended}
    found = [
        each
        for group in sorted(stuck, key=lambda name: (name not in DEFAULT_GROUPS, name))
        if (each := _of_group(group, records, told)) is not None
    ]
    free = [each for each in found if not waiting.intersection(each.ranks)]
    return next(iter((*free, *found)), None)


def _of_group(
    group: str, records: Mapping[int, FlightRecord | None], told: Mapping[int, FlightRecord]
) -> Culprits | None:
    calls = {
        rank: {one.number: one for one in each.calls if one.group == group} for rank, each in told.items()
    }
    stuck = sorted({one.number for each in calls.values() for one in each.values() if not one.ended})
    found = (_of_number(number, calls, records, told) for number in stuck)
    return next((each for each in found if each is not None), None)


def _of_number(
    number: int,
    calls: Mapping[int, Mapping[int, Call]],
    records: Mapping[int, FlightRecord | None],
    told: Mapping[int, FlightRecord],
) -> Culprits | None:
    """Who keeps the others waiting in call ``number``; None where all are in it, and it only ends late."""
    there = {rank: each[number] for rank, each in calls.items() if number in each}
    if len({call.signature for call in there.values()}) > 1:
        return _who_differs(there, calls)
    call = next(iter(there.values()))
    waits = f"{call.name} ({call.sizes}), in which {_ranks(sorted(there))} {_verb(there, 'wait')}"
    absent = tuple(sorted(rank for rank, each in calls.items() if max(each, default=0) < number))
    if absent:
        at = "; ".join(f"rank {rank} is in {told[rank].place}" for rank in absent if told[rank].place)
        why = f"{_ranks(absent)} {_verb(absent, 'ha', 've', 's')} not joined {waits}"
        return Culprits(absent, call.name, f"{why}; {at}" if at else why)
    silent = tuple(sorted(rank for rank, each in records.items() if each is None))
    usual = {one.signature for each in calls.values() for one in each.values() if one.number < number}
    # what an odd call sent may have ended the others; it is not odd where most of all are in it
    if len(there) <= len(silent) and usual and call.signature not in usual:
        why = f"{_ranks(there)} {_verb(there, 'call')} {call.name} ({call.sizes}), unlike any earlier call"
        return Culprits(tuple(sorted(there)), call.name, f"{why}, and {_ranks(silent)} reported nothing")
    if silent:
        return Culprits(silent, call.name, f"{_ranks(silent)} reported nothing of {waits}")
    return None


def _who_differs(there: Mapping[int, Call], calls: Mapping[int, Mapping[int, Call]]) -> Culprits:
    """The fewest of those in one call; of as many, those whose call was the less usual one before it."""
    votes = Counter(call.signature for call in there.values())
    number = next(iter(there.values())).number
    before = Counter(one.signature for each in calls.values() for one in each.values() if one.number < number)
    right = max(votes, key=lambda signature: (votes[signature], before[signature]))
    best = (votes[right], before[right])
    rivals = [each for each in votes if (votes[each], before[each]) == best]
    odd = tuple(sorted(rank for rank, call in there.items() if len(rivals) > 1 or call.signature != right))
    by_call: dict[str, list[int]] = {}
    for rank, call in sorted(there.items()):
        by_call.setdefault(f"{call.name} ({call.sizes})", []).append(rank)
    first = there[odd[0]]
    said = sorted(by_call.items(), key=lambda item: there[item[1][0]].signature == right)
    told = ", ".join(f"{_ranks(ranks)} {_verb(ranks, 'call')} {name}" for name, ranks in said)
    return Culprits(odd, first.name, f"the ranks make different calls: {told}")


def _sizes(entry: Mapping[str, Any]) -> str:
    """``8 float32``; of several tensors one after another."""
    kinds = [str(each) for each in entry.get("input_dtypes") or ()]
    sizes = ["x".join(map(str, each)) or "one" for each in entry.get("input_sizes") or ()]
    kinds += [""] * (len(sizes) - len(kinds))
    told = [f"{size} {kind.lower()}".strip() for size, kind in zip(sizes, kinds, strict=False)]
    return ", ".join(told) or "no tensor"


def _ranks(ranks: Iterable[int]) -> str:
    numbers = sorted(ranks)
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _verb(ranks: Any, stem: str, many: str = "", one: str = "s") -> str:
    return stem + (many if len(ranks) > 1 else one)
