"""How many of TorchBench's core models run here: read from a store, nothing is run.

Fill a store first, for example offline, with the packages of the guide on TorchBench:

    torchgauge run torchbench --tier full --device D --config eager --mode inference,training --threads 1

then ``python benchmarks/torchbench_reach.py --store STORE``. For one mode and configuration it prints how
many models have a row, how many reached phase ``measure``, how many passed, and every other one
with its reason.
``--light`` restricts training to the 44 models for which PyTorch's own step was tried on a laptop.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from torchgauge.results.query import query
from torchgauge.results.store import Store
from torchgauge.suites.torchbench import SUITE

MEASURED = {"measure", "done"}
WIDTH = 200
LIGHT = (
    "BERT_pytorch",
    "LearningToPaint",
    "alexnet",
    "basic_gnn_gcn",
    "basic_gnn_gin",
    "dcgan",
    "demucs",
    "densenet121",
    "dlrm",
    "fastNLP_Bert",
    "functorch_dp_cifar10",
    "hf_Albert",
    "hf_Bart",
    "hf_Bert",
    "hf_DistilBert",
    "hf_GPT2",
    "hf_T5",
    "hf_Whisper",
    "lennard_jones",
    "llama",
    "maml",
    "microbench_unbacked_tolist_sum",
    "mnasnet1_0",
    "mobilenet_v2",
    "mobilenet_v2_quantized_qat",
    "mobilenet_v3_large",
    "nanogpt",
    "nvidia_deeprecommender",
    "opacus_cifar10",
    "phlippe_densenet",
    "phlippe_resnet",
    "pyhpc_equation_of_state",
    "pytorch_CycleGAN_and_pix2pix",
    "pytorch_unet",
    "resnet18",
    "resnet50",
    "shufflenet_v2_x1_0",
    "soft_actor_critic",
    "squeezenet1_1",
    "timm_efficientnet",
    "timm_vision_transformer",
    "timm_vovnet",
    "tts_angular",
    "vgg16",
)
"""Models whose training upstream offers or claims, and whose step is small enough for a laptop."""


def latest(store: Store, core: Iterable[str], mode: str, configuration: str) -> dict[str, Mapping[str, Any]]:
    """The newest row of each core model that was run in ``mode`` and ``configuration``."""
    frame = query(store, ["suite=torchbench", f"mode={mode}", f"configuration={configuration}"])
    wanted = set(core)
    rows: dict[str, Mapping[str, Any]] = {}
    for row in frame.sort_values("started_at").to_dict("records"):
        if row["model"] in wanted and row["status"] != "not_run":
            rows[row["model"]] = row
    return rows


def report(rows: Mapping[str, Mapping[str, Any]], core: tuple[str, ...]) -> dict[str, Any]:
    """The counts, and status, cause, phase and reason of every model that did not pass."""
    passed = [name for name, row in rows.items() if row["status"] == "pass"]
    rest = {name: _why(rows[name]) if name in rows else "no row" for name in core if name not in passed}
    return {
        "models": len(core),
        "rows": len(rows),
        "reached_measure": sum(row["phase"] in MEASURED for row in rows.values()),
        "passed": len(passed),
        "passed_over_synthetic_data": sum(_synthetic(rows[name]) for name in passed),
        "not_passed": rest,
    }


def _synthetic(row: Mapping[str, Any]) -> bool:
    """Whether the row's inputs stand for a data set that was not there."""
    return str(json.loads(row["facts"] or "{}").get("inputs", "")).startswith("synthetic")


def _why(row: Mapping[str, Any]) -> str:
    cause = f" {row['cause']}" if row["cause"] else ""
    return f"{row['status']}{cause} in {row['phase']}: {row['reason']}"


def main() -> None:
    """Print the table, or with ``--json`` the same as one object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--store", default="torchgauge-results")
    parser.add_argument("--mode", default="inference", choices=["inference", "training"])
    parser.add_argument("--config", default="eager")
    parser.add_argument("--light", action="store_true", help="only the 44 models that train on a laptop")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    core = tuple(model.name for model in SUITE.models() if "canary" not in model.tiers)
    if arguments.light:
        core = tuple(name for name in core if name in LIGHT)
    rows = latest(Store.open(arguments.store), core, arguments.mode, arguments.config)
    found = report(rows, core)
    if arguments.json:
        json.dump(found, sys.stdout, indent=1)
        return
    print(f"{arguments.mode}, {arguments.config}: {found['models']} models, {found['rows']} rows")
    print(f"  reached measure  {found['reached_measure']}")
    synthetic = found["passed_over_synthetic_data"]
    print(f"  pass             {found['passed']}, {synthetic} of them over synthetic data")
    for name, why in found["not_passed"].items():
        print(f"  {name:<34} {' '.join(why.split())[:WIDTH]}")


if __name__ == "__main__":
    main()
