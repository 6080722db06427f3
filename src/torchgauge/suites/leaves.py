"""What of a value can be compared, leaf by leaf with its path; worker side only.

Why so many kinds: what is left out of an observation is never compared, and nobody would know. So each leaf
is named, and one that cannot be compared is handed out as :class:`Unknown` instead of being dropped.
numpy is not imported: where a value is numpy's, it is there.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import sys
import types
from collections.abc import Collection, ItemsView, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from typing import Any

import torch

from torchgauge.suites.parts import contents, holders, of_process

Leaf = tuple[str, Any]
MOST_LEAVES = 100_000
"""Values of one output: more are no output, but a process seen through one of its objects."""

_PLAIN = (bool, int, float, str, bytes)
_BY_NAME = (torch.dtype, torch.layout, torch.memory_format, type)
_OPAQUE = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_BYTES = (torch.bool, torch.uint8, torch.int8)
_COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices"),
    torch.sparse_bsr: ("crow_indices", "col_indices"),
    torch.sparse_csc: ("ccol_indices", "row_indices"),
    torch.sparse_bsc: ("ccol_indices", "row_indices"),
}


@dataclasses.dataclass(frozen=True)
class Unknown:
    """A leaf that cannot be compared: what it is, in words."""

    kind: str


def leaves(value: Any, path: str) -> Iterator[Leaf]:
    """Path and value of each leaf: a dense tensor, a number, text, or :class:`Unknown`.

    No two leaves have one path: where keys read alike, the later ones are numbered.
    """
    seen: collections.Counter[str] = collections.Counter()
    found = (pair for pair in _below(value, path, ()) if not isinstance(pair[1], _Node))
    for number, (name, leaf) in enumerate(found):
        if number == MOST_LEAVES:
            yield path, Unknown(f"value with more than {MOST_LEAVES:,} parts")
            return
        seen[name] += 1
        yield (name if seen[name] == 1 else f"{name}#{seen[name]}"), leaf


def nodes(value: Any, path: str) -> Iterator[Leaf]:
    """Yield path and object of ``value`` and of each of its parts, containers and None among them."""
    for number, (name, part) in enumerate(_below(value, path, ())):
        if number == MOST_LEAVES:
            return
        if isinstance(part, _Node):
            yield name, part.value


@dataclasses.dataclass(frozen=True)
class _Node:
    """An object as it was met, before its leaves."""

    value: Any


def _below(value: Any, path: str, around: tuple[int, ...]) -> Iterator[Leaf]:
    """The leaves of ``value``; ``around`` are the ids of the objects that hold it."""
    if id(value) in around:
        return  # what was shown already
    yield path, _Node(value)
    if value is None or isinstance(value, torch.device):
        return  # no result, or a name that differs between a device and its reference
    if isinstance(value, torch.Tensor):
        yield from _of_tensor(value, path, around)
    elif isinstance(value, enum.Enum):
        yield path, f"{type(value).__name__}.{value.name}"
    elif isinstance(value, _PLAIN):
        yield path, value
    elif isinstance(value, complex):
        yield path, torch.tensor(value, dtype=torch.complex128)
    elif isinstance(value, _BY_NAME):
        yield path, getattr(value, "__qualname__", str(value))
    elif (parts := _parts(value)) is None:
        dtype = f" of dtype {value.dtype}" if hasattr(value, "dtype") else ""
        yield path, Unknown(f"{type(value).__module__}.{type(value).__qualname__}{dtype}")
    else:
        for name, part in parts:
            yield from _below(part, f"{path}.{name}" if name else path, (*around, id(value)))


def _of_tensor(value: torch.Tensor, path: str, around: tuple[int, ...]) -> Iterator[Leaf]:
    """A dense tensor as it is; any other as the dense tensors that it consists of."""
    parts: Any
    if value.is_meta:
        yield path, Unknown("tensor without data (device meta)")
        return
    if value.is_nested:
        parts = list(value.unbind())
    elif inner := _inner(value):
        parts = inner
    elif value.is_quantized:
        parts = {"dtype": value.dtype, "values": value.dequantize()}
    elif value.element_size() == 1 and value.dtype not in _BYTES:  # few operators compute on these
        eight = value.dtype.is_floating_point and "float4" not in str(value.dtype)
        parts = {"dtype": value.dtype, "values": value.float() if eight else value.view(torch.uint8)}
    elif value.layout == torch.sparse_coo:
        whole = value.detach().coalesce()
        parts = {"indices": whole.indices(), "values": whole.values()}
    elif value.layout in _COMPRESSED:
        parts = {name: getattr(value, name)() for name in (*_COMPRESSED[value.layout], "values")}
    elif value.layout == torch.strided:
        yield path, value
        return
    else:
        parts = {"values": value.to_dense()}
    yield from _below(parts, path, around)


def _inner(value: torch.Tensor) -> dict[str, Any]:
    """Return the tensors inside one whose class implements operators itself; a class need not have them all.

    Numbers that a masked tensor hides are no result. Tensors of several ranks are left whole.
    """
    if type(value).__torch_dispatch__ is torch.Tensor.__torch_dispatch__ or hasattr(value, "full_tensor"):
        return {}
    if hasattr(value, "get_mask"):
        return {"mask": value.get_mask(), "values": value.to_tensor(0)}
    if hasattr(value, "__tensor_flatten__"):
        return {name: getattr(value, name) for name in value.__tensor_flatten__()[0]}
    return {name: part for name, part in vars(value).items() if isinstance(part, torch.Tensor)}


def _parts(value: Any) -> Collection[tuple[str, Any]] | None:
    """Names and values of what ``value`` consists of; None where nobody knows."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _of_array(value, numpy)
    if isinstance(value, Mapping):
        return _with_more(value, [(_label(key, at), item) for at, (key, item) in enumerate(value.items())])
    if isinstance(value, (ValuesView, ItemsView)):
        value = list(value)
    if isinstance(value, AbstractSet):
        return _of_set(value)
    if isinstance(value, Sequence) and not isinstance(value, (memoryview, bytearray)):
        return _with_more(value, [(str(place), item) for place, item in enumerate(value)])
    if isinstance(value, (memoryview, bytearray)):
        return [("", bytes(value))]
    if isinstance(value, torch.nn.Module):
        return list(value.state_dict().items())
    return _of_object(value)


