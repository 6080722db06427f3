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
            for target, groups in groupby(submission.groups, key=lambda group: group.device):
                yield from Station(submission, target, work, list(groups)).run()
        finally:
            shutil.rmtree(work, ignore_errors=True)


EXECUTOR = LocalExecutor()
