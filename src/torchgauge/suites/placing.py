"""Copies of a workload's tensors on a device and in a dtype, with the aliases, strides and flags they had."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import torch

from torchgauge.suites.parts import Copies, below
from torchgauge.suites.suite import HOST, BuiltWorkload

CASTABLE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
KINDS = (torch.Tensor, torch.nn.Parameter)
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
        owned = [table[key] for _, table, key in _owners(module)]
        given = [tensor for _, tensor in tensors((args, kwargs), "")]
        groups = _sharing((*owned, *given))
        usual = [*(tensor for tensor in owned if type(tensor) in KINDS), *given]
        for tensor in usual:  # Tensor.__deepcopy__ keeps neither shared memory nor strides nor bits nor hooks
            _copied(tensor, groups, memo)
        copies = Copies(memo)
        module, args, kwargs = copies.of((module, args, kwargs))
        for tensor in usual:
            _dressed(memo[id(tensor)], tensor, copies.of)
        for _, table, key in _owners(module):
            if not table[key].is_leaf:  # of a scripted module
                table[key] = torch.nn.Parameter(table[key].detach(), table[key].requires_grad)
    return _Placing(device, dtype).place(module, args, kwargs)


def materialised(built: BuiltWorkload) -> BuiltWorkload:
    """Return ``built`` with the shapes of lazy parameters and buffers, which a module's first call sets."""
    module = built.module
    if isinstance(module, torch.nn.Module) and any(map(is_lazy, (*module.parameters(), *module.buffers()))):
        modes = [(part, part.training) for part in module.modules()]
        with torch.no_grad():
            module.eval()(*built.args, **built.kwargs)
        for part, training in modes:
            part.training = training
    return built


def named(names: Sequence[str]) -> str:
    """Return the text of ``names`` for a row: six at most."""
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return f"{', '.join(names[:NAMES])}{more}"


