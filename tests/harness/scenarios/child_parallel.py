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
    tolerance = Tolerance(1e-4, 1e-4, 2.0, "")

    def made(way: str, mode: str) -> Subject:
        built = build(Workload("distributed", f"parallel-{way}", mode=mode, batch=4, shape=shape), {})
        session: Any = SimpleNamespace(seed=torch.manual_seed)
        return Subject(built.module, built.module, built.args, {}, built.loss, session, 1, built=built)

    def exact(subject: Subject, scenario: Any) -> dict[str, Any]:
        """The reference in float64."""
        wide = replace(
            subject,
            module=copy.deepcopy(subject.module).double(),
            args=tuple(each.double() for each in subject.args),
        )
        return dict(scenario.reference(wide))

    def judged(subject: Subject, scenario: Any) -> str:
        """What is wrong of everything together, "" for nothing."""
        found, right = scenario.observe(subject), scenario.reference(subject)
        return compare(right, found, exact(subject, scenario), tolerance).detail

    def wrong(way: str, part: Any) -> list[str]:
        """The gradients and changes of which each by itself tells that ``part`` is not synchronised."""
        subject = made(way, "training")
        subject.built = replace(subject.built, abilities={parallel.PARALLEL: part})
        found, right = parallel_training.observe(subject), parallel_training.reference(subject)
        wide = exact(subject, parallel_training)
        return [
            name
            for name in right
            if compare({name: right[name]}, {name: found[name]}, {name: wide[name]}, tolerance).detail
        ]

    def alone(module: Any, args: Any) -> parallel.Part:
        """No averaging of gradients: each process trains on its own part."""
        kept = copy.deepcopy(module)
        return parallel.Part(kept, kept, tuple(each.chunk(count)[rank] for each in args))

    def no_reduction(module: Any, args: Any) -> parallel.Part:
        """Shards, and gradients of the part of process 0 alone: what is left where only its own are taken."""
        part = parallel.by_shards(module, args)
        return replace(part, args=tuple(each.chunk(count)[0] for each in args))

    def not_summed(module: Any, args: Any) -> parallel.Part:
        """Layers in parts whose results are not summed."""
        part = parallel.by_layers(module, args)
        for block in part.module.blocks:
            for layer in (block.out, block.feed[2]):
                layer._forward_hooks.clear()
                layer.register_forward_hook(lambda _layer, _args, output: output.to_local())
        return part

    for way in parallel.WAYS:
        said[way] = judged(made(way, "training"), parallel_training)
    plants = {"ddp": alone, "fsdp2": no_reduction, "tensor_parallel": not_summed}
    said["wrong"] = {way: wrong(way, part) for way, part in plants.items()}
    subject = made("ddp", "training")
    said["parameters"] = [name for name, _ in subject.module.named_parameters()]
    shards = parallel.by_shards(subject.module, subject.args).module
    local = sum(each.to_local().numel() for each in shards.parameters())
    said["share"] = local / sum(each.numel() for each in subject.module.parameters())
    with torch.no_grad():
        said["forward"] = judged(made("tensor_parallel", "inference"), parallel_inference)
    print(json.dumps(said))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
