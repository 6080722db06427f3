"""Executor ``local``: workers on this machine, several devices side by side; several prepare, one times."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from torchgauge.devices.discover import parse_target
from torchgauge.harness.executors.executor import RunNote, Submission, Yield
from torchgauge.harness.executors.fleet import FleetDevice
from torchgauge.harness.pool.devices_at_once import DevicesAtOnce
from torchgauge.processes.process_tree import left_in_shared_memory
from torchgauge.results.atomic_file import storage_errors
from torchgauge.results.hostile_text import one_line

MOST_NAMED = 20
"""Files left in shared memory that a note names."""


@dataclass(frozen=True)
class LocalOptions:
    """Options of this executor.

    ``devices_at_once`` accelerators are at work side by side, 0: as many as ``--prefetch`` prepares groups;
    ``timed_at_once`` of them may time at the same time. ``spares`` are devices, with commas between them,
    that may take what another one of their kind leaves.
    """

    devices_at_once: int = 0
    timed_at_once: int = 1
    spares: str = ""


@dataclass(frozen=True)
class LocalExecutor:
    """The built-in executor."""

    name: str = "local"
    options: ClassVar[type] = LocalOptions

    def fleet(self, options: LocalOptions) -> list[FleetDevice]:
        """The accelerators of this machine, and who has their leases."""
        from torchgauge.harness.executors.local_fleet import local_fleet

        return local_fleet()

    def submit(self, submission: Submission) -> Iterator[Yield]:
        """Run the groups of all devices."""
        work, began = submission.folder / "work", submission.clock.now()
        given = submission.options  # those of another executor, where that hands its work to this one
        options = given if isinstance(given, LocalOptions) else LocalOptions()
        shutil.rmtree(work, ignore_errors=True)
        with storage_errors(work):
            work.mkdir(parents=True)
        try:
            yield from DevicesAtOnce(
                submission,
                work,
                options.devices_at_once or submission.plan.settings.prefetch,
                options.timed_at_once,
                [parse_target(each) for each in options.spares.split(",") if each],
            ).run()
            if left := left_in_shared_memory(began):
                more = f" and {len(left) - MOST_NAMED:,} more" if len(left) > MOST_NAMED else ""
                names = one_line(", ".join(left[:MOST_NAMED]), 2000)
                yield RunNote(f"files left in shared memory, which torchgauge does not remove: {names}{more}")
        finally:
            shutil.rmtree(work, ignore_errors=True)


EXECUTOR = LocalExecutor()
