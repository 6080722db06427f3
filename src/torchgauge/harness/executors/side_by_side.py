"""Several groups of one device at once: built, checked and compiled side by side, timed one after another.

Each station has a thread, a host and workers of its own, and takes the next group when it has done one. Who
times has the machine to itself (:mod:`.turns`). The caller's thread takes their rows from a queue, so that
the journal has one writer.

A group whose worker ran out of memory, or was killed from outside, may have done so because of its
neighbours: it is run again at the end with nothing beside it, and only that counts.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Union

from torchgauge.harness.executors.code_caches import CodeCaches
from torchgauge.harness.executors.executor import BudgetSpent, Remark, Submission, Yield
from torchgauge.harness.executors.pace import Pace
from torchgauge.harness.executors.station import Station, budget_spent
from torchgauge.harness.executors.turns import Turns
from torchgauge.harness.staging import tree_for
from torchgauge.records import Cause, DeviceTarget, Group, Result, Status
from torchgauge.results.atomic_file import storage_errors

LISTEN_S = 0.5
"""Seconds between looks at whether all stations have ended."""


@dataclass(frozen=True)
class Done:
    """A group with its rows, and whether another station had work while it ran."""

    group: Group
    rows: list[Result]
    beside: bool


Message = Union[Done, Remark, BaseException]


@dataclass
class SideBySide:
    """The stations of one device; ``count`` of them work at once until ``until`` (steady seconds)."""

    submission: Submission
    target: DeviceTarget
    work: Path
    groups: list[Group]
    count: int
    until: float | None = None
    pace: Pace = field(default_factory=lambda: Pace({}))
    turns: Turns = field(default_factory=Turns)
    left: list[Group] = field(default_factory=list)
    messages: queue.Queue[Message] = field(default_factory=queue.Queue)
    busy: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.caches = CodeCaches(self.submission.plan, self.work / "purse")

    def run(self) -> Iterator[Yield]:
        """Run every group; what is to be kept, in lists that belong together."""
        self.left.extend(self.groups)
        stations = [self.station(number) for number in range(self.count)]
        try:
            self.open_hosts(stations)
            yield from stations[0].calibrate("start")
            for station in stations[1:]:
                station.environment_id, station.absent = stations[0].environment_id, stations[0].absent
            alone: list[Group] = []
            for item in self.at_once(stations):
                if isinstance(item, Done) and item.beside and suspicious(item.rows):
                    alone.append(item.group)
                    yield Remark(f"{_named(item.group)} is run again at the end, alone: {_why(item.rows)}")
                else:
                    yield item.rows if isinstance(item, Done) else item
            for station in stations[1:]:
                station.close()
            yield from self.rest(stations[0], alone)
            if stations[0].absent is None and not self.submission.cancelled():
                yield from stations[0].calibrate("end")
        finally:
            for station in stations:
                station.close()
            self.caches.close()

    def station(self, number: int) -> Station:
        """One station with a folder of its own, which stops when this one does."""
        work = self.work / f"{self.target}-{number}"
        with storage_errors(work):
            work.mkdir(parents=True)
        submission = replace(self.submission, cancelled=self.cancelled)
        return Station(
            submission,
            self.target,
            work,
            self.groups,
            self.until,
            self.turns,
            self.pace,
            caches=self.caches,
            shared=self.work,
        )

    def cancelled(self) -> bool:
        """Whether the stations are to end at once."""
        return self.stopping.is_set() or self.submission.cancelled()

    def open_hosts(self, stations: list[Station]) -> None:
        """Start the hosts together: each takes seconds to import what its workers share."""
        tree_for(self.submission.python, self.work)  # copied once, before they all ask for it
        threads = [threading.Thread(target=station.try_open, name="open host") for station in stations]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    # --- at once -----------------------------------------------------------------------------

    def at_once(self, stations: list[Station]) -> Iterator[Done | Remark | BudgetSpent]:
        """What the stations do, each in a thread, until no group is left; raises what one of them raised."""
        threads = [threading.Thread(target=self.serve, args=(each,), name="station") for each in stations]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads) or not self.messages.empty():
                try:
                    message = self.messages.get(timeout=LISTEN_S)
                except queue.Empty:
                    continue
                if isinstance(message, BaseException):
                    raise message
                self.turns.wait_for_quiet(self.cancelled)  # writing rows takes a core
                yield message
        finally:
            self.stopping.set()
            for thread in threads:
                thread.join()
            self.stopping.clear()
        if self.left and not self.submission.cancelled():
            yield from budget_spent(self.target, len(self.left))

    def serve(self, station: Station) -> None:
        """Run groups on ``station`` until there is none left; everything is said through the queue."""
        try:
            while (group := self.take(station)) is not None:
                rows = station.run_group(group)
                with self.lock:
                    beside, self.busy = self.busy > 1, self.busy - 1
                for remark in station.said():
                    self.messages.put(remark)  # type: ignore[arg-type]
                self.messages.put(Done(group, rows, beside))
        except BaseException as error:  # noqa: BLE001  the caller's thread raises it
            self.messages.put(error)

    def take(self, station: Station) -> Group | None:
        """The next group for ``station``; None where there is none, or no time for it."""
        with self.lock:
            number = self.pace.next_to_start(self.left, station.seconds_left())
            if self.cancelled() or number is None:
                return None
            self.busy += 1
            return self.left.pop(number)

    def rest(self, station: Station, groups: list[Group]) -> Iterator[Yield]:
        """Run ``groups`` with nothing beside them."""
        for group in groups:
            if self.submission.cancelled():
                return
            yield station.run_group(group)
            yield from station.said()


def suspicious(rows: list[Result]) -> bool:
    """Whether a row says something that neighbours may have brought about."""
    return any(row.status is Status.OOM or row.cause is Cause.KILLED for row in rows)


def _named(group: Group) -> str:
    return f"{group.workload.suite}/{group.workload.model} ({group.workload.mode})"


def _why(rows: list[Result]) -> str:
    return next(row.reason for row in rows if suspicious([row])) or "it ran out of memory"
