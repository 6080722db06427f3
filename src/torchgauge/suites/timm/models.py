"""Build timm's models in the worker: random weights from the seed, or timm's own if a run asks for them."""

from __future__ import annotations

from typing import Any

from torchgauge.counted import counted
from torchgauge.errors import MissingPackageError
from torchgauge.records import PRETRAINED, Workload
from torchgauge.suites.capabilities import LOSS, wanted
from torchgauge.suites.hub import reaching_hub
from torchgauge.suites.lacking import without_model
from torchgauge.suites.suite import BuiltWorkload
from torchgauge.suites.torchvision_schemas import define_missing_schemas

_FACTORS = {"weight", "gain", "skipinit_gain"}
"""Parameters that multiply what passes; one that is added, such as a bias, hides nothing at zero."""
_GAIN = 0.2
"""What they get: with 1, the tens of residual blocks of some models take the logits to thousands."""


def build(workload: Workload, recipe: dict[str, Any]) -> BuiltWorkload:
    """The timm model that ``workload`` names, on random images of the size that timm publishes for it.

    ``shape`` may hold ``image``, the side of a square image. Raises ``ImportError`` without timm,
    :class:`MissingPackageError` for a model that the installed timm does not have. Where published weights
    are asked for: ``NotImplementedError`` for a model without any, :class:`NoNetworkError` and
    :class:`MissingDataError`.
    """
    notes = define_missing_schemas()
    import torch

    pretrained = workload.weights == PRETRAINED
    torch.manual_seed(workload.seed)
    module = _create(recipe.get("model") or workload.model, pretrained, recipe.get("arguments", {}))
    notes += (f"weights: timm's {_source(module.pretrained_cfg)}",) if pretrained else open_blocks(module)
    channels, height, width = module.pretrained_cfg["input_size"]
    side = workload.sizes.get("image")
    return classifier(workload, module, (channels, side or height, side or width), notes)


def classifier(
    workload: Workload, module: Any, image: tuple[int, ...], notes: tuple[str, ...]
) -> BuiltWorkload:
    """Return ``workload`` with a classifier of random images of shape ``image`` (channels, height, width).

    Batch norms get the statistics of random images, unless they are trained or published.
    """
    import torch

    from torchgauge.suites.dropout import silence_modules
    from torchgauge.suites.losses import ClassLoss

    training = LOSS in wanted(workload)
    notes += silence_modules(module)
    images = torch.randn((workload.batch, *image), generator=torch.Generator().manual_seed(workload.seed))
    if not training and workload.weights != PRETRAINED:
        notes += calibrate_batch_norm(module, image, workload.seed)
    return BuiltWorkload(
        module=module.train(training),
        args=(images,),
        loss=ClassLoss(workload.seed) if training else None,
        items_per_step=workload.batch,
        item="image",
        notes=notes,
    )


def _create(name: str, pretrained: bool, arguments: dict[str, Any]) -> Any:
    import timm

    if ":" not in name:  # with one, it is a folder or a repository that brings its own configuration
        published = _published(name)
        if pretrained and not published:
            raise NotImplementedError(f"timm {timm.__version__} publishes no weights of {name}")
    if not pretrained:
        return timm.create_model(name, pretrained=False, **arguments)
    with reaching_hub(f"timm's {name}"):
        return timm.create_model(name, pretrained=True, **arguments)


def _published(name: str) -> bool:
    """Whether timm publishes weights of ``name``; :class:`MissingPackageError` if it has no such model."""
    import timm
    from timm.models import get_pretrained_cfg, is_model

    if not is_model(name.partition(".")[0]):
        raise without_model(timm, name, timm.list_models())
    try:
        config = get_pretrained_cfg(name)
    except RuntimeError as error:  # the architecture is there, and the tag is not
        hint = "install another version of timm"
        raise MissingPackageError(f"timm {timm.__version__} has no {name}: {error}", hint=hint) from None
    return config is not None and config.has_weights


def _source(config: dict[str, Any]) -> str:
    """Where the weights of a pretrained configuration come from."""
    places = ("hf_hub_id", "url", "file", "source")
    found = next((str(config[place]) for place in places if config.get(place)), "own")
    return f"{config.get('architecture', 'model')} from {found}"


def open_blocks(module: Any) -> tuple[str, ...]:
    """Give factors that start at zero a value; a note where the module has any.

    Why: many recipes of training start the last gain of each residual block, or the classifier, at zero. The
    output then depends on no such block, or is zero, and an accuracy check compares nothing of them.
    """
    import torch

    opened = 0
    with torch.no_grad():
        for part in module.modules():
            for name, factor in part.named_parameters(recurse=False):
                if name not in _FACTORS or factor.any():
                    continue
                opened += 1
                if isinstance(part, torch.nn.Linear):
                    factor.normal_(std=part.in_features**-0.5)
                else:
                    factor.fill_(_GAIN)
    return (f"{opened} gains or classifiers that start at zero were set to other values",) if opened else ()


def calibrate_batch_norm(module: Any, image: tuple[int, ...], seed: int) -> tuple[str, ...]:
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
    return (f"statistics of {counted(len(norms), 'batch norm')} are those of four random images",)
