"""Device memory that is host memory: real storages, so that pointers, strides, views and aliasing are real.

A device tensor and the CPU tensor that a kernel computes on share their bytes.
The CPU side is a storage that PyTorch may not resize: growing it would free the
bytes under the device tensor's feet.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final, cast

import torch

from torchgauge_npusim import faults
from torchgauge_npusim.faults import ACTIVE, DEVICES
from torchgauge_npusim.identity import DEVICE_NAME

if TYPE_CHECKING:
    from typing import Any

aten = torch.ops.aten
CPU: Final = torch.device("cpu")
CPU_KEYS: Final = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_MEMORY_ATTRIBUTE: Final = "_npusim_memory"


class HostMemory:
    """The bytes behind one device storage; it lives exactly as long as that storage."""

    __slots__ = ("alias", "nbytes", "owner")

    def __init__(self, owner: torch.UntypedStorage) -> None:
        """Take over a CPU storage; raises RuntimeError when the simulated device is full."""
        self.nbytes = 0  # set after charging, so that a refused allocation returns nothing in __del__
        _charge(owner.nbytes())
        self.nbytes = owner.nbytes()
        self.owner = owner
        self.alias = _storage_over(owner.data_ptr(), CPU, self.nbytes)

    def __del__(self) -> None:
        """Give the bytes back to the simulated device."""
        _charge(-self.nbytes)


class _Ledger:
    """Bytes that live on the device; a lock, because autograd allocates from its own thread."""

    def __init__(self) -> None:
        self.live_bytes = 0
        self.peak_bytes = 0
        # Re-entrant: the collector may run a HostMemory.__del__ while the same thread is charging.
        self.lock = threading.RLock()


_LEDGER = _Ledger()


def _charge(nbytes: int) -> None:
    with _LEDGER.lock:
        limit = ACTIVE.oom_after_bytes
        if limit is not None and nbytes > 0 and _LEDGER.live_bytes + nbytes > limit:
            message = (
                f"{DEVICE_NAME} out of memory. Tried to allocate {nbytes} bytes; "
                f"{_LEDGER.live_bytes} of {limit} bytes are in use."
            )
            raise full_memory(message)
        _LEDGER.live_bytes += nbytes
        _LEDGER.peak_bytes = max(_LEDGER.peak_bytes, _LEDGER.live_bytes)


def full_memory(message: str) -> RuntimeError:
    """The error of a full memory: PyTorch's own, or a plain one as several real backends raise it."""
    return (RuntimeError if ACTIVE.oom_is_runtime_error else torch.OutOfMemoryError)(message)


def live_bytes() -> int:
    """Bytes of all storages that live on the device."""
    return _LEDGER.live_bytes


def peak_bytes() -> int:
    """The most bytes that lived at once since the start or `forget_peak`."""
    return _LEDGER.peak_bytes


def forget_peak() -> None:
    """Count the peak from what lives now."""
    with _LEDGER.lock:
        _LEDGER.peak_bytes = _LEDGER.live_bytes


def total_bytes() -> int:
    """The device's size: that of the host's memory, or what the fault `oom_after_bytes` says."""
    if ACTIVE.oom_after_bytes is not None:
        return ACTIVE.oom_after_bytes
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def device() -> torch.device:
    """The device that every tensor names: PyTorch's guard for devices in Python knows index 0 only."""
    return torch.device(DEVICE_NAME, 0)


def check_index(wanted: torch.device | None) -> None:
    """Go on with the device that a tensor is asked for on; raises RuntimeError where it does not exist."""
    if ACTIVE.ignored_index:
        return
    if wanted is not None and wanted.type == DEVICE_NAME and (wanted.index or 0) >= DEVICES:
        plural = "device" if DEVICES == 1 else "devices"
        message = f"invalid device ordinal: {wanted}; this host has {DEVICES} {DEVICE_NAME} {plural}"
        raise RuntimeError(message)
    if wanted is not None and wanted.type == DEVICE_NAME and wanted.index:
        faults.select(wanted.index)  # torch.accelerator tells nobody what it selects, and tensors say 0


def mixed_devices(operator: str) -> RuntimeError:
    """The error that real accelerators give for an operator on tensors of two devices."""
    return RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{DEVICE_NAME}:0 and cpu! (when calling {operator})"
    )


def _storage_over(pointer: int, place: torch.device, nbytes: int) -> torch.UntypedStorage:
    # Neither owns nor resizes the bytes. (PyTorch's hint names the wrong class.)
    storage: Any = torch._C._construct_storage_from_data_pointer(pointer, place, nbytes)
    return cast("torch.UntypedStorage", storage)


def device_storage(owner: torch.UntypedStorage) -> torch.UntypedStorage:
    """A device storage over the bytes of a CPU storage, without copying them."""
    memory = HostMemory(owner)
    storage = _storage_over(owner.data_ptr(), device(), memory.nbytes)
    # PyTorch keeps the Python half of a storage as long as its C++ half, and with it this attribute.
    setattr(storage, _MEMORY_ATTRIBUTE, memory)
    return storage


def host_storage(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    """The CPU storage over the same bytes as a device storage."""
    memory: HostMemory | None = getattr(storage, _MEMORY_ATTRIBUTE, None)
    if memory is not None:
        return memory.alias
    # Not ours: PyTorch wraps our pointers in storages of its own, for instance to write them to a file.
    return _storage_over(storage.data_ptr(), CPU, storage.nbytes())


def host_alias(tensor: torch.Tensor) -> torch.Tensor:
    """A CPU tensor over the same bytes, with the same layout and conjugate and negative bits."""
    storage = host_storage(tensor.untyped_storage())
    alias = torch.empty(0, dtype=tensor.dtype, device=CPU)
    # The methods of torch.Tensor cost a third of what torch.ops costs, and this is the hot path.
    alias.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())
    copy_bits(tensor, alias)
    return alias


def copy_bits(source: torch.Tensor, target: torch.Tensor) -> None:
    """Give a tensor another's lazy conjugate and negative bits; some kernels flip those of their output."""
    if source.is_conj() is not target.is_conj():
        torch._C._set_conj(target, source.is_conj())
    if source.is_neg() is not target.is_neg():
        torch._C._set_neg(target, source.is_neg())


def device_view(storage: torch.UntypedStorage, like: torch.Tensor) -> torch.Tensor:
    """A new device tensor over a device storage, with the dtype and layout of a CPU tensor."""
    tensor = torch._C._acc.create_empty_tensor((0,), like.dtype)
    set_layout(tensor, storage, like, like.storage_offset())
    copy_bits(like, tensor)
    return tensor


def set_layout(
    tensor: torch.Tensor, storage: torch.UntypedStorage, like: torch.Tensor, offset: int | torch.SymInt
) -> torch.Tensor:
    """Point a device tensor at a storage (offset in elements) with another tensor's shape and strides."""
    # The CPU kernel serves, as it only writes metadata.
    aten.set_.source_Storage_storage_offset.redispatch(
        CPU_KEYS, tensor, storage, offset, like.shape, like.stride()
    )
    return tensor


def adopt(host: torch.Tensor) -> torch.Tensor:
    """Move a CPU result to the device without copying it; raises NotImplementedError if it is not strided."""
    if host.layout is not torch.strided:
        message = (
            f"Could not run an operator that returns layout {host.layout} on the '{DEVICE_NAME}' backend."
        )
        raise NotImplementedError(message)
    storage = device_storage(host.untyped_storage())
    return device_view(storage, host)
