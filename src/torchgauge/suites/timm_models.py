"""Build timm's models in the worker: random weights from the seed, never a download."""

from __future__ import annotations

from typing import Any

from torchgauge.records import Workload
from torchgauge.suites.suite import BuiltWorkload
from torchgauge.suites.torchvision_schemas import define_missing_schemas


def build(workload: Workload, recipe: dict[str, Any]) -> BuiltWorkload:
    """The timm model that ``workload`` names, on random images of the size that timm publishes for it.

    ``shape`` may hold ``image``, the side of a square image. Raises ``ImportError`` without timm,
    ``NotImplementedError`` for another mode than inference and training.
    """
    if workload.mode not in {"inference", "training"}:
        raise NotImplementedError(f"image models have no mode {workload.mode!r}")
    notes = define_missing_schemas()
    import timm
    import torch

    from torchgauge.suites.dropout import silence_modules
    from torchgauge.suites.losses import ClassLoss

    training = workload.mode == "training"
    torch.manual_seed(workload.seed)
    name = recipe.get("model") or workload.model
    module = timm.create_model(name, pretrained=False, **recipe.get("arguments", {}))
    notes += silence_modules(module)
    channels, height, width = module.pretrained_cfg["input_size"]
    side = dict(workload.shape).get("image")
    size = (workload.batch, channels, side or height, side or width)
    images = torch.randn(size, generator=torch.Generator().manual_seed(workload.seed))
    if not training:
        notes += _calibrate_batch_norm(module, size[1:], workload.seed)
    return BuiltWorkload(
        module=module.train(training),
        args=(images,),
        loss=ClassLoss(workload.seed) if training else None,
        items_per_step=workload.batch,
        item="image",
        notes=notes,
    )


def _calibrate_batch_norm(module: Any, image: tuple[int, ...], seed: int) -> tuple[str, ...]:
    """Give batch norms the statistics of four random images; a note where the module has any.

    Why: the initial statistics (mean 0, variance 1) fit no random weights. Without this the logits of
    inception_v3 are about 1e12 and those of lcnet_050 about 1e-7, and an accuracy check compares nothing.
    """
    import torch
    from torch.nn.modules.batchnorm import _BatchNorm

    norms = [part for part in module.modules() if isinstance(part, _BatchNorm) and part.track_running_stats]
    if not norms:
        return ()
    momenta = [part.momentum for part in norms]
    for part in norms:
        part.momentum = 1.0
    module.train()
    with torch.no_grad():
        module(torch.randn((4, *image), generator=torch.Generator().manual_seed(seed + 1)))
    for part, momentum in zip(norms, momenta, strict=True):
        part.momentum = momentum
        part.num_batches_tracked.zero_()
    return (f"statistics of {len(norms)} batch norms are those of four random images",)
