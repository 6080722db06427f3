"""One of two processes: trains in each way to split a model, and in wrong ways, and says what was judged."""

from __future__ import annotations

import copy
import json
import os
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any


def main(rank: int, count: int, place: str) -> None:
    """Meet the other in the file ``place``; says what is wrong of each way, "" for nothing, as JSON."""
    import torch
    from torch import distributed

    from torchgauge.harness.scenarios import parallel_inference, parallel_training
    from torchgauge.harness.scenarios.scenario import Subject
    from torchgauge.harness.worker.accuracy import compare
    from torchgauge.records import Tolerance, Workload
    from torchgauge.suites.distributed import parallel
    from torchgauge.suites.distributed.models import build

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = distributed.FileStore(place, count)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=count)
    shape = tuple({"blocks": 2, "width": 32, "heads": 4, "seq": 8}.items())
    said: dict[str, Any] = {}

    def made(way: str, mode: str) -> Subject:
        built = build(Workload("distributed", f"parallel-{way}", mode=mode, batch=4, shape=shape), {})
        session: Any = SimpleNamespace(seed=torch.manual_seed)
        return Subject(built.module, built.module, built.args, {}, built.loss, session, 1, built=built)

    def judged(subject: Subject, scenario: Any) -> str:
        found, right = scenario.observe(subject), scenario.reference(subject)
        wide = replace(
            subject,
            module=copy.deepcopy(subject.module).double(),
            args=tuple(each.double() for each in subject.args),
        )
        return compare(right, found, scenario.reference(wide), Tolerance(1e-4, 1e-4, 2.0, "")).detail

    def alone(module: Any, args: Any) -> parallel.Part:
        """No averaging of gradients: each process trains on its own part."""
        kept = copy.deepcopy(module)
        return parallel.Part(kept, kept, tuple(each.chunk(count)[rank] for each in args))

    for way in parallel.WAYS:
        said[way] = judged(made(way, "training"), parallel_training)
    subject = made("ddp", "training")
    subject.built = replace(subject.built, abilities={parallel.PARALLEL: alone})
    said["alone"] = judged(subject, parallel_training)
    shards = parallel.by_shards(subject.module, subject.args).module
    local = sum(each.to_local().numel() for each in shards.parameters())
    said["share"] = local / sum(each.numel() for each in subject.module.parameters())
    with torch.no_grad():
        said["forward"] = judged(made("tensor_parallel", "inference"), parallel_inference)
    print(json.dumps(said))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
