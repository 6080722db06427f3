"""Storage methods that PyTorch would send to a C++ allocator, of which this device has none.

Unpatched, `UntypedStorage(n, device="npusim")` and what is built on it, such as
`copy.deepcopy` of a tensor, end the process with SIGSEGV.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.utils import backend_registration

from torchgauge_npusim.identity import DEVICE_NAME
from torchgauge_npusim.memory import check_index, device_storage, host_storage

_CPU_NEW: Final = torch._C.StorageBase.__new__
_CPU_COPY: Final[Any] = torch._C.StorageBase.copy_  # type: ignore[attr-defined]  # missing from torch's hints


def patch() -> None:
    """Generate PyTorch's storage methods for the device, then replace those that allocate and copy."""
    backend_registration._generate_storage_methods_for_privateuse1_backend(DEVICE_NAME)
    storage_class: Any = torch.UntypedStorage
    storage_class.__new__ = staticmethod(_new)
    storage_class.copy_ = _copy_


def _new(cls: type[torch.UntypedStorage], *args: Any, **kwargs: Any) -> torch.UntypedStorage:
    device = torch.device(kwargs["device"]) if kwargs.get("device") is not None else None
    if device is None or device.type != DEVICE_NAME:
        return _CPU_NEW(cls, *args, **kwargs)
    check_index(device)
    del kwargs["device"]
    return device_storage(_CPU_NEW(cls, *args, **kwargs))


def _copy_(
    self: torch.UntypedStorage, source: torch.UntypedStorage, non_blocking: bool | None = None
) -> torch.UntypedStorage:
    del non_blocking  # nothing is asynchronous here
    _CPU_COPY(_host_side(self), _host_side(source))
    return self


def _host_side(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    return host_storage(storage) if storage.device.type == DEVICE_NAME else storage
