"""The processes of one group: where they meet, and how they come to the same decisions.

Ranks that step together must make the same number of steps. How many that is follows from clocks, and clocks
differ; so what decides is agreed on: the clock of rank 0, and of each block the times of the slowest rank.
Agreeing costs a small collective, outside of what is timed. A process that is alone agrees with itself.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from torchgauge.devices.session import DeviceSession
from torchgauge.harness.events import EventWriter
from torchgauge.harness.flight_records import EVENT
from torchgauge.harness.job import Job
from torchgauge.harness.worker.watchdog import Watchdog, recorder
from torchgauge.records import Phase, RunSettings, Scalar
from torchgauge.suites.suite import HOST

PATIENCE = timedelta(days=1)
"""How long a rank waits for another: the parent's deadlines end what hangs, and know what to call it."""
_CPU_BACKEND = "gloo"


class Ranks:
    """What one process knows of those of its group."""

    def __init__(self) -> None:
        self.count, self.rank = 1, 0
        self._own_s = 0.0
        self._watchdog: Watchdog | None = None
        self._settings: RunSettings | None = None

    def join(self, job: Job, session: DeviceSession, events: EventWriter) -> None:
        """Meet the other processes of ``job``, watched from now on; raises what torch raises.

        ``NotImplementedError`` is for a device that torch has no back end for processes of.
        """
        if job.processes == 1:
            return
        import torch
        from torch import distributed

        kind = session.torch_device.type
        known = getattr(distributed, "get_default_backend_for_device", None)
        try:
            backend = _CPU_BACKEND if kind == HOST or known is None else known(torch.device(kind))
        except ValueError as error:  # in torch's words
            raise NotImplementedError(str(error)) from error
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        place = distributed.FileStore(job.rendezvous, job.processes)  # a URL cannot hold every path
        place.set_timeout(PATIENCE)
        distributed.init_process_group(
            backend, store=place, rank=job.rank, world_size=job.processes, timeout=PATIENCE
        )
        # a group of its own: the model's collectives and ours must not be taken for each other
        self._group = distributed.new_group(backend=_CPU_BACKEND, timeout=PATIENCE, group_desc="torchgauge")
        self.count, self.rank = job.processes, job.rank
        self._settings, read = job.settings, recorder()
        if read is not None:
            asked = Path(f"{job.rendezvous}-asked")
            self._watchdog = Watchdog(job.rank, asked, lambda found: events.emit(EVENT, record=found), read)
            self._watchdog.start()

    def enter(self, phase: Phase) -> None:
        """``phase`` begins, with its deadline."""
        if self._watchdog is not None and self._settings is not None:
            self._watchdog.enter(self._settings.deadlines.of(phase))

    def leave(self) -> None:
        """Agree with nobody any more: a step has failed here, and the others are elsewhere."""
        self.count = 1

    def moment(self, seconds: float) -> float:
        """``seconds`` as rank 0 has them."""
        if self.count == 1:
            return seconds
        found = self._tensor([seconds])
        self._collectives().broadcast(found, src=0, group=self._group)
        return float(found[0])

    def slowest(self, *values: float | None) -> tuple[float | None, ...]:
        """Each of the values as it is in the rank that has most of it; the first is its own wall time."""
        if self.count == 1:
            return values
        self._own_s += values[0] or 0.0
        found = self._tensor([-1.0 if value is None else value for value in values])
        self._collectives().all_reduce(found, op=self._collectives().ReduceOp.MAX, group=self._group)
        return tuple(
            None if value is None else float(each) for value, each in zip(values, found, strict=True)
        )

    def facts(self) -> dict[str, Scalar]:
        """How many there are, and which took longest by itself; nothing of a process that is alone."""
        if self.count == 1:
            return {}
        own = self._tensor([self._own_s if rank == self.rank else 0.0 for rank in range(self.count)])
        self._collectives().all_reduce(own, group=self._group)
        return {"processes": self.count, "slowest_rank": int(own.argmax())}

    def _tensor(self, values: list[float]) -> Any:
        import torch

        return torch.tensor(values, dtype=torch.float64)

    def _collectives(self) -> Any:
        from torch import distributed

        return distributed


RANKS = Ranks()
"""Those of this process, which runs one job."""
