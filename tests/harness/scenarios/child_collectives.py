"""One of several processes: calls every collective of the suite once and says which were right to the bit."""

from __future__ import annotations

import json
import os
import sys


def main(rank: int, count: int, place: str) -> None:
    """Meet the others in the file ``place``; says names and verdicts as JSON."""
    from torch import distributed

    from torchgauge.harness.scenarios.collective_steps import judge, observe, reference
    from torchgauge.harness.scenarios.scenario import Subject
    from torchgauge.records import Workload
    from torchgauge.suites.distributed.collectives import CLASSES, FUNCTIONAL
    from torchgauge.suites.distributed.models import build

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = distributed.FileStore(place, count)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=count)
    said = {}
    for family, names in (("collectives", CLASSES), ("functional", FUNCTIONAL)):
        for name in names:
            model = f"{family}-{name}"
            workload = Workload("distributed", model, mode="collective", shape=(("bytes", 1000),))
            built = build(workload, {})
            subject = Subject(built.module, built.module, built.args, {}, None, None, 0, built=built)  # type: ignore[arg-type]
            seen = [observe(subject) for _ in range(2)]  # the second begins with the same message
            told = [judge(reference(subject), each, None, None) for each in seen]  # type: ignore[arg-type]
            said[model] = [each.detail for each in told]
    print(json.dumps(said))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
