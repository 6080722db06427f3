"""Attention with a mask: both forms compute what its definition says, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from torchgauge.records import Workload

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SIZES = {"heads": 4, "head_width": 8, "seq": 32}
SHARES = (0.05, 0.2, 0.5)


def _document(position: int) -> int:
    return sum(position >= int(share * 32) for share in SHARES)


SEES: dict[str, Callable[[int, int], bool]] = {
    "noop": lambda q, k: True,
    "causal": lambda q, k: k <= q,
    "window": lambda q, k: q - 2 < k <= q,
    "prefix": lambda q, k: k <= q or k < 8,
    "document": lambda q, k: _document(q) == _document(k),
    "alibi": lambda q, k: k <= q,
    "softcap": lambda q, k: True,
}


def built(model: str, mode: str = "inference", **shape: Any) -> Any:
    """The workload of ``model`` with a mask, in float64."""
    from torchgauge.suites.features.networks import build

    found = build(Workload("features", model, mode, shape=tuple(sorted({**SIZES, **shape}.items()))), {})
    found.module.double()
    found.args = tuple(each.double() for each in found.args)
    return found


def by_definition(query: Any, key: Any, value: Any, mask: str) -> tuple[Any, int, set[int]]:
    """Attention one score at a time, how many pairs count, and which keys any query sees."""
    _, heads, queries, width = query.shape
    groups, seq, pairs, keys = heads // key.shape[1], key.shape[2], 0, set()
    result = torch.zeros(1, heads, queries, width, dtype=torch.float64)
    for h in range(heads):
        for row in range(queries):
            q = row + seq - queries
            scores = torch.full((seq,), -math.inf, dtype=torch.float64)
            for k in range(seq):
                if SEES[mask](q, k):
                    score = float(query[0, h, row] @ key[0, h // groups, k]) / math.sqrt(width)
                    score -= 2.0 ** (-8 * (h + 1) / heads) * (q - k) if mask == "alibi" else 0.0
                    scores[k] = 20 * math.tanh(score / 20) if mask == "softcap" else score
                    pairs += 1
                    keys.add(k)
            result[0, h, row] = torch.softmax(scores, 0) @ value[0, h // groups]
    return result, pairs, keys


@pytest.mark.parametrize(
    ("mask", "more"),
    [
        *((mask, {}) for mask in SEES),
        ("causal", {"kv_heads": 2}),
        ("softcap", {"kv_heads": 2}),
        ("noop", {"queries": 1}),
        ("window", {"queries": 1}),
        ("alibi", {"queries": 1}),
    ],
)
def test_both_forms_are_the_definition(mask: str, more: dict[str, int], monkeypatch) -> None:
    """Eager and ``flex_attention`` agree with a loop over all pairs, and the declared work counts those."""
    flexible = pytest.importorskip("torch.nn.attention.flex_attention")
    monkeypatch.setattr(flexible, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)  # as Python, not traced
    monkeypatch.setattr(flexible, "_WARNINGS_SHOWN", {"flex_attention_performance"})
    found = built("attention.flex-x", mask=mask, **more)
    expected, pairs, keys = by_definition(*found.args, mask)
    assert torch.allclose(found.module(*found.args), expected, atol=1e-12)
    assert torch.allclose(found.module.flex_form("cpu")(*found.args), expected, atol=1e-12)
    assert found.work.flops == 4 * pairs * 8
    query, key, _ = found.args
    assert found.work.bytes == 4 * 2 * (query.numel() + key.numel() * len(keys) // 32)


@pytest.mark.parametrize(
    ("told", "mask"), [("none", "noop"), ("causal", "causal"), ("bool", "prefix"), ("float", "alibi")]
)
def test_a_mask_is_told_in_its_own_way(told: str, mask: str) -> None:
    """The call gets a flag, truth values or a bias, and the result is that mask's."""
    found = built("attention.sdpa-x", mask=told)
    dense = found.module.dense
    kind = None if dense is None else dense.dtype
    assert (found.module.causal, kind) == {
        "none": (False, None),
        "causal": (True, None),
        "bool": (False, torch.bool),
        "float": (False, torch.float64),
    }[told]
    assert torch.allclose(found.module(*found.args), by_definition(*found.args, mask)[0], atol=1e-12)


@pytest.mark.parametrize("mask", ["none", "causal", "bool", "float"])
def test_no_mask_keeps_the_host_from_its_fused_kernel(mask: str) -> None:
    """Eager is the best that can express a mask: flash attention takes each of them as it is told."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    found = built("attention.sdpa-x", mask=mask)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), torch.no_grad():
        fused = found.module(*found.args)
    assert torch.allclose(fused, found.module(*found.args))


def test_training_differentiates_queries_keys_and_values() -> None:
    """All three are parameters with a gradient, equal to what autograd gives without the module."""
    plain, found = (
        built("attention.flex-x", mask="causal"),
        built("attention.flex-x", "training", mask="causal"),
    )
    found.loss(found.module()).backward()
    inputs = [each.requires_grad_() for each in plain.args]
    by_definition_loss = plain.module(*inputs).square().mean()
    by_definition_loss.backward()
    grads = [each.grad for each in found.module.parameters()]
    assert len(grads) == 3
    for mine, expected in zip(grads, inputs, strict=True):
        assert expected.grad.abs().max() > 0
        assert torch.allclose(mine, expected.grad)
    assert found.work.flops == 3 * plain.work.flops
