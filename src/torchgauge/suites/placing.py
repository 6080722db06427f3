"""Copies of a workload's tensors on a device and in a dtype, with the aliases, strides and flags they had."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from torchgauge.suites.suite import HOST

CASTABLE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
NAMES = 6
"""Maximum number of tensor names in a row."""


class Placed(NamedTuple):
    """A module and its inputs.

    ``kept`` has name and dtype of each floating-point or complex tensor whose dtype is not the workload's.
    """

    module: Any
    args: Any
    kwargs: Any
    kept: list[str]


def placed(module: Any, args: Any, kwargs: Any, device: Any, dtype: Any, *, apart: bool = False) -> Placed:
    """Return ``module`` and its inputs on ``device`` in ``dtype``, as copies where they are to be ``apart``.

    Real floating-point tensors are cast where their dtype differs. Complex, float8 and integer tensors keep
    their dtype, and so do tensors that share memory with one of another dtype. If only some tensors of the
    module have ``dtype``, its author has cast it: it and its inputs are moved only. Tensors that already are
    on ``device`` in their dtype are not copied.
    """
    if apart:
        memo: dict[int, Any] = {}
        module_tensors = [table[key] for _, table, key in _owners(module)]
        shared = _sharing((*module_tensors, *(tensor for _, tensor in _tensors((args, kwargs), ""))))
        for one in module_tensors:  # by itself, the copy of a parameter has memory of its own
            if isinstance(one, torch.nn.Parameter) and _plain(one) and _key(one) in shared:
                memo[id(one)] = torch.nn.Parameter(copy.deepcopy(one.detach(), memo), one.requires_grad)
        module = copy.deepcopy(module, memo)
        args, kwargs = _mapped((args, kwargs), lambda tensor: _copied(tensor, memo))
    return _Placing(device, dtype).place(module, args, kwargs)


def named(names: Sequence[str]) -> str:
    """Return the text of ``names`` for a row: six at most."""
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return f"{', '.join(names[:NAMES])}{more}"


class _Placing:
    """One call of :func:`placed`."""

    def __init__(self, device: Any, dtype: Any) -> None:
        device = torch.device(device)
        self.device = torch.device(HOST) if device.type == HOST else device  # to("cpu:0") copies
        self.dtype, self.cast = dtype, True
        self._made: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # an id belongs to a living object
        self._groups: dict[int, list[torch.Tensor]] = {}
        self._bases: dict[int, torch.Tensor] = {}

    def place(self, module: Any, args: Any, kwargs: Any) -> Placed:
        owners = list(_owners(module))
        module_tensors = [(f"{name}.{key}".lstrip("."), table[key]) for name, table, key in owners]
        given = [*_tensors(args, "args"), *_tensors(kwargs, "kwargs")]
        dtypes = {tensor.dtype for _, tensor in module_tensors if tensor.dtype in CASTABLE}
        self.cast = len(dtypes) < 2 or self.dtype not in dtypes
        self._groups = _sharing(tensor for _, tensor in (*module_tensors, *given))
        kept = [
            f"{name} {str(tensor.dtype).removeprefix('torch.')}"
            for name, tensor in (*module_tensors, *given)
            if self._dtype_of(tensor) not in (None, self.dtype)
        ]
        if isinstance(module, torch.nn.Module):
            inputs = {id(tensor) for _, tensor in given}
            both = [(table[key], table, key) for _, table, key in owners if id(table[key]) in inputs]
            module._apply(self._of_module)
            self._made.update((id(old), (old, table[key])) for old, table, key in both)
            module = module.to(
                device=self.device
            )  # of a class that moves more than its parameters and buffers
        elif module is not None:
            module = module.to(device=self.device, dtype=self.dtype)
        return Placed(module, _mapped(args, self._once), _mapped(kwargs, self._once), kept)

    def _dtype_of(self, tensor: torch.Tensor) -> Any:
        """Return the dtype of ``tensor`` once it is placed; None for one of whole numbers."""
        if not (tensor.is_floating_point() or tensor.is_complex()):
            return None
        castable = self.cast and {one.dtype for one in self._group(tensor)} <= {tensor.dtype}
        return self.dtype if castable and tensor.dtype in CASTABLE else tensor.dtype

    def _group(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Return the tensors that share memory with ``tensor``, itself included; empty if it is unshared."""
        return self._groups.get(_key(tensor), []) if _plain(tensor) else []

    def _of_module(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return ``tensor`` placed; a parameter is placed for each of its names, as by ``Module.to``."""
        return self._moved(tensor) if isinstance(tensor, torch.nn.Parameter) else self._once(tensor)

    def _once(self, tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in self._made:
            self._made[id(tensor)] = tensor, self._moved(tensor)
        return self._made[id(tensor)][1]

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        dtype = self._dtype_of(tensor) or tensor.dtype
        if tensor.device == self.device and tensor.dtype == dtype:
            return tensor
        with torch.no_grad():
            if _plain(tensor) and ((group := self._group(tensor)) or not _dense(tensor)):
                moved = self._view(tensor.detach(), dtype, group or [tensor])
            else:
                moved = tensor.detach().to(device=self.device, dtype=dtype)
        return moved.requires_grad_() if tensor.requires_grad else moved

    def _view(self, tensor: torch.Tensor, dtype: Any, group: list[torch.Tensor]) -> torch.Tensor:
        """Copy the shared memory of ``group`` once; return the copy's view that corresponds to ``tensor``."""
        key, unit = _key(tensor), max(one.element_size() for one in group)
        first = min(low for low, _ in map(_span, group)) // unit
        base = self._bases.get(key)
        if base is None:
            storage = tensor.untyped_storage()
            last = min(-(-max(high for _, high in map(_span, group)) // unit), storage.nbytes() // unit)
            kind = max(group, key=torch.Tensor.element_size).dtype
            whole = torch.empty(0, dtype=kind, device=tensor.device)
            whole.set_(storage, first, (last - first,), (1,))
            base = whole.to(device=self.device, dtype=dtype if kind == tensor.dtype else kind, copy=True)
            if group[0] is not tensor:
                self._bases[key] = base
        offset = tensor.storage_offset() - first * unit // tensor.element_size()
        view = base if base.dtype == dtype else base.view(dtype)
        moved = view.as_strided(tensor.shape, tensor.stride(), offset)
        moved = moved.conj() if tensor.is_conj() else moved
        return torch.ops.aten._neg_view(moved) if tensor.is_neg() else moved


def _mapped(value: Any, function: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Return ``value`` with ``function`` of each tensor in its containers."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, Mapping):
        return {key: _mapped(item, function) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_mapped(item, function) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def _copied(tensor: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
    """Return a deep copy of ``tensor``, as a leaf."""
    if tensor.is_leaf:
        return copy.deepcopy(tensor, memo)
    return copy.deepcopy(tensor.detach(), memo).requires_grad_(tensor.requires_grad)


def _sharing(tensors: Iterable[torch.Tensor]) -> dict[int, list[torch.Tensor]]:
    """Return, by storage, detached aliases of the ``tensors`` that share it.

    The aliases keep a storage alive while parameters exchange their data, so that its address is not reused.
    """
    groups: dict[int, dict[int, torch.Tensor]] = {}
    for tensor in filter(_plain, tensors):
        groups.setdefault(_key(tensor), {})[id(tensor)] = tensor
    return {key: [one.detach() for one in group.values()] for key, group in groups.items() if len(group) > 1}


def _key(tensor: torch.Tensor) -> int:
    """Return the number of the storage of ``tensor``, valid while that lives."""
    return int(tensor.untyped_storage()._cdata)


def _dense(tensor: torch.Tensor) -> bool:
    """Return whether ``Tensor.to`` keeps the strides and flags of ``tensor``."""
    kept = torch.empty_like(tensor, device="meta").stride() == tensor.stride()
    return kept and not (tensor.is_conj() or tensor.is_neg())


def _owners(module: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the name of a module's part, a table of parameters or buffers of it and a key of that table."""
    for name, part in module.named_modules() if isinstance(module, torch.nn.Module) else ():
        for table in (part._parameters, part._buffers):
            yield from ((name, table, key) for key, value in table.items() if value is not None)


def _tensors(value: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (Mapping, list, tuple)):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in items:
            yield from _tensors(item, f"{name}.{key}")


def _plain(tensor: torch.Tensor) -> bool:
    """Return whether ``tensor`` is a view of one storage and nothing else."""
    kinds = (torch.Tensor, torch.nn.Parameter)
    quantised = tensor.is_quantized or tensor.is_nested or tensor.is_meta
    return type(tensor) in kinds and tensor.layout == torch.strided and not quantised


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the first byte of ``tensor`` in its storage, and the one after its last."""
    low, size = tensor.storage_offset(), tensor.element_size()
    reach = sum((count - 1) * step for count, step in zip(tensor.shape, tensor.stride(), strict=True))
    return low * size, (low + reach + 1 if tensor.numel() else low) * size