class _Placing:
    """Holds the tensors that one call of :func:`placed` has placed so far."""

    def __init__(self, device: Any, dtype: Any) -> None:
        device = torch.device(device)
        self.device = torch.device(HOST) if device.type == HOST else device  # to("cpu:0") copies
        self.dtype, self.cast = dtype, True
        self._made: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # an id belongs to a living object
        self._groups: dict[int, _Group] = {}
        self._bases: dict[int, torch.Tensor] = {}

    def place(self, module: Any, args: Any, kwargs: Any) -> Placed:
        owners = list(_owners(module))
        module_tensors = [(f"{name}.{key}".lstrip("."), table[key]) for name, table, key in owners]
        given = [*tensors(args, "args"), *tensors(kwargs, "kwargs")]
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
            module._apply(self._of_module)
            for (_, tensor), (_, table, key) in zip(module_tensors, owners, strict=True):
                _dressed(table[key], tensor)
                if id(tensor) in inputs:
                    self._made[id(tensor)] = tensor, table[key]
            if self.device.type != HOST:  # a class may move more than its parameters and buffers
                module = module.to(device=self.device)
        elif module is not None:
            module = module.to(device=self.device, dtype=self.dtype)
        args, kwargs = self._inputs((args, kwargs))
        kept += [
            f"{name} {str(tensor.dtype).removeprefix('torch.')} on {tensor.device}"
            for name, tensor in (*tensors(args, "args"), *tensors(kwargs, "kwargs"))
            if tensor.device != self.device
        ]
        return Placed(module, args, kwargs, kept)

    def _inputs(self, value: Any, *, move: bool = True) -> Any:
        """Return ``value`` with its tensors placed, or only cast unless ``move``.

        Objects without such a tensor are not copied. An object with a method ``to`` moves itself.
        """
        memo, owners, pending = dict[int, Any](), dict[int, list[int]](), list[int]()
        for _, part, owner in below(value, ""):
            owners.setdefault(id(part), []).append(id(owner))
            memo.setdefault(id(part), part)
            if isinstance(part, torch.Tensor):
                memo[id(part)] = placed = (
                    self._once(part) if move else part.to(self._dtype_of(part) or part.dtype)
                )
                pending += [id(part)] if placed is not part else []
            elif isinstance(part, torch.nn.Module):
                part.to(self.device)
        while pending:
            for owner in owners.pop(pending.pop(), ()):
                memo.pop(owner, None)
                pending.append(owner)
        return (_Moved(memo, self) if move else Copies(memo)).of(value)

    def _dtype_of(self, tensor: torch.Tensor) -> Any:
        """Return the dtype of ``tensor`` once it is placed; None for one of whole numbers."""
        if not (tensor.is_floating_point() or tensor.is_complex()):
            return None
        group = self._group(tensor)
        castable = self.cast and tensor.dtype in CASTABLE and (group is None or len(group.dtypes) == 1)
        return self.dtype if castable else tensor.dtype

    def _group(self, tensor: torch.Tensor) -> _Group | None:
        """Return the tensors that share memory with ``tensor``; None where its memory is unshared."""
        return self._groups.get(_key(tensor)) if _plain(tensor) else None

    def _of_module(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return ``tensor`` placed; a parameter is placed for each of its names, as by ``Module.to``."""
        if tensor.is_meta:  # it has no values to move, and the module need not use it
            return tensor
        return self._moved(tensor) if isinstance(tensor, torch.nn.Parameter) else self._once(tensor)

    def _once(self, tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in self._made:
            self._made[id(tensor)] = tensor, _dressed(self._moved(tensor), tensor)
        return self._made[id(tensor)][1]

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        dtype = self._dtype_of(tensor) or tensor.dtype
        if tensor.device == self.device and tensor.dtype == dtype:
            return tensor if tensor.is_leaf else tensor.detach().requires_grad_(tensor.requires_grad)
        with torch.no_grad():
            if _plain(tensor) and ((group := self._group(tensor)) or not _dense(tensor)):
                moved = self._view(tensor.detach(), dtype, group)
            else:
                moved = tensor.detach().to(device=self.device, dtype=dtype)
        return moved.requires_grad_() if tensor.requires_grad else moved

    def _view(self, tensor: torch.Tensor, dtype: Any, group: _Group | None) -> torch.Tensor:
        """Copy the memory of ``group`` once, and return the view of the copy that corresponds to ``tensor``.

        Without a group the memory is that of ``tensor``. Memory of several dtypes is copied as bytes.
        """
        memory = group or _Group([tensor])
        base = self._bases.get(id(memory))
        if base is None:
            several = len(memory.dtypes) > 1
            whole = memory.whole(torch.uint8 if several else tensor.dtype)
            if several:  # a view as a larger element needs whole ones
                whole = torch.nn.functional.pad(whole, (0, -len(whole) % memory.unit))
            base = whole.to(device=self.device, dtype=whole.dtype if several else dtype, copy=True)
            if group is not None:
                self._bases[id(memory)] = base
        view = base if base.dtype == dtype else base.view(dtype)
        return _with_bits(view.as_strided(tensor.shape, tensor.stride(), memory.offset(tensor)), tensor)


class _Group:
    """Tensors that share memory: dtypes, bytes of the largest element, and the span of bytes in use."""

    def __init__(self, tensors: Collection[torch.Tensor]) -> None:
        spans = [_span(tensor) for tensor in tensors]
        self.aliases = [tensor.detach() for tensor in tensors]
        self.dtypes = {tensor.dtype for tensor in tensors}
        self.unit = max(tensor.element_size() for tensor in tensors)
        self.first = min(low for low, _ in spans) // self.unit * self.unit
        self.last = max(high for _, high in spans)

    def whole(self, kind: torch.dtype) -> torch.Tensor:
        """Return the memory in use as one tensor of ``kind``."""
        nbytes, tensor = self.last - self.first, self.aliases[0]
        if _address(tensor) and nbytes:  # of several storages, where they are arrays of numpy
            return torch.frombuffer((ctypes.c_byte * nbytes).from_address(self.first), dtype=kind)
        whole = torch.empty(0, dtype=kind, device=tensor.device)
        place = (self.first - _address(tensor)) // kind.itemsize
        return whole.set_(tensor.untyped_storage(), place, (nbytes // kind.itemsize,), (1,))

    def offset(self, tensor: torch.Tensor) -> int:
        """Return the position of ``tensor`` in the memory in use, in its elements."""
        low, size = _address(tensor), tensor.element_size()
        return int(tensor.storage_offset() + (low - self.first) // size)


class _Moved(Copies):
    """Copies of the inputs with the tensors that ``placing`` has placed."""

    def __init__(self, memo: dict[int, Any], placing: _Placing) -> None:
        super().__init__(memo)
        self.placing = placing

    def made(self, value: Any) -> Any:
        """Make a copy of ``value``, which moves itself if its class can and a part is not on the device."""
        device = self.placing.device
        if not hasattr(type(value), "to") or all(part.device == device for _, part in tensors(value, "")):
            return super().made(value)
        copied = Copies({}).of(value)
        moved = copied.to(device)
        return self.placing._inputs(copied if moved is None else moved, move=False)


def _copied(tensor: torch.Tensor, groups: Mapping[int, _Group], memo: dict[int, Any]) -> torch.Tensor:
    """Return a copy of ``tensor`` as a leaf; ``memo`` holds copies of tensors and groups by their ids.

    A tensor of inference mode stays one.
    """
    if id(tensor) in memo:
        return cast(torch.Tensor, memo[id(tensor)])
    if tensor.is_inference() and not torch.is_inference_mode_enabled():
        with torch.inference_mode():
            return _copied(tensor, groups, memo)
    if not _plain(tensor):
        copied = tensor.detach().clone()
    else:
        group = groups.get(_key(tensor))
        memory = group or _Group([tensor])
        base = memo.get(id(group)) if group else None
        base = memory.whole(torch.uint8).clone() if base is None else base
        if group:  # lives as long as memo
            memo[id(group)] = base
        copied = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        copied.set_(base.untyped_storage(), memory.offset(tensor), tensor.shape, tensor.stride())
        copied = _with_bits(copied, tensor)
    if isinstance(tensor, torch.nn.Parameter):
        copied = torch.nn.Parameter(copied, tensor.requires_grad)
    memo[id(tensor)] = copied = copied.requires_grad_(tensor.requires_grad)
    return copied


def _dressed(
    copied: torch.Tensor, tensor: torch.Tensor, of: Callable[[Any], Any] = lambda value: value
) -> torch.Tensor:
    """Give a copy the attributes and the hooks that its author gave ``tensor``; ``of`` copies them."""
    if copied is not tensor and type(tensor) in KINDS:
        copied.__dict__.update(of(vars(tensor)))
        for hooks in ("_backward_hooks", "_post_accumulate_grad_hooks"):
            if getattr(tensor, hooks):
                setattr(copied, hooks, of(getattr(tensor, hooks)))
    return copied


def _with_bits(view: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Return ``view`` with the conjugate and the negative bit of ``tensor``."""
    view = view.conj() if tensor.is_conj() else view
    return torch.ops.aten._neg_view(view) if tensor.is_neg() else view


def _sharing(tensors: Iterable[torch.Tensor]) -> dict[int, _Group]:
    """Return, by storage, the groups of ``tensors`` that share memory.

    Their aliases keep a storage alive while parameters exchange their data, so that its address is not
    reused. Storages of the host may overlap: arrays of numpy do.
    """
    shared: dict[int, dict[int, torch.Tensor]] = {}
    end, before = 0, -1
    for tensor in sorted(filter(_plain, tensors), key=_address):
        key, address = _key(tensor), _address(tensor)
        if key not in shared:
            shared[key] = shared[before] if 0 < address < end else {}
            end, before = max(end, address + tensor.untyped_storage().nbytes()), key
        shared[key][id(tensor)] = tensor
    made = {id(group): _Group(group.values()) for group in shared.values() if len(group) > 1}
    return {key: made[id(group)] for key, group in shared.items() if len(group) > 1}


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


def tensors(value: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield path and tensor of each tensor in ``value`` and its parts."""
    return ((path, part) for path, part, _ in below(value, name) if isinstance(part, torch.Tensor))


def is_lazy(tensor: torch.Tensor) -> bool:
    """Return whether ``tensor`` has no shape before its module is called."""
    return isinstance(tensor, (torch.nn.UninitializedParameter, torch.nn.UninitializedBuffer))


def _address(tensor: torch.Tensor) -> int:
    """Return the address of the storage of ``tensor`` on the host, 0 on a device."""
    return int(tensor.untyped_storage().data_ptr()) if tensor.device.type == HOST else 0


def _plain(tensor: torch.Tensor) -> bool:
    """Return whether ``tensor`` is a view of one storage and nothing else."""
    quantised = tensor.is_quantized or tensor.is_nested or tensor.is_meta
    return type(tensor) in KINDS and tensor.layout == torch.strided and not quantised


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the address of the first byte of ``tensor``, and that after its last."""
    size = tensor.element_size()
    low = _address(tensor) + tensor.storage_offset() * size
    reach = sum((count - 1) * step for count, step in zip(tensor.shape, tensor.stride(), strict=True))
    return low, low + (reach + 1 if tensor.numel() else 0) * size
