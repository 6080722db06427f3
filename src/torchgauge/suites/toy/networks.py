"""The toy models that are torch modules; only the worker imports this file.

Sizes are chosen for a forward pass of about a millisecond and few distinct kernels: each shows one
family of operators (matmul, convolution and batch norm, attention, embedding lookup, recurrence).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from torchgauge.records import Workload
from torchgauge.suites.capabilities import LOSS, wanted
from torchgauge.suites.losses import ClassLoss, mean_loss
from torchgauge.suites.suite import BuiltWorkload

_WIDTH = 64
_CLASSES = 10
_VOCABULARY = 1000


def build(workload: Workload) -> BuiltWorkload:
    """The network that ``workload`` names; raises ``NotImplementedError`` for a name that none has."""
    if workload.model not in _NETWORKS:
        raise NotImplementedError(f"the toy suite has no network {workload.model!r}")
    make, item = _NETWORKS[workload.model]
    torch.manual_seed(workload.seed)
    generator = torch.Generator().manual_seed(workload.seed)
    module, inputs, loss = make(workload, generator)
    training = LOSS in wanted(workload)
    module.train(training)
    return BuiltWorkload(
        module=module,
        args=(inputs,),
        loss=loss if training else None,
        items_per_step=workload.batch,
        item=item,
    )


class Embedder(nn.Module):  # type: ignore[misc]  # torch is not seen by mypy
    """Mean of token embeddings, then a linear classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(_VOCABULARY, _WIDTH)
        self.head = nn.Linear(_WIDTH, _CLASSES)

    def forward(self, tokens: Any) -> Any:
        """Logits (batch, classes) for ``tokens`` (batch, seq)."""
        return self.head(self.embedding(tokens).mean(dim=1))


class Encoder(nn.Module):  # type: ignore[misc]
    """One pre-norm block of self-attention and feed-forward."""

    def __init__(self, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_feed = nn.LayerNorm(_WIDTH), nn.LayerNorm(_WIDTH)
        self.qkv, self.out = nn.Linear(_WIDTH, 3 * _WIDTH), nn.Linear(_WIDTH, _WIDTH)
        self.feed = nn.Sequential(nn.Linear(_WIDTH, 4 * _WIDTH), nn.GELU(), nn.Linear(4 * _WIDTH, _WIDTH))

    def forward(self, x: Any) -> Any:
        """The encoded ``x`` (batch, seq, width)."""
        batch, seq, width = x.shape
        qkv = self.qkv(self.norm_attention(x)).view(batch, seq, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attended = nn.functional.scaled_dot_product_attention(query, key, value)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, seq, width))
        return x + self.feed(self.norm_feed(x))


class Recurrence(nn.Module):  # type: ignore[misc]
    """A recurrent cell unrolled over the sequence, then a linear classifier of its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.RNNCell(_WIDTH, _WIDTH)
        self.head = nn.Linear(_WIDTH, _CLASSES)

    def forward(self, x: Any) -> Any:
        """Logits (batch, classes) for ``x`` (batch, seq, width)."""
        state = x.new_zeros(x.shape[0], _WIDTH)
        for step in x.unbind(1):
            state = self.cell(step, state)
        return self.head(state)


def _mlp(workload: Workload, generator: Any) -> tuple[Any, Any, Any]:
    module = nn.Sequential(
        nn.Linear(_WIDTH, 4 * _WIDTH),
        nn.ReLU(),
        nn.Linear(4 * _WIDTH, _WIDTH),
        nn.ReLU(),
        nn.Linear(_WIDTH, _CLASSES),
    )
    return module, torch.randn(workload.batch, _WIDTH, generator=generator), ClassLoss(workload.seed)


def _convnet(workload: Workload, generator: Any) -> tuple[Any, Any, Any]:
    module = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, _CLASSES),
    )
    return module, torch.randn(workload.batch, 3, 16, 16, generator=generator), ClassLoss(workload.seed)


def _transformer(workload: Workload, generator: Any) -> tuple[Any, Any, Any]:
    return Encoder(), torch.randn(workload.batch, _seq(workload), _WIDTH, generator=generator), mean_loss


def _embedding(workload: Workload, generator: Any) -> tuple[Any, Any, Any]:
    tokens = torch.randint(_VOCABULARY, (workload.batch, _seq(workload)), generator=generator)
    return Embedder(), tokens, ClassLoss(workload.seed)


def _rnn(workload: Workload, generator: Any) -> tuple[Any, Any, Any]:
    inputs = torch.randn(workload.batch, _seq(workload), _WIDTH, generator=generator)
    return Recurrence(), inputs, ClassLoss(workload.seed)


def _seq(workload: Workload) -> int:
    return workload.sizes.get("seq", 16)


_NETWORKS: dict[str, tuple[Callable[[Workload, Any], tuple[Any, Any, Any]], str]] = {
    "mlp": (_mlp, "sample"),
    "convnet": (_convnet, "image"),
    "transformer": (_transformer, "sequence"),
    "embedding": (_embedding, "sequence"),
    "rnn": (_rnn, "sequence"),
}
