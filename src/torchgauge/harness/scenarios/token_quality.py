"""How near the logits over a given text are to the reference's, in terms that people compare models by."""

from __future__ import annotations

from typing import Any

import torch

from torchgauge.harness.worker.case_measurements import single
from torchgauge.records import Measurement, absent

METRICS = ("top1_agreement", "kl_divergence", "perplexity", "perplexity_ratio")


def quality(logits: Any, truth: Any, text: Any) -> list[Measurement]:
    """Agreement of ``logits`` (batch, places, vocabulary) with ``truth``, over the ``text``.

    The last place foretells nothing that is in the text: it has no perplexity.
    """
    if truth is None:
        return [absent(name, "results were not checked: the reference is missing") for name in METRICS]
    found, right = (torch.log_softmax(each.cpu().double(), -1) for each in (logits, truth))
    agreed = (found.argmax(-1) == right.argmax(-1)).double().mean()
    divergence = (right.exp() * (right - found)).sum(-1).mean().clamp(min=0.0)
    places = logits.shape[1] - 1
    follows = text[:, text.shape[1] - places :, None].cpu()
    mine, theirs = (-each[:, :-1].gather(-1, follows).mean() for each in (found, right))
    told = f"{right.shape[0] * right.shape[1]} tokens of the built-in text, against {truth.dtype} on the host"
    values = (agreed, divergence, mine.exp(), (mine - theirs).exp())
    return [single(name, float(value), told) for name, value in zip(METRICS, values, strict=True)]
