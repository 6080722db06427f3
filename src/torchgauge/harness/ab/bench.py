"""One host of one launch: the processes in which one side of the pairs on one device runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torchgauge.harness.events import EventReader
from torchgauge.harness.executors.station import Station
from torchgauge.harness.host_process import HostOptions, HostProcess
from torchgauge.harness.job import CALIBRATE, Job
from torchgauge.harness.watch import Watch, Watcher, default_memory_limit
from torchgauge.harness.worker_log import WorkerLog
from torchgauge.records import Environment, from_plain, to_json
from torchgauge.results.atomic_file import storage_errors

_NUMBERS = itertools.count(1)
"""Job files of all benches lie in one folder."""
COMPILER = ("torch._dynamo", "torch._inductor")
"""Not imported where nothing is compiled: every launch would pay for it."""
WORKER_MODULE = "torchgauge.harness.ab.side_run"

Variables = tuple[tuple[str, str], ...]


@dataclass
class Bench:
    """A host with ``variables``, started when a launch begins and ended with it.

    ``role`` names it in remarks. :meth:`begin` returns at once, so that the hosts of a launch import at
    the same time; :meth:`ready` waits.
    """

    station: Station
    role: str
    variables: Variables
    remarks: list[str] = field(default_factory=list)
    host: HostProcess | None = None
    answered: bool = False
    dead: bool = False

    def begin(self, *, warm: bool = True) -> None:
        """Start the host, if it does not run; raises :class:`InfrastructureError` without an interpreter."""
        if self.host is None and not self.dead:
            options = self._options(warm=warm)
            log = self.station.submission.folder / "logs" / "host.log"
            self.host = HostProcess(options, log, self.station.submission.clock)

    def ready(self) -> bool:
        """Wait for the host; one that dies of its imports is started anew without them, once."""
        if self.answered or self.dead:
            return self.answered
        self.begin()
        assert self.host is not None
        said = self.station.wait_for(self.host)
        if said is None and self.station.device.fork_safe and not self.station.submission.cancelled():
            self.remarks.append(
                f"the host of {self.role} {self.host.fate()}, see logs/host.log; "
                "every worker is a fresh process"
            )
            self.close()
            self.begin(warm=False)
            assert self.host is not None
            said = self.station.wait_for(self.host)
        if not said:
            self.close()
            self.dead = True
            if not self.station.submission.cancelled():
                self.remarks.append(f"the host of {self.role} did not come up; see logs/host.log")
            return False
        self.answered = True
        self.remarks += [f"host of {self.role}: {note}" for note in said["notes"]]
        return True

    def start(self, job: Job, log: Path, on_event: Callable[[dict[str, Any]], None]) -> Watch:
        """Give ``job`` to a worker of the host, which is ready; what watches it."""
        assert self.host is not None
        submission, settings = self.station.submission, job.settings
        stem = self.station.work / f"{next(_NUMBERS)}"
        names = ("events", "cursor", "job", "log")
        events, cursor, path, printed = (stem.with_suffix(f".{name}") for name in names)
        with storage_errors(path):
            path.write_text(to_json(replace(job, events=str(events), cursor=str(cursor))), encoding="utf-8")
        limit = settings.memory_limit_bytes or default_memory_limit()
        watcher = Watcher(self.host, settings, limit, submission.clock, submission.cancelled, on_event)
        self.host.send(cmd="run", job=str(path), log=str(printed), log_limit=settings.log_limit_bytes)
        return watcher.begin(EventReader(events, cursor), WorkerLog(printed, log))

    def describe(self, log: Path) -> Environment | None:
        """The environment as a worker of this host sees it; None where it could not say."""
        settings = replace(self.station.submission.plan.settings, calibrate=False)
        watch = self.start(
            self.station.job(CALIBRATE, at="start", settings=settings), log, lambda event: None
        )
        while not watch.look(0.5):
            pass
        for event in watch.ending.events:
            if event["ev"] == "environment":
                found = from_plain(Environment, event["environment"])
                return replace(found, notes=(*found.notes, *event["notes"]))
        return None

    def close(self) -> None:
        """End the host; a second call does nothing."""
        if self.host is not None:
            self.host.close()
            self.host, self.answered = None, False

    def _options(self, *, warm: bool) -> HostOptions:
        options = self.station.options(self.variables)
        compiled = any(p.case.configuration.compiled for group in self.station.groups for p in group.cases)
        preload = [name for name in options.preload if compiled or not name.startswith(COMPILER)]
        preload.append(WORKER_MODULE)
        return replace(options, preload=tuple(preload), warm=warm and options.warm)
