"""Child: build models with pretrained weights from folders, and fail to where there are none; print JSON.

Usage: child_pretrained.py FOLDER offline|unreachable. ``offline`` forbids the hub, ``unreachable``
names one that does not answer; the caches are empty folders in both.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

root = Path(sys.argv[1])
os.environ |= {"HF_HOME": str(root / "hub"), "TORCH_HOME": str(root / "torch")}
os.environ |= {
    "offline": {"HF_HUB_OFFLINE": "1"},
    "unreachable": {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:9"},
}[sys.argv[2]]
time.sleep = lambda _seconds: None  # libraries wait a minute between their attempts

import torch  # noqa: E402

from torchgauge.records import PRETRAINED, Workload  # noqa: E402
from torchgauge.registry import load  # noqa: E402
from torchgauge.suites.huggingface import models as huggingface_models  # noqa: E402
from torchgauge.suites.suite import BuiltWorkload  # noqa: E402
from torchgauge.suites.timm import models as timm_models  # noqa: E402

warnings.simplefilter("ignore")
BERT = Workload("huggingface", "BertForMaskedLM", shape=(("seq", 16),))
RESNET = Workload("timm", "resnet18", shape=(("image", 64),))


def recipe(suite: str, model: str) -> dict[str, Any]:
    entry = next(entry for entry in load("torchgauge.suites", suite).models() if entry.name == model)
    return dict(entry.recipe)


def published(workload: Workload) -> Workload:
    return replace(workload, weights=PRETRAINED)


def equal(one: Any, two: Any) -> bool:
    first, second = one.state_dict(), two.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def facts(built: BuiltWorkload, saved: Any) -> dict[str, Any]:
    with torch.no_grad():
        output = built.module(*built.args, **built.kwargs)
    output = output if isinstance(output, torch.Tensor) else output.logits
    return {
        "equal": equal(built.module, saved),
        "finite": bool(output.isfinite().all()),
        "notes": list(built.notes),
        "dropout": sum(part.p for part in built.module.modules() if isinstance(part, torch.nn.Dropout)),
        "parameters": sum(parameter.numel() for parameter in built.module.parameters()),
    }


def from_a_transformers_folder(folder: Path) -> dict[str, Any]:
    """Another seed than the workload's: weights that the seed alone would give prove nothing."""
    own = recipe("huggingface", "BertForMaskedLM")
    saved = huggingface_models.build(replace(BERT, seed=7), own).module
    saved.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"hidden_dropout_prob": 0.25, "attention_probs_dropout_prob": 0.25}  # as a published one has
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    built = huggingface_models.build(published(BERT), {**own, "checkpoint": str(folder)})
    return facts(built, saved)


def with_another_head(folder: Path) -> dict[str, Any]:
    """The folder holds a language model; the head of a question answering model is not in it."""
    own = {**recipe("huggingface", "BertForQuestionAnswering"), "checkpoint": str(folder)}
    one, two = (huggingface_models.build(published(BERT), own) for _ in range(2))
    return {"repeated": equal(one.module, two.module), "notes": list(one.notes)}


def from_a_timm_folder(folder: Path) -> dict[str, Any]:
    import timm

    saved = timm_models.build(replace(RESNET, seed=7), {}).module
    timm.models.save_for_hf(saved, folder)
    return facts(timm_models.build(published(RESNET), {"model": f"local-dir:{folder}"}), saved)


def error(build: Callable[..., Any], workload: Workload, own: dict[str, Any]) -> str:
    try:
        build(workload, own)
    except Exception as raised:  # noqa: BLE001  whatever it is, the test looks at it
        return f"{type(raised).__name__}: {raised}"
    return "built"


def errors() -> dict[str, str]:
    bert = recipe("huggingface", "BertForMaskedLM")
    hugging, timm = huggingface_models.build, timm_models.build
    return {
        "hub of transformers": error(hugging, published(BERT), bert),
        "hub of timm": error(timm, published(RESNET), {}),
        "no checkpoint": error(hugging, published(BERT), {**bert, "checkpoint": ""}),
        "no class": error(hugging, BERT, {**bert, "model_class": "BertForNothing"}),
        "no weights": error(timm, published(RESNET), {"model": "botnet50ts_256"}),
        "no model": error(timm, RESNET, {"model": "resnet18000"}),
        "no tag": error(timm, RESNET, {"model": "resnet18.nonsense"}),
    }


found: dict[str, Any] = {"errors": errors()}
if sys.argv[2] == "offline":
    found["transformers"] = from_a_transformers_folder(root / "bert")
    found["head"] = with_another_head(root / "bert")
    found["timm"] = from_a_timm_folder(root / "resnet")
print(json.dumps(found))
