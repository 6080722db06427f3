"""A process of a group in which one does, on purpose, what makes the others wait in a collective."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from torchgauge.harness.flight_records import FlightRecord
from torchgauge.harness.worker.watchdog import Watchdog, in_its_last_call, read_record, recorder
from torchgauge.records import from_plain, to_json
from torchgauge.suites.suite import HOST

ELEMENTS = 8
NOT_RECORDED = 7
"""The exit status of a process whose torch keeps no record that can be read."""


@dataclass(frozen=True)
class Injected:
    """What goes wrong: ``kind`` (of :data:`KINDS`, or "" for nothing) by ``culprit`` at call ``number``.

    ``count`` processes meet in ``folder``, where each writes what its watchdog tells; a call may take
    ``limit_s``. They are on devices of torch type ``device``, the first of them on number ``index``.
    """

    kind: str
    culprit: int
    number: int
    count: int
    limit_s: float
    folder: str
    device: str = HOST
    index: int = 0

    def record(self, rank: int) -> Path:
        """The file with what process ``rank`` told first."""
        return Path(self.folder) / f"record-{rank}.json"


def main(text: str, rank: int) -> None:
    """Take part as process ``rank`` in what ``text`` says; a call that is wrong or raises ends it."""
    injected = from_plain(Injected, json.loads(text))
    read = recorder()
    if read is None:
        os._exit(NOT_RECORDED)
    message = _meet(injected, rank)
    told = threading.Event()

    def tell(record: FlightRecord) -> None:
        if not told.is_set():
            file = injected.record(rank)
            file.with_suffix(".new").write_text(to_json(record), encoding="utf-8")
            file.with_suffix(".new").rename(file)
            told.set()

    dog = Watchdog(rank, Path(injected.folder) / "asked", tell, read)
    dog.start()
    dog.enter(injected.limit_s)
    try:
        for number in range(1, injected.number + 3):
            if (rank, number) == (injected.culprit, injected.number) and injected.kind:
                KINDS[injected.kind](message, injected)
            else:
                _sum(message)
    except RuntimeError:  # what it was in is what it waited for, until it was told that nobody comes
        tell(in_its_last_call(read_record(rank, dog.watched, read)))
        os._exit(1)
    os._exit(0)


def _meet(injected: Injected, rank: int) -> Any:
    """Join the group; the message that all sum."""
    import torch
    from torch import distributed

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    device = torch.device(injected.device, injected.index + rank if injected.device != HOST else 0)
    known = getattr(distributed, "get_default_backend_for_device", None)
    backend = "gloo" if injected.device == HOST or known is None else known(device)
    store = distributed.FileStore(str(Path(injected.folder) / "meet"), injected.count)
    limit = timedelta(seconds=injected.limit_s)
    distributed.init_process_group(backend, store=store, rank=rank, world_size=injected.count, timeout=limit)
    message = torch.ones(ELEMENTS, device=device)
    distributed.all_reduce(message.clone())  # the first call connects them
    return message


def _sum(message: Any) -> None:
    from torch import distributed

    found = message.clone()
    distributed.all_reduce(found)
    if not bool((found == distributed.get_world_size()).all()):
        raise SystemExit(f"the sum of ones is {found.tolist()}")


# --- what goes wrong -----------------------------------------------------------------------------


def come_late(message: Any, injected: Injected) -> None:
    """Join when all watchdogs have told: the call ends well."""
    while not all(injected.record(rank).exists() for rank in range(injected.count)):
        time.sleep(0.05)
    _sum(message)


def stay_away(_message: Any, _injected: Injected) -> None:
    """Never join, and wait for something else."""
    time.sleep(3600)


def call_another(message: Any, _injected: Injected) -> None:
    """Call something else."""
    from torch import distributed

    distributed.broadcast(message.clone(), distributed.get_rank())


def send_another_size(message: Any, _injected: Injected) -> None:
    """Sum a message of another size."""
    from torch import distributed

    distributed.all_reduce(message.repeat(2))


def die(_message: Any, _injected: Injected) -> None:
    """End before the call."""
    os._exit(3)


def compute_on(message: Any, _injected: Injected) -> None:
    """Never come out of a computation."""
    import torch

    matrix = torch.ones(64, 64, device=message.device)
    while True:
        matrix = (matrix @ matrix).clamp(max=1.0)


KINDS = {
    "late": come_late,
    "missing": stay_away,
    "operation": call_another,
    "shape": send_another_size,
    "dead": die,
    "stuck": compute_on,
}
"""What may go wrong, by name."""
