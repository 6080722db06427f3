"""Child: build every point of the suite of single operations and run it once, print JSON. Usage: [DTYPE]."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from torchgauge.registry import load, resolve
from torchgauge.suites.catalog import workload_for


def main(dtype: str) -> None:
    torch.set_num_threads(1)
    suite = load("torchgauge.suites", "micro")
    rows: list[dict[str, Any]] = []
    for entry in suite.models():
        for point in entry.points:
            workload = workload_for("micro", entry, "inference", dtype=dtype, point=point)
            built = resolve(suite.builder)(workload, {})
            with torch.no_grad(), FlopCounterMode(display=False) as counter:
                output = built.module(*built.args)
            rows.append(
                {
                    "name": f"{entry.name}[{workload.point}]",
                    "finite": bool(torch.isfinite(output).all()),
                    "flops": built.work.flops,
                    "bytes": built.work.bytes,
                    "counted": counter.get_total_flops(),
                }
            )
    print(json.dumps(rows))


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["float32"]))
