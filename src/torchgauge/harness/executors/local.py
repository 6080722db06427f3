"""Executor ``local``: one worker at a time on this machine, device by device."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from torchgauge.harness.executors.executor import Submission, Yield
from torchgauge.harness.executors.station import Station


@dataclass(frozen=True)
class LocalExecutor:
    """The built-in executor."""

    name: str = "local"

    def submit(self, submission: Submission) -> Iterator[Yield]:
        """Run the groups device by device."""
        work = submission.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        try:
            stations = [
                (target, list(groups))
                for target, groups in groupby(submission.groups, key=lambda group: group.device)
            ]
            budget, started = submission.plan.settings.budget_s, submission.clock.steady()
            for number, (target, groups) in enumerate(stations):
                now = submission.clock.steady()
                share = (started + budget - now) / (len(stations) - number) if budget is not None else None
                until = None if share is None else now + share
                yield from Station(submission, target, work, groups, until=until).run()
        finally:
            shutil.rmtree(work, ignore_errors=True)


EXECUTOR = LocalExecutor()
