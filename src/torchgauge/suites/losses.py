"""Losses for models that bring none; only the worker imports this file.

Why labels are computed and not stored: a stored tensor would have to follow the module to its device,
and a copy from the host in every step would be measured as if it were the model's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


def loss_in(output: Any) -> Any:
    """Return the ``loss`` of what a model returns, or the output itself; one element becomes a scalar."""
    found = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", output)
    return found.reshape(()) if isinstance(found, torch.Tensor) and found.numel() == 1 else found


class ClassLoss:
    """Cross entropy of logits (batch, classes) against fixed labels spread over the classes."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, output: Any) -> Any:
        """The scalar loss; for several heads, the mean of theirs."""
        if isinstance(output, (tuple, list)):
            return torch.stack([self(head) for head in output]).mean()
        batch, classes = output.shape
        labels = (torch.arange(batch, device=output.device) * 7919 + self.seed) % classes
        return torch.nn.functional.cross_entropy(output, labels)


class TargetLoss:
    """Squared distance from a fixed target, summed over features and averaged over items and places.

    For outputs that end in a normalisation: their mean square hardly depends on what came before. Every
    item has the same target, so that a part of the batch has the loss of its own items.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, output: Any) -> Any:
        """The scalar loss of ``output`` (batch, seq, width), in float32 at least: 16 bits are too coarse."""
        places = torch.arange(output[0].numel(), device=output.device)
        wide = output.to(torch.promote_types(output.dtype, torch.float32))
        target = ((places * 7919 + self.seed) % 251 / 125 - 1).view(output.shape[1:])
        return (wide - target).square().sum() / len(output) / output.shape[1]


def mean_loss(output: Any) -> Any:
    """The mean of the squares of ``output``: a loss for outputs that are no logits."""
    return output.square().mean()


def model_loss(output: Any) -> Any:
    """The loss that the model computed itself, from labels among its inputs."""
    return output.loss
