"""Modules: the layers that models are made of, forward and backward."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torchgauge.suites.conformance.check_context import CheckContext, check

GROUP = "nn"


def _module(context: CheckContext, make: Callable[[], nn.Module], *inputs: torch.Tensor) -> None:
    """Output and gradients of a module are those of the host, for the same weights."""
    torch.manual_seed(0)
    host = make()
    there = context.send(copy.deepcopy(host))
    expected = _run(host, *inputs)
    found = _run(there, *map(context.send, inputs))
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        what = "the output" if number == 0 else f"gradient {number}"
        context.same(one, other, what, rtol=1e-3, atol=1e-4)


def _run(module: nn.Module, *inputs: torch.Tensor) -> list[torch.Tensor]:
    result: Any = module(*inputs)
    output = result[0] if isinstance(result, tuple) else result
    output.square().mean().backward()
    return [output.detach(), *(each.grad for each in module.parameters() if each.grad is not None)]


@check("torch.nn.Module.to", tier="smoke")
def parameters_stay(context: CheckContext) -> None:
    """Moving a model keeps its parameters: what is tied stays tied, and an optimizer made before it steps."""
    one, other = nn.Linear(2, 2), nn.Linear(2, 2)
    other.weight = one.weight
    model = nn.Sequential(one, other)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    there = context.send(model)
    values = there[0].weight.detach().clone()
    there(context.send(context.numbers(1, 2))).sum().backward()
    optimizer.step()
    stepped = not torch.equal(there[0].weight.detach().cpu(), values.cpu())
    lost = []
    if there[0].weight is not there[1].weight:
        lost.append("tied weights are no longer tied")
    if not stepped:
        lost.append("an earlier optimizer no longer updates the model")
    if lost:
        said = f"Module.to() creates new parameters: {' and '.join(lost)}"
        context.unsupported(
            f"{said}; tie weights and create optimizers after Module.to(), or first call "
            "torch.__future__.set_swap_module_params_on_conversion(True)"
        )


@check("torch.nn.Conv2d, BatchNorm2d, MaxPool2d", tier="smoke")
def convolution(context: CheckContext) -> None:
    """Convolution, batch normalisation and pooling."""
    _module(
        context,
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)
        ),
        context.numbers(2, 3, 8, 8),
    )


@check("torch.nn.ConvTranspose2d, Conv1d, Conv3d, groups")
def convolution_variants(context: CheckContext) -> None:
    """Transposed, grouped, dilated, one- and three-dimensional convolutions."""
    _module(context, lambda: nn.ConvTranspose2d(2, 3, 3, stride=2), context.numbers(1, 2, 4, 4))
    _module(context, lambda: nn.Conv2d(4, 4, 3, groups=4, dilation=2), context.numbers(1, 4, 7, 7))
    _module(context, lambda: nn.Conv1d(2, 3, 3), context.numbers(1, 2, 8))
    _module(context, lambda: nn.Conv3d(1, 2, 2), context.numbers(1, 1, 4, 4, 4))


@check("torch.nn.LSTM, GRU")
def recurrent(context: CheckContext) -> None:
    """Recurrent layers."""
    _module(context, lambda: nn.GRU(4, 5, batch_first=True), context.numbers(2, 6, 4))
    _module(context, lambda: nn.LSTM(4, 5, batch_first=True), context.numbers(2, 6, 4))


@check("torch.nn.functional.scaled_dot_product_attention", tier="smoke")
def attention(context: CheckContext) -> None:
    """Attention, causal and with a mask, and its gradient."""
    shapes = [context.numbers(2, 2, 6, 8, seed=number) for number in range(3)]
    mask = torch.ones(6, 6, dtype=torch.bool).tril()

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        causal = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return causal + functional.scaled_dot_product_attention(q, k, v, attn_mask=m)

    context.compare(attend, *shapes, mask, rtol=1e-4, atol=1e-4)
    query = context.numbers(2, 2, 6, 8, grad=True)

    def gradient(q: torch.Tensor) -> torch.Tensor:
        (found,) = torch.autograd.grad(functional.scaled_dot_product_attention(q, q, q).sum(), q)
        return found

    context.compare(gradient, query, rtol=1e-3, atol=1e-4)


@check("torch.nn.TransformerEncoderLayer")
def transformer(context: CheckContext) -> None:
    """A layer of a transformer in training."""
    _module(
        context,
        lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        context.numbers(2, 5, 8),
    )


@check("torch.nn.Embedding, LayerNorm, CrossEntropyLoss", tier="smoke")
def embedding_and_loss(context: CheckContext) -> None:
    """Embedding, normalisation and loss of a language model."""
    torch.manual_seed(0)
    host = nn.Sequential(nn.Embedding(11, 8, padding_idx=0), nn.LayerNorm(8), nn.Linear(8, 11))
    words = torch.tensor([[1, 2, 3, 0], [4, 5, 0, 0]])

    def gradients(module: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
        module.zero_grad()
        loss = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)(module(x).flatten(0, 1), x.flatten())
        loss.backward()
        return [loss, *(each.grad.clone() for each in module.parameters())]

    expected = gradients(host, words)
    for one, other in zip(gradients(context.send(host), context.send(words)), expected, strict=True):
        context.same(one, other, rtol=1e-4, atol=1e-5)


@check("torch.nn.GroupNorm, InstanceNorm, RMSNorm, interpolate")
def norms_and_resizing(context: CheckContext) -> None:
    """Further normalisations, and images of another size."""
    _module(context, lambda: nn.GroupNorm(2, 4), context.numbers(2, 4, 3, 3))
    context.compare(functional.instance_norm, context.numbers(2, 4, 3, 3), rtol=1e-4, atol=1e-4)
    for mode in ("nearest", "bilinear", "bicubic"):
        context.compare(
            lambda x, how=mode: functional.interpolate(x, scale_factor=2.0, mode=how),
            context.numbers(1, 2, 4, 4),
            rtol=1e-4,
            atol=1e-4,
        )


@check("torch.nn.utils.rnn")
def packed_sequences(context: CheckContext) -> None:
    """Sequences of different lengths are packed, padded and put back."""
    rows = [context.numbers(number, 3) for number in (4, 2, 1)]
    packed = nn.utils.rnn.pack_sequence([context.send(each) for each in rows])
    padded, lengths = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    context.same(padded, nn.utils.rnn.pad_sequence(rows, batch_first=True))
    context.expect(lengths.tolist() == [4, 2, 1], f"the unpacked lengths are {lengths.tolist()}")
