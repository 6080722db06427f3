"""Makes the device known to PyTorch, in the one order that works.

The version is checked before anything is touched: the C++ half was built for one release of torch.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.utils import backend_registration

from torchgauge_asyncsim import __version__, process_group, settings
from torchgauge_asyncsim.identity import DEVICE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

SUPPORTED: Final = ((2, 13), (2, 14))  # from the first, up to but without the second
OPERATORS: Final = Path(__file__).with_name("operators.txt")

_libraries: list[Any] = []


class UnsupportedTorchError(RuntimeError):
    """The torch in this environment is not one that the device was written for."""


def register() -> None:
    """Register the device once; raises UnsupportedTorchError, or what an injected fault asks for."""
    if _libraries:
        return
    _check_version(torch.__version__)
    settings.before_loading()
    from torchgauge_asyncsim import _C

    asked = settings.apply(_C)
    backend_registration.rename_privateuse1_backend(DEVICE_NAME)
    from torchgauge_asyncsim import device_module

    torch._register_device_module(DEVICE_NAME, device_module)
    backend_registration.generate_methods_for_privateuse1_backend(for_storage=True)
    _register_kernels(_C)
    process_group.register()
    _break(device_module, asked)
    settings.prepare_exit(_C, asked)


def _check_version(version: str) -> None:
    found = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    first, after_last = SUPPORTED
    if not first <= found < after_last:
        message = (
            f"torchgauge-asyncsim {__version__} needs torch "
            f">={first[0]}.{first[1]},<{after_last[0]}.{after_last[1]}, but this is torch {version}: device "
            f"{DEVICE_NAME!r} is not registered. Build the package again with a torch that it knows."
        )
        raise UnsupportedTorchError(message)


def _register_kernels(native: Any) -> None:
    missing, fallback = settings.operators_of("missing-ops"), settings.operators_of("fallback-ops")
    names = OPERATORS.read_text(encoding="utf-8").split()
    absent = missing | fallback
    native.register_kernels(
        [name.removeprefix("aten::") for name in names if name.split(".")[0] not in absent]
    )
    library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    _libraries.append(library)
    for name in missing:
        packet = getattr(torch.ops.aten, name.removeprefix("aten::"))
        for overload in packet.overloads():
            library.impl(getattr(packet, overload), _raising_kernel(name), "PrivateUse1")


def _raising_kernel(name: str) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        message = f"Could not run '{name}' with arguments from the '{DEVICE_NAME}' backend."
        raise NotImplementedError(message)

    return kernel


def _break(module: Any, asked: set[str]) -> None:
    """Put the faults that are Python's into the device module."""
    if "no-memory-stats" in asked:
        for name in ("memory_allocated", "max_memory_allocated", "reset_peak_memory_stats", "memory_stats"):
            delattr(module, name)
    if "properties-hang" in asked:

        def get_device_properties(device: Any = None) -> Any:
            del device
            while True:
                time.sleep(3600)

        module.get_device_properties = get_device_properties
    if "wrong-autocast-dtype" in asked:
        right = torch.set_autocast_dtype

        def set_autocast_dtype(device_type: str, dtype: torch.dtype) -> None:
            ours = device_type == DEVICE_NAME and dtype is torch.bfloat16
            right(device_type, torch.float16 if ours else dtype)

        torch.set_autocast_dtype = set_autocast_dtype
