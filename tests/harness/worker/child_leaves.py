"""Child: paths and kinds of the leaves of values that models return, and what observing them says."""

from __future__ import annotations

import dataclasses
import enum
import json
from typing import Any

import numpy as np
import torch

from torchgauge.errors import UnobservableError
from torchgauge.suites.outputs import elements, observe

ONE = torch.tensor([1.0, 2.0])


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Held:
    first: Any
    second: Any


class Layer:
    """As in a library's cache of keys and values: state in attributes and in a slot."""

    __slots__ = ("__dict__", "keys")

    def __init__(self) -> None:
        self.keys, self.values = ONE, [ONE, None]
        self.kind, self.device, self.dtype = Layer, torch.device("cpu"), torch.float32


class Private:
    __slots__ = ("__hidden", "shown")

    def __init__(self) -> None:
        self.shown, self.__hidden = 1, ONE


class Rows(list[Any]):
    """Containers of a library's own, with more than their items."""


class Table(dict[str, Any]):
    pass


def more(value: Any) -> Any:
    """``value`` with an attribute of its own, and one that is an item as well, as in model outputs."""
    value.same, value.scores = ONE, torch.ones(3)
    return value


class Cycle:
    def __init__(self) -> None:
        self.me, self.value = self, 3


def quantised() -> torch.Tensor:
    return torch.quantize_per_tensor(ONE, 0.5, 0, torch.quint8)


def cache() -> Any:
    """A cache of transformers with one layer in it."""
    from transformers import DynamicCache, EncoderDecoderCache

    inner, cross = DynamicCache(), DynamicCache()
    inner.update(torch.ones(1, 2, 3, 4), torch.zeros(1, 2, 3, 4), 0)
    return EncoderDecoderCache(inner, cross)


def output() -> Any:
    """A transformers output with an empty field."""
    from transformers.modeling_outputs import BaseModelOutput

    return BaseModelOutput(last_hidden_state=ONE, attentions=(ONE,))


VALUES = {
    "tensor": lambda: ONE,
    "containers": lambda: {"a": [ONE, (ONE,)], "b": {1: 2.5}},
    "dataclass": lambda: Held(ONE, Held("word", 2)),
    "object": Layer,
    "cycle": Cycle,
    "cache": cache,
    "model output": output,
    "numbers": lambda: [True, 2, 2.5, 1 + 2j, None],
    "words": lambda: ["text", b"bytes", Colour.RED],
    "set": lambda: {"b", "a", 3},
    "array": lambda: np.arange(6.0).reshape(2, 3)[:, ::-1],
    "sparse": lambda: torch.eye(3).to_sparse(),
    "compressed": lambda: torch.eye(3).to_sparse_csr(),
    "quantised": quantised,
    "nested": lambda: torch.nested.nested_tensor([ONE, torch.ones(3)]),
    "keys that read alike": lambda: {1: ONE, "1": ONE, "a.b": ONE, "a": {"b": ONE}},
    "private slot": Private,
    "list with an attribute": lambda: more(Rows([ONE])),
    "mapping with an attribute": lambda: more(Table(a=ONE)),
    "dataclass with an attribute": lambda: more(Held(ONE, 2)),
    "masked array": lambda: np.ma.MaskedArray([1.0, 2.0], [False, True]),
    "nothing": lambda: [None, {}, ()],
    "module": lambda: torch.nn.Linear(2, 1),
}
UNKNOWN = {
    "generator": lambda: {"rows": [1, (each for each in ())]},
    "lambda": lambda: Held(ONE, lambda: 1),
    "bare object": lambda: [object()],
    "set of tensors": lambda: {ONE},
    "meta tensor": lambda: torch.ones(2, device="meta"),
    "without end": lambda: range(200_000),
}


def told(value: Any) -> Any:
    """Dtype and shape of a tensor, else the value itself."""
    return f"{value.dtype} {list(value.shape)}" if isinstance(value, torch.Tensor) else repr(value)


def refusal(value: Any) -> str:
    """What the observation of ``value`` raises."""
    try:
        observe(value)
    except UnobservableError as error:
        return error.message
    return ""


def main() -> None:
    """Print leaves, elements and refusals, and whether what was observed is the value's own memory."""
    seen = {name: observe(make()) for name, make in VALUES.items()}
    value = {"tensor": torch.ones(2), "array": np.ones(2), "sparse": torch.eye(2).to_sparse().coalesce()}
    kept = observe(value)
    value["tensor"].zero_()
    value["array"][:] = 0
    value["sparse"].values().zero_()
    print(
        json.dumps(
            {
                "leaves": {
                    name: {path: told(leaf) for path, leaf in found.items()} for name, found in seen.items()
                },
                "elements": {name: elements(found) for name, found in seen.items()},
                "refusals": {name: refusal(make()) for name, make in UNKNOWN.items()},
                "copied": [bool(leaf.any()) for leaf in kept.values()],
                "reversed": seen["array"]["out"].tolist(),
            }
        )
    )


if __name__ == "__main__":
    main()
