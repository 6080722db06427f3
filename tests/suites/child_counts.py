"""Child: count the parameters of a suite's models at size ``full``, on the meta device; print JSON.

Usage: child_counts.py SUITE [NAMES].
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

from torchgauge.records import Workload
from torchgauge.registry import load
from torchgauge.suites.huggingface import models as huggingface_models
from torchgauge.suites.suite import ModelEntry
from torchgauge.suites.timm import models as timm_models
from torchgauge.suites.torchvision_schemas import define_missing_schemas

warnings.simplefilter("ignore")
define_missing_schemas()
import torch  # noqa: E402


def module(suite: str, entry: ModelEntry) -> Any:
    """The model as the build function makes it, without inputs: those are no part of the count."""
    recipe: dict[str, Any] = dict(entry.recipe)
    with torch.device("meta"):
        if suite == "timm":
            return timm_models._create(recipe.get("model") or entry.name, False, recipe.get("arguments", {}))
        return huggingface_models._random(Workload(suite, entry.name, size="full"), recipe)[0]


suite, names = sys.argv[1], sys.argv[2:]
wanted = [
    entry
    for entry in load("torchgauge.suites", suite).models()
    if not names or entry.name in names[0].split(",")
]
print(
    json.dumps(
        [
            {
                "model": entry.name,
                "declared": entry.parameters,
                "full": sum(parameter.numel() for parameter in module(suite, entry).parameters()),
            }
            for entry in wanted
        ]
    )
)
