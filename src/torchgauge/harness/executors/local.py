"""Executor ``local``: workers on this machine, device by device; several prepare, one times."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from torchgauge.harness.executors.executor import NoOptions, Submission, Yield
from torchgauge.harness.executors.fleet import FleetDevice
from torchgauge.harness.pool.pace import Pace
from torchgauge.harness.pool.worker_pool import WorkerPool
from torchgauge.results.atomic_file import storage_errors


@dataclass(frozen=True)
class LocalExecutor:
    """The built-in executor."""

    name: str = "local"

    def fleet(self, options: NoOptions) -> list[FleetDevice]:
        """The accelerators of this machine, and who has their leases."""
        from torchgauge.harness.executors.local_fleet import local_fleet

        return local_fleet()

    def submit(self, submission: Submission) -> Iterator[Yield]:
        """Run the groups device by device."""
        work = submission.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        with storage_errors(work):
            work.mkdir(parents=True)
        try:
            devices = [
                (target, list(groups))
                for target, groups in groupby(submission.groups, key=lambda group: group.device)
            ]
            pace = Pace.of_plan(submission.plan)
            budget, started = submission.plan.settings.budget_s, submission.clock.steady()
            for number, (target, groups) in enumerate(devices):
                now = submission.clock.steady()
                share = (started + budget - now) / (len(devices) - number) if budget is not None else None
                until = None if share is None else now + share
                yield from WorkerPool(submission, target, work, groups, pace, until).run()
        finally:
            shutil.rmtree(work, ignore_errors=True)


EXECUTOR = LocalExecutor()
