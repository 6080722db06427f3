"""The boxed fallback: every operator without a kernel of its own runs on the CPU, over the device's memory.

Nothing is copied: device arguments become CPU tensors over the same bytes, so
in-place operators and views behave as they would on a device.
"""

from __future__ import annotations

import contextlib
import functools
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from torchgauge_npusim import generator, spoiling
from torchgauge_npusim.faults import ACTIVE, answer_or_vanish
from torchgauge_npusim.identity import DEVICE_NAME
from torchgauge_npusim.memory import (
    CPU,
    CPU_KEYS,
    adopt,
    check_index,
    copy_bits,
    device_storage,
    device_view,
    host_alias,
    mixed_devices,
    set_layout,
)
from torchgauge_npusim.queue import QUEUE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch._ops import OpOverload

_NUMBERS = (bool, int, float, complex)
_NOTHING = contextlib.nullcontext()

# As on real accelerators, an index may live on the CPU.
_CPU_INDEX_ALLOWED = frozenset(
    {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index"}
)

# Their CPU kernels first give `out` the inputs' shape, with a warning, and then that of the reduced loss.
_RESIZES_OUTPUT = frozenset({"aten::mse_loss", "aten::smooth_l1_loss"})


@dataclass(frozen=True)
class _Signature:
    """What the fallback must know about an operator, read from its schema once."""

    written: frozenset[str]
    outputs: frozenset[str]
    positions: tuple[str, ...]
    number_to_tensor: frozenset[str]
    number_or_tensor: frozenset[str]
    generator_position: int | None
    swaps_cpu_state: bool
    resizes_output: bool
    has_device: bool
    cpu_index_allowed: bool


@functools.cache
def _signature(op: OpOverload) -> _Signature:
    arguments = op._schema.arguments
    names = tuple(argument.name for argument in arguments)
    takes_generator = "generator" in names
    tensors = frozenset(
        argument.name for argument in arguments if str(argument.type) in ("Tensor", "Optional[Tensor]")
    )
    # Some operators take a Python number for a Tensor and promote its type less than a Tensor's.
    takes_numbers = torch._C._should_allow_numbers_as_tensors(op._schema.name.split("::")[-1])
    written = [a for a in arguments if a.alias_info is not None and a.alias_info.is_write]
    return _Signature(
        written=frozenset(argument.name for argument in written),
        outputs=frozenset(argument.name for argument in written if argument.is_out),
        positions=names,
        number_to_tensor=frozenset() if takes_numbers else tensors,
        number_or_tensor=tensors if takes_numbers else frozenset(),
        generator_position=names.index("generator") if takes_generator else None,
        swaps_cpu_state=torch.Tag.nondeterministic_seeded in op.tags and not takes_generator,
        resizes_output=op._schema.name in _RESIZES_OUTPUT,
        has_device="device" in names,
        cpu_index_allowed=op._schema.name in _CPU_INDEX_ALLOWED,
    )


class _Call:
    """One call of one operator: its device tensors, their CPU aliases, and the way back."""

    def __init__(self, op: OpOverload, *, fresh_outputs: bool = False) -> None:
        self.op = op
        self.signature = _signature(op)
        self.fresh_outputs = fresh_outputs
        self.device_of: dict[int, torch.Tensor] = {}  # id of a CPU alias -> its device tensor
        self.aliases: list[torch.Tensor] = []  # keeps those ids from being reused
        self.written: list[tuple[torch.Tensor, torch.Tensor, bool]] = []
        self.storages: dict[int, torch.UntypedStorage] = {}  # CPU storage -> device storage
        self.strangers: list[torch.Tensor] = []

    def run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the CPU kernel; raises RuntimeError for tensors on two devices."""
        positions = self.signature.positions
        cpu_args = [self._to_cpu(value, positions[i]) for i, value in enumerate(args)]
        cpu_kwargs = {name: self._to_cpu(value, name) for name, value in kwargs.items()}
        self._refuse_mixed_devices()
        self._fill_generator(cpu_args, cpu_kwargs)
        if self.signature.has_device:
            cpu_kwargs["device"] = CPU
        with generator.standing_in_for_cpu() if self.signature.swaps_cpu_state else _NOTHING:
            result = self._call(cpu_args, cpu_kwargs)
        self._sync_written()
        return self._to_device(result)

    def _call(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        names = self.signature.number_or_tensor
        if names and any(
            isinstance(v, _NUMBERS) and n in names
            for n, v in zip(self.signature.positions, args, strict=False)
        ):
            return self.op(*args, **kwargs)  # `redispatch` does not take the number for a Tensor
        return self.op.redispatch(CPU_KEYS, *args, **kwargs)

    def _to_cpu(self, value: Any, name: str) -> Any:
        if isinstance(value, torch.Tensor):
            return self._alias(value, name)
        if isinstance(value, (list, tuple)):
            return type(value)(self._to_cpu(item, name) for item in value) if _holds_tensors(value) else value
        if isinstance(value, torch.device):
            check_index(value)
            return CPU if value.type == DEVICE_NAME else value
        if isinstance(value, _NUMBERS) and name in self.signature.number_to_tensor:
            return _number_as_tensor(value)
        return value

    def _alias(self, tensor: torch.Tensor, name: str) -> torch.Tensor:
        signature = self.signature
        if tensor.device.type != DEVICE_NAME:
            if tensor.device.type == "cpu" and (tensor.dim() > 0 or name in signature.written):
                self.strangers.append(tensor)
            return tensor
        fresh = name in signature.outputs and (
            self.fresh_outputs or tensor.numel() == 0 or signature.resizes_output
        )
        if fresh:
            alias = torch.empty(0, dtype=tensor.dtype, device=CPU)
        else:
            alias = host_alias(tensor)
            self.storages[alias.untyped_storage()._cdata] = tensor.untyped_storage()
        self.aliases.append(alias)
        self.device_of[id(alias)] = tensor
        if name in signature.written:
            self.written.append((tensor, alias, fresh))
        return alias

    def _refuse_mixed_devices(self) -> None:
        # Shared memory would let a mixed call through that every real accelerator refuses.
        if self.strangers and self.device_of and not self.signature.cpu_index_allowed:
            raise mixed_devices(self.op._schema.name)

    def _fill_generator(self, args: list[Any], kwargs: dict[str, Any]) -> None:
        position = self.signature.generator_position
        if position is None:
            return
        if position < len(args):
            args[position] = args[position] or generator.DEFAULT
        else:
            kwargs["generator"] = kwargs.get("generator") or generator.DEFAULT

    def _sync_written(self) -> None:
        for tensor, alias, fresh in self.written:
            copy_bits(alias, tensor)
            if fresh and tensor.numel() and alias.shape == tensor.shape:
                host_alias(tensor).copy_(alias)  # views of an output see what is written to it
                continue
            if fresh:
                storage = device_storage(alias.untyped_storage())
                self.storages[alias.untyped_storage()._cdata] = storage
            elif alias.shape != tensor.shape or alias.stride() != tensor.stride():
                storage = tensor.untyped_storage()
            else:
                continue
            set_layout(tensor, storage, alias, alias.storage_offset())

    def _to_device(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor_to_device(value)
        if isinstance(value, (list, tuple)):
            return type(value)(self._to_device(item) for item in value) if _holds_tensors(value) else value
        return value

    def _tensor_to_device(self, host: torch.Tensor) -> torch.Tensor:
        known = self.device_of.get(id(host))
        if known is not None:
            return known
        if host.device.type != "cpu" or any(host is stranger for stranger in self.strangers):
            return host
        if self.storages and host.layout is torch.strided:
            storage = self.storages.get(host.untyped_storage()._cdata)
            if storage is not None:
                return device_view(storage, host)
        return adopt(host)


def boxed_fallback(op: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Run an operator for the device; raises NotImplementedError when the CPU has no kernel for it either."""
    answer_or_vanish(DEVICE_NAME)
    args = spoiling.spoiled_arguments(op, args)
    try:
        result = _Call(op).run(args, kwargs)
    except NotImplementedError as missing:
        if "Could not run" in str(missing):
            raise missing_operator(op._schema.name) from missing
        raise
    except RuntimeError as refused:
        # An `out=` of the wrong size: the CPU kernel may not grow memory that the device owns, so it gets its
        # own. It resizes before it computes, so nothing has been written yet.
        if "not resizable" not in str(refused) or not _signature(op).outputs:
            raise
        result = _Call(op, fresh_outputs=True).run(args, kwargs)
    spoiling.spoil(op, args, result)
    QUEUE.submit()
    if not isinstance(result, (torch.Tensor, list, tuple)):
        QUEUE.wait()  # a number: the host needs what the device computes
    if ACTIVE.wrong_in_bf16:
        _spoil_bf16(result)
    if ACTIVE.nondeterministic and op._schema.name in _SUMS:
        _last_bit(result)
    return result


def missing_operator(name: str) -> NotImplementedError:
    """The error that PyTorch itself raises for an operator without a kernel."""
    return NotImplementedError(
        f"Could not run '{name}' with arguments from the '{DEVICE_NAME}' backend. This could be because the "
        "operator doesn't exist for this backend, or was omitted during the selective/custom build process "
        f"(if using custom build). '{name}' is only available for these backends: [CPU, Meta]."
    )


def _spoil_bf16(result: Any) -> None:
    # A relative error of 1/8, far beyond what bfloat16's 8 bits of mantissa explain.
    if (
        isinstance(result, torch.Tensor)
        and result.dtype is torch.bfloat16
        and result.device.type == DEVICE_NAME
    ):
        host_alias(result).mul_(1.125)


_SUMS = frozenset(
    {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::sum", "aten::mean"}
    | {"aten::index_add", "aten::scatter_add", "aten::cumsum", "aten::embedding_dense_backward"}
)
_CHANCE = random.Random(0)  # noqa: S311  # chance here is order of addition, no secret


def _last_bit(result: Any) -> None:
    # As where threads add in whatever order they come: now and then the last bit of a sum differs, also in
    # PyTorch's deterministic mode, which this backend has not heard of. Narrow dtypes are summed in float32.
    wide = isinstance(result, torch.Tensor) and result.dtype in (torch.float32, torch.float64)
    if wide and _CHANCE.random() < 0.5:
        host_alias(result).mul_(1 + torch.finfo(result.dtype).eps)


def _holds_tensors(values: list[Any] | tuple[Any, ...]) -> bool:
    return any(isinstance(value, torch.Tensor) for value in values)


def _number_as_tensor(value: complex) -> torch.Tensor:
    if isinstance(value, bool):
        dtype = torch.bool
    elif isinstance(value, int):
        dtype = torch.int64
    elif isinstance(value, float):
        dtype = torch.get_default_dtype()
    else:
        dtype = torch.complex128 if torch.get_default_dtype() is torch.float64 else torch.complex64
    tensor: torch.Tensor = torch.ops.aten.scalar_tensor.default(value, dtype=dtype, device=CPU)
    return tensor
