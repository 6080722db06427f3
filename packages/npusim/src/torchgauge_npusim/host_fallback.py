"""Chosen operators on the host by way of copies, as in C++ backends that register `at::native::cpu_fallback`.

The steps are those of PyTorch's aten/src/ATen/native/CPUFallback.cpp: all tensors go to the host with
`aten::_to_cpu`, the operator runs there, written arguments come back with `aten::_copy_from_and_resize` and
results with `to`. Tools that count fallbacks look for the first of these.
"""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from torchgauge_npusim import generator
from torchgauge_npusim.faults import FAULT_VARIABLE, answer_or_vanish
from torchgauge_npusim.identity import DEVICE_NAME
from torchgauge_npusim.memory import CPU, mixed_devices

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from torch._ops import OpOverload

aten = torch.ops.aten


def kernels(
    names: Iterable[str], own: Collection[OpOverload], *, by_itself: bool = False
) -> dict[OpOverload, Callable[..., torch.Tensor]]:
    """A kernel for each overload that `names` match, where * is anything; raises ValueError for no match.

    `own` are operators that the device cannot hand over: the fallback itself is built from them. A kernel
    that does it `by_itself` copies as any program does, and not as PyTorch's fallback.
    """
    run = _compute_on_host if by_itself else _fall_back
    found: dict[OpOverload, Callable[..., Any]] = {}
    overloads = [op for op in map(_overload, torch._C._dispatch_get_all_op_names()) if op is not None]
    for name in names:
        matching = [op for op in overloads if fnmatchcase(op._schema.name, name)]
        chosen = [op for op in matching if op in _ON_HOST or (op not in own and _hands_over(op))]
        if not chosen:
            why = "has no kernel that could fall back: it is composed of others, a view or an allocation"
            message = f"{FAULT_VARIABLE}: {name!r} {why if matching else 'is the name of no operator'}"
            raise ValueError(message)
        found.update({op: functools.partial(run, op) for op in chosen})
    return found


def _overload(qualified: str) -> OpOverload | None:
    namespace, _, rest = qualified.partition("::")
    base, _, overload = rest.partition(".")
    if namespace != "aten":
        return None
    found: OpOverload | None = getattr(getattr(aten, base, None), overload or "default", None)
    return found


def _hands_over(op: OpOverload) -> bool:
    # A kernel below autograd for a composed operator would take its gradient away.
    composed = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")
    tensors = any("Tensor" in str(argument.type) for argument in op._schema.arguments)
    on_host = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CPU")
    return tensors and on_host and not composed and not op.is_view


def _fall_back(op: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Run `op` on copies by PyTorch's protocol; raises RuntimeError for a mix of devices, as others do."""
    return _run(op, _Way(_copies, aten._copy_from_and_resize.default), args, kwargs)


def _compute_on_host(op: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Run `op` on copies that nobody announces; raises RuntimeError for a mix of devices, as others do."""
    return _run(op, _Way(lambda tensors: {id(each): each.to(CPU) for each in tensors}, _write), args, kwargs)


class _Way(NamedTuple):
    """How tensors get to the host, and what was written comes back."""

    out: Callable[[list[torch.Tensor]], dict[int, torch.Tensor]]
    back: Callable[[torch.Tensor, torch.Tensor], Any]


def _write(host: torch.Tensor, tensor: torch.Tensor) -> None:
    if host.shape != tensor.shape:
        tensor.resize_(host.shape)
    tensor.copy_(host)


def _run(op: OpOverload, way: _Way, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    answer_or_vanish(DEVICE_NAME)
    given = {**dict(zip((a.name for a in op._schema.arguments), args, strict=False)), **kwargs}
    if any(each.device.type == "cpu" and each.dim() for each in _tensors(given.values())):
        raise mixed_devices(op._schema.name)
    host_of = way.out([each for each in _tensors(given.values()) if each.device.type == DEVICE_NAME])

    def to_host(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return host_of.get(id(value), value)
        if isinstance(value, (list, tuple)):
            return type(value)(map(to_host, value))
        return CPU if isinstance(value, torch.device) and value.type == DEVICE_NAME else value

    host_args, host_kwargs = to_host(args), {name: to_host(value) for name, value in kwargs.items()}
    # What draws random numbers without a generator of its own draws them as the device's other kernels do.
    with generator.standing_in_for_cpu():
        result = _ON_HOST.get(op, op)(*host_args, **host_kwargs)
    written = [a.name for a in op._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    back: dict[int, torch.Tensor] = {}
    for tensor in _tensors(given[name] for name in written if name in given):
        host = host_of[id(tensor)]
        way.back(host, tensor)
        back[id(host)] = tensor
    return _to_device(result, back)


def _copies(tensors: list[torch.Tensor]) -> dict[int, torch.Tensor]:
    hosts = aten._to_cpu.default(tensors) if tensors else []
    return {id(tensor): host for tensor, host in zip(tensors, hosts, strict=True)}


def _tensors(values: Iterable[Any]) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found


def _to_device(value: Any, back: dict[int, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        known = back.get(id(value))
        return value.to(DEVICE_NAME) if known is None else known
    if isinstance(value, (list, tuple)):
        return type(value)(_to_device(each, back) for each in value)
    return value


def _convolution_backward(
    gradient: torch.Tensor, tensor: torch.Tensor, weight: torch.Tensor, *geometry_and_mask: Any
) -> Any:
    *geometry, mask = geometry_and_mask
    bias_sizes = [gradient.shape[1]] if mask[2] else None
    return aten.convolution_backward.default(gradient, tensor, weight, bias_sizes, *geometry, mask)


# Only backends implement these; on the host they have other names.
_ON_HOST: dict[OpOverload, Callable[..., Any]] = {
    aten.convolution_overrideable.default: aten.convolution.default,
    aten.convolution_backward_overrideable.default: _convolution_backward,
}
