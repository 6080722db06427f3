"""Executor ``local``: workers on this machine, device by device; several prepare, one times."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from torchgauge.harness.executors.executor import Submission, Yield
from torchgauge.harness.executors.pace import Pace
from torchgauge.harness.executors.side_by_side import SideBySide
from torchgauge.harness.executors.station import Station
from torchgauge.records import Group
from torchgauge.results.atomic_file import storage_errors


@dataclass(frozen=True)
class LocalExecutor:
    """The built-in executor."""

    name: str = "local"

    def submit(self, submission: Submission) -> Iterator[Yield]:
        """Run the groups device by device."""
        work = submission.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        with storage_errors(work):
            work.mkdir(parents=True)
        try:
            stations = [
                (target, list(groups))
                for target, groups in groupby(submission.groups, key=lambda group: group.device)
            ]
            pace = Pace.of_plan(submission.plan)
            budget, started = submission.plan.settings.budget_s, submission.clock.steady()
            for number, (target, groups) in enumerate(stations):
                now = submission.clock.steady()
                share = (started + budget - now) / (len(stations) - number) if budget is not None else None
                until = None if share is None else now + share
                count = stations_for(groups, submission.plan.settings.ahead)
                if count > 1:
                    yield from SideBySide(submission, target, work, groups, count, until, pace).run()
                else:
                    yield from Station(submission, target, work, groups, until=until, pace=pace).run()
        finally:
            shutil.rmtree(work, ignore_errors=True)


def stations_for(groups: list[Group], ahead: int) -> int:
    """How many of ``groups`` of one device to prepare at once, where ``ahead`` are allowed.

    Checks ask a device about its memory, streams and clocks: those of one device never run side by side.
    """
    runnable = [group for group in groups if any(planned.declined is None for planned in group.cases)]
    return 1 if any(group.checks for group in runnable) else max(1, min(ahead, len(runnable)))


EXECUTOR = LocalExecutor()
