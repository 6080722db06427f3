"""Child: realised hashes of one toy model in variations."""

from __future__ import annotations

import json
from dataclasses import replace

import torch

from torchgauge.harness.worker.realise import realise
from torchgauge.records import Workload
from torchgauge.suites.placing import placed
from torchgauge.suites.toy.models import build


def main() -> None:
    """Print the hash and the counts of each variation."""
    base = Workload("toy", "mlp", batch=4)
    variations = {
        "base": base,
        "again": base,
        "dtype": replace(base, dtype="bfloat16"),
        "mode": replace(base, mode="training"),
        "seed": replace(base, seed=1),
        "batch": replace(base, batch=5),
        "model": replace(base, model="convnet"),
        "python": replace(base, model="noop"),
    }
    found = {}
    for name, workload in variations.items():
        realised = realise(build(workload, {}))
        found[name] = [realised.hash, realised.parameters, realised.inputs]
    built = build(base, {})
    built.module.to(torch.float64)
    built.args = placed(None, built.args, {}, "meta", torch.float64).args
    found["cast"] = [realise(built).hash, 0, ""]
    built = build(base, {})
    built.stands_for = "synthetic, in the shape of a data set"
    realised = realise(built)
    found["synthetic"] = [realised.hash, realised.parameters, realised.inputs]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