def _with_more(value: Any, parts: list[tuple[str, Any]]) -> Collection[tuple[str, Any]]:
    """``parts`` and the other attributes of a class of its own that is derived from a container."""
    if not isinstance(value, (dict, list, tuple)) and not dataclasses.is_dataclass(value):
        return parts
    known = {id(part) for _, part in parts}
    return [*parts, *(each for each in _attributes(value) if id(each[1]) not in known)]


def _attributes(value: Any) -> list[tuple[str, Any]]:
    tables = [contents(holder) for holder in holders(value) if holder is not value]
    return [pair for table in tables for pair in table.items()]


def _of_array(value: Any, numpy: Any) -> Collection[tuple[str, Any]] | None:
    """A tensor of a numpy array or number; text and objects one by one."""
    if isinstance(value, numpy.ma.MaskedArray):
        return [
            ("mask", numpy.ma.getmaskarray(value)),
            ("values", value.filled(0 if value.dtype.kind in "biufc" else None)),
        ]
    value = numpy.asarray(value)
    if value.dtype.names:
        return [(name, value[name]) for name in value.dtype.names]
    if value.dtype.kind in "SUO":
        return [("", value.tolist())]
    if value.dtype.kind in "mM":  # dates and durations: whole numbers in their unit
        return [("unit", str(value.dtype)), ("ticks", value.astype(numpy.int64))]
    if value.dtype.kind not in "biufc":
        return None
    wide = {"f": numpy.float64, "c": numpy.complex128}.get(value.dtype.kind)
    if wide is not None and value.dtype.itemsize > numpy.dtype(wide).itemsize:  # longer than any of torch
        value = value.astype(wide)
    native = value.astype(value.dtype.newbyteorder("="), order="C", copy=True)
    return [("", torch.from_numpy(native))]


def _of_set(value: AbstractSet[Any]) -> Collection[tuple[str, Any]] | None:
    """Elements of a set in a fixed order; tensors and other objects have none."""
    if not all(each is None or isinstance(each, (*_PLAIN, enum.Enum)) for each in value):
        return None
    inside = sorted(value, key=lambda each: (type(each).__name__, repr(each)))
    return [(str(place), each) for place, each in enumerate(inside)]


def _of_object(value: Any) -> Collection[tuple[str, Any]] | None:
    """Attributes of an object that Python code defines, such as a cache of keys and values.

    Objects of the standard library and of torch's C++ half hold what Python does not see.
    """
    if dataclasses.is_dataclass(value):
        names = (each.name for each in dataclasses.fields(value))
        fields = [(name, getattr(value, name)) for name in names if hasattr(value, name)]
        return _with_more(value, fields)
    return None if isinstance(value, _OPAQUE) or of_process(value) else _attributes(value) or None


def _label(key: Any, place: int) -> str:
    """A name for the key of a mapping that is equal in every run; an object's own may hold its address."""
    plain = all(
        isinstance(each, (*_PLAIN, enum.Enum)) for each in (key if isinstance(key, tuple) else (key,))
    )
    return str(key) if plain else f"{type(key).__name__}{place}"
