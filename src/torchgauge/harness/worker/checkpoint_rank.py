"""A process of the check ``checkpoint-reshard``: two save a model in shards, all load it, and one alone."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from torchgauge.counted import counted
from torchgauge.records import from_plain
from torchgauge.suites.suite import HOST

SAVERS = 2


@dataclass(frozen=True)
class Checkpointing:
    """``count`` processes meet in ``folder`` and do it ``rounds`` times, with a model of these sizes."""

    count: int
    folder: str
    rounds: int
    sizes: tuple[tuple[str, int], ...]
    device: str = HOST
    index: int = 0

    @property
    def answer(self) -> Path:
        """The file with what the first process found."""
        return Path(self.folder) / "answer.json"


def main(text: str, rank: int) -> None:
    """Take part as process ``rank`` in what ``text`` says; what is not equal, or raises, ends it with 1."""
    import torch
    from torch import distributed
    from torch.distributed import checkpoint
    from torch.distributed.device_mesh import DeviceMesh

    from torchgauge.suites.distributed.parallel import network, sharded, whole

    asked = from_plain(Checkpointing, json.loads(text))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    device = torch.device(asked.device, asked.index + rank if asked.device != HOST else 0)
    known = getattr(distributed, "get_default_backend_for_device", None)
    backend = "gloo" if asked.device == HOST or known is None else known(device)
    store = distributed.FileStore(str(Path(asked.folder) / "meet"), asked.count)
    distributed.init_process_group(backend, store=store, rank=rank, world_size=asked.count)
    sizes = dict(asked.sizes)
    savers, everybody = (DeviceMesh(asked.device, list(range(n))) for n in (SAVERS, asked.count))
    group = savers.get_group() if rank < SAVERS else None
    right = network(sizes, seed=1).to(device)
    found: dict[str, list[float]] = {"checkpoint_save": [], "checkpoint_load": [], "checkpoint_size": []}

    def timed(metric: str, call: Callable[[], Any]) -> None:
        distributed.barrier()
        began = time.perf_counter()
        call()
        distributed.barrier()  # as long as the slowest
        found[metric].append(time.perf_counter() - began)

    def equal(model: Any) -> bool:
        expected = dict(right.named_parameters())
        pairs = [(whole(each.detach()), expected[name]) for name, each in model.named_parameters()]
        return bool(pairs) and all(torch.equal(*pair) for pair in pairs)

    for number in range(asked.rounds):
        place = Path(asked.folder) / f"round-{number}"
        saved = sharded(right, savers) if rank < SAVERS else None
        saves = partial(checkpoint.save, checkpoint_id=place, process_group=group)
        timed("checkpoint_save", partial(saves, {"model": saved.state_dict()}) if saved is not None else int)
        loaded = sharded(network(sizes, seed=2).to(device), everybody)
        assert not equal(loaded), "another seed made the same model"
        state = {"model": loaded.state_dict()}
        timed("checkpoint_load", partial(checkpoint.load, state, checkpoint_id=place))
        assert equal(loaded), f"loaded by {counted(asked.count, 'process')}, the model differs"
        if rank == 0:
            alone = network(sizes, seed=2).to(device)
            checkpoint.load({"model": alone.state_dict()}, checkpoint_id=place, no_dist=True)
            assert equal(alone), "loaded by one process, the model differs"
            found["checkpoint_size"].append(
                float(sum(each.stat().st_size for each in place.rglob("*") if each.is_file()))
            )
        distributed.barrier()
    if rank == 0:
        asked.answer.write_text(json.dumps(found), encoding="utf-8")
    distributed.destroy_process_group()
