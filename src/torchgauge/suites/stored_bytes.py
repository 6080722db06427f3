"""How many bytes tensors are kept in; a quantised one is what it is kept in, with its scales."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any


def stored_bytes(tensors: Iterable[Any]) -> int:
    """Bytes of the distinct storages of ``tensors``, wherever they are.

    ``nbytes`` of a tensor subclass is that of the numbers that it stands for, so what it holds is asked.
    """
    pending = list(tensors)
    storages: dict[tuple[Any, int], int] = {}
    while pending:
        value = pending.pop()
        parts = parts_of(value)
        if parts is None:
            storage = value.untyped_storage()
            storages[value.device, storage.data_ptr()] = storage.nbytes()
        else:
            pending += parts
    return sum(storages.values())


def parts_of(value: Any) -> list[Any] | None:
    """Return the tensors that a tensor consists of; None if it has memory of its own."""
    if hasattr(value, "__tensor_flatten__"):
        return [getattr(value, name) for name in value.__tensor_flatten__()[0]]
    if str(value.layout) != "torch.strided":
        return _parts_of_sparse(value)
    try:
        value.untyped_storage().data_ptr()
    except RuntimeError:  # a wrapper without __tensor_flatten__
        return [one for one in vars(value).values() if hasattr(one, "untyped_storage")]
    return None


def _parts_of_sparse(value: Any) -> list[Any]:
    names = ("_indices", "_values", "crow_indices", "ccol_indices", "col_indices", "row_indices", "values")
    found = []
    for name in names:
        with suppress(RuntimeError, NotImplementedError):  # each layout has some of them
            found.append(getattr(value, name)())
    return found
