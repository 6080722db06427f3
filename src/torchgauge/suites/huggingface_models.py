"""Build transformers' models in the worker from their configuration class: never a download."""

from __future__ import annotations

import os
from typing import Any

from torchgauge.records import Workload
from torchgauge.suites.suite import BuiltWorkload
from torchgauge.suites.torchvision_schemas import define_missing_schemas

# Read once by huggingface_hub when it is imported, hence before transformers is.
os.environ["HF_HUB_OFFLINE"] = "1"


def build(workload: Workload, recipe: dict[str, Any]) -> BuiltWorkload:
    """The model that ``recipe`` describes (see ``HuggingFaceRecipe``), with inputs of its kind.

    Inference returns the model's output without a loss; training passes labels, and the loss is the
    model's own. Raises ``ImportError`` without transformers or where it lacks the class,
    ``NotImplementedError`` for another mode than inference and training.
    """
    if workload.mode not in {"inference", "training"}:
        raise NotImplementedError(f"the suite does not build models for the mode {workload.mode!r}")
    notes = define_missing_schemas()
    import torch

    from torchgauge.suites.dropout import silence_modules
    from torchgauge.suites.huggingface_inputs import make_inputs
    from torchgauge.suites.losses import model_loss

    training = workload.mode == "training"
    config, silenced = _config(workload, recipe)
    torch.manual_seed(workload.seed)
    module = _class(recipe["model_class"])(config)
    notes += silenced + silence_modules(module)
    inputs = make_inputs(recipe["inputs"], config, workload, labels=training)
    return BuiltWorkload(
        module=module.train(training),
        kwargs=inputs,
        loss=model_loss if training else None,
        items_per_step=workload.batch,
        item="image" if "pixel_values" in inputs else "sequence",
        notes=notes,
    )


def _config(workload: Workload, recipe: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    from torchgauge.suites.dropout import silence_config

    fields = dict(recipe.get("config", {}))
    if workload.size == "small":
        fields.update(recipe.get("small", {}))
    config = _class(recipe["config_class"])(**fields)
    silenced = silence_config(config)
    config.use_cache = False
    return config, ((f"dropout is off: {', '.join(silenced)}",) if silenced else ())


def _class(name: str) -> Any:
    import transformers

    try:
        return getattr(transformers, name)
    except AttributeError:
        raise ImportError(f"transformers {transformers.__version__} has no {name}") from None
