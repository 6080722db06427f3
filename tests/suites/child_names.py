"""Child: names in the data files that the installed timm and transformers do not have, as JSON."""

from __future__ import annotations

import json
import warnings
from typing import Any

from torchgauge.suites.huggingface import suite as huggingface
from torchgauge.suites.timm import suite as timm_suite
from torchgauge.suites.torchvision_schemas import define_missing_schemas

define_missing_schemas()
import timm  # noqa: E402
import transformers  # noqa: E402


def missing_in_timm() -> list[str]:
    known = set(timm.list_models()) | set(timm.list_pretrained())
    names = [str(entry.recipe.get("model") or entry.name) for entry in timm_suite.SUITE.models()]
    return [name for name in names if name not in known]


def missing_in_transformers() -> list[str]:
    recipes = [entry.recipe for entry in huggingface.SUITE.models()]
    names = [str(recipe[key]) for recipe in recipes for key in ("model_class", "config_class")]
    return [name for name in names if not hasattr(transformers, name)]


def unknown_fields() -> list[str]:
    """Overrides that are no field of their configuration class (a class accepts any keyword)."""
    found = []
    for entry in huggingface.SUITE.models():
        config = getattr(transformers, str(entry.recipe["config_class"]))()
        for key in ("config", "small"):
            found += [f"{entry.name}: {field}" for field in missing(config, entry.recipe.get(key) or {})]
    return found


def missing(config: Any, fields: Any) -> list[str]:
    """Paths of ``fields`` that ``config`` lacks, those of nested configurations too."""
    found = []
    for name, value in fields.items():
        if not hasattr(config, name):
            found.append(name)
        elif isinstance(value, dict):
            found += [f"{name}.{field}" for field in missing(getattr(config, name), value)]
    return found


warnings.simplefilter("ignore")
print(
    json.dumps(
        {"timm": missing_in_timm(), "transformers": missing_in_transformers(), "fields": unknown_fields()}
    )
)
