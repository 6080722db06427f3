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
        if hasattr(value, "__tensor_flatten__"):
            pending += [getattr(value, name) for name in value.__tensor_flatten__()[0]]
        elif str(value.layout) != "torch.strided":
            pending += parts_of_sparse(value)
        else:
            storage = value.untyped_storage()
            storages[value.device, storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def parts_of_sparse(value: Any) -> list[Any]:
    """Return the dense tensors that a sparse one consists of."""
    names = ("_indices", "_values", "crow_indices", "ccol_indices", "col_indices", "row_indices", "values")
    found = []
    for name in names:
        with suppress(RuntimeError, NotImplementedError):  # each layout has some of them
            found.append(getattr(value, name)())
    return found
