"""Whatever a model returns is compared leaf by leaf, and what cannot be is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.torch
PAIR = "torch.float32 [2]"


@pytest.fixture(scope="module")
def seen(child: Callable[..., Any]) -> dict[str, Any]:
    """Observations of all values, from one child."""
    return child("child_leaves.py")


@pytest.mark.parametrize(
    ("value", "leaves", "elements"),
    [
        ("tensor", {"out": PAIR}, 2),
        ("containers", {"out.a.0": PAIR, "out.a.1.0": PAIR, "out.b.1": "2.5"}, 5),
        ("dataclass", {"out.first": PAIR, "out.second.first": "'word'", "out.second.second": "2"}, 4),
        (
            "object",
            {"out.keys": PAIR, "out.values.0": PAIR, "out.kind": "'Layer'", "out.dtype": "'torch.float32'"},
            6,
        ),
        ("cycle", {"out.value": "3"}, 1),
        ("model output", {"out.last_hidden_state": PAIR, "out.attentions.0": PAIR}, 4),
        ("numbers", {"out.0": "True", "out.1": "2", "out.2": "2.5", "out.3": "torch.complex128 []"}, 4),
        ("words", {"out.0": "'text'", "out.1": "b'bytes'", "out.2": "'Colour.RED'"}, 3),
        ("set", {"out.0": "3", "out.1": "'a'", "out.2": "'b'"}, 3),
        ("array", {"out": "torch.float64 [2, 3]"}, 6),
        ("sparse", {"out.indices": "torch.int64 [2, 3]", "out.values": "torch.float32 [3]"}, 9),
        (
            "compressed",
            {
                "out.crow_indices": "torch.int64 [4]",
                "out.col_indices": "torch.int64 [3]",
                "out.values": "torch.float32 [3]",
            },
            10,
        ),
        ("quantised", {"out.dtype": "'torch.quint8'", "out.values": PAIR}, 3),
        ("nested", {"out.0": PAIR, "out.1": "torch.float32 [3]"}, 5),
        ("keys that read alike", {"out.1": PAIR, "out.1#2": PAIR, "out.a.b": PAIR, "out.a.b#2": PAIR}, 8),
        ("private slot", {"out.shown": "1", "out._Private__hidden": PAIR}, 3),
        ("list with an attribute", {"out.0": PAIR, "out.scores": "torch.float32 [3]"}, 5),
        ("mapping with an attribute", {"out.a": PAIR, "out.scores": "torch.float32 [3]"}, 5),
        (
            "dataclass with an attribute",
            {"out.first": PAIR, "out.second": "2", "out.scores": "torch.float32 [3]"},
            6,
        ),
        ("masked array", {"out.mask": "torch.bool [2]", "out.values": "torch.float64 [2]"}, 4),
        ("nothing", {}, 0),
        ("module", {"out.weight": "torch.float32 [1, 2]", "out.bias": "torch.float32 [1]"}, 3),
    ],
)
def test_each_leaf_has_its_path(
    seen: dict[str, Any], value: str, leaves: dict[str, str], elements: int
) -> None:
    """Tensors of every layout, numbers, text, containers and objects that Python code defines."""
    assert seen["leaves"][value] == leaves
    assert seen["elements"][value] == elements


def test_a_cache_is_seen_by_its_tensors(seen: dict[str, Any]) -> None:
    """The keys and values that transformers keeps for the next token are part of what it computed."""
    found = seen["leaves"]["cache"]
    assert [shape for shape in found.values() if shape == "torch.float32 [1, 2, 3, 4]"] == [
        "torch.float32 [1, 2, 3, 4]"
    ] * 2
    assert seen["elements"]["cache"] >= 48


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("generator", "out.rows.1 is a builtins.generator"),
        ("lambda", "out.second is a builtins.function"),
        ("bare object", "out.0 is a builtins.object"),
        ("set of tensors", "out is a builtins.set"),
        ("meta tensor", "out is a tensor without data (device meta)"),
        ("without end", "out is a value with more than 100,000 parts"),
    ],
)
def test_what_cannot_be_compared_is_named(seen: dict[str, Any], value: str, said: str) -> None:
    """The message has the path and the type."""
    assert seen["refusals"][value] == f"{said}, which cannot be compared"


def test_what_was_observed_stays(seen: dict[str, Any]) -> None:
    """A leaf does not share the memory of the value, which the next run may overwrite."""
    assert seen["copied"] == [True] * 4
    assert seen["reversed"] == [[2.0, 1.0, 0.0], [5.0, 4.0, 3.0]]
