"""Build image models of torchvision in the worker, with random weights or torchvision's own."""

from __future__ import annotations

from typing import Any

from torchgauge.records import PRETRAINED, Workload
from torchgauge.suites.hub import reaching_hub
from torchgauge.suites.lacking import without_model
from torchgauge.suites.suite import BuiltWorkload
from torchgauge.suites.timm.models import classifier, open_blocks
from torchgauge.suites.torchvision_schemas import define_missing_schemas

SIDE = 224
"""Pixels of an image in each direction."""


def build(workload: Workload, recipe: dict[str, Any]) -> BuiltWorkload:  # noqa: ARG001
    """Return the classifier of images that ``workload`` names.

    Raises ``ImportError`` without torchvision, :class:`MissingPackageError` for a model that it does not
    have, and ``NotImplementedError`` for one of another task.
    """
    notes = define_missing_schemas()
    import torch
    import torchvision

    name = workload.model
    try:
        maker = torchvision.models.get_model_builder(name)
    except ValueError:
        raise without_model(torchvision, name, torchvision.models.list_models()) from None
    if (task := maker.__module__.split(".")[2]) in (
        "detection",
        "segmentation",
        "video",
        "quantization",
        "optical_flow",
    ):
        raise NotImplementedError(
            f"{name} is a model of {task}, whose inputs are unknown. "
            "Try: write a file that returns model and inputs"
        )
    torch.manual_seed(workload.seed)
    if workload.weights == PRETRAINED:
        with reaching_hub(f"torchvision's {name}"):
            module = maker(weights="DEFAULT")
    else:
        module = maker(weights=None)
        notes += open_blocks(module)
    return classifier(workload, module, (3, SIDE, SIDE), notes)
