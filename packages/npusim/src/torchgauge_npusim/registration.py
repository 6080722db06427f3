"""Makes the device known to PyTorch, in the one order that works.

The steps use private functions of PyTorch that may move between releases, so
the version is checked before anything is touched.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.utils import backend_registration

from torchgauge_npusim import (
    __version__,
    autocast,
    device_module,
    dynamo,
    events,
    fallback,
    faults,
    host_fallback,
    kernels,
    storage,
)
from torchgauge_npusim.identity import DEVICE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from torch._ops import OpOverload

SUPPORTED: Final = ((2, 13), (2, 14))  # from the first, up to but without the second

_libraries: list[Any] = []


class UnsupportedTorchError(RuntimeError):
    """The torch in this environment is not one that the device was written for."""


def register() -> None:
    """Register the device once; raises UnsupportedTorchError, or what an injected fault asks for."""
    if _libraries:
        return
    _check_version(torch.__version__)
    driverless = faults.ACTIVE.raise_without_driver and not faults.driver_is_there(DEVICE_NAME)
    if faults.ACTIVE.raise_on_import or driverless:
        faults.fail_like_a_missing_driver(DEVICE_NAME)
    backend_registration._setup_privateuseone_for_python_backend(DEVICE_NAME, device_module)
    storage.patch()
    missing = _overloads(faults.MISSING_OPS_VARIABLE, faults.ACTIVE.missing_ops, _raising_kernel)
    missing.update(_overloads(faults.FAULT_VARIABLE, faults.ACTIVE.abort_ops, _aborting_kernel))
    _register_kernels(missing)
    if faults.ACTIVE.keeps_parameters:
        torch.__future__.set_swap_module_params_on_conversion(True)
    if faults.ACTIVE.no_events:
        events.take_away()
    elif faults.ACTIVE.events:
        _give_events(faults.ACTIVE.events)
    faults.plan_exit()
    _register_autocast()
    dynamo.register_when_imported()


def _give_events(clock: str) -> None:
    if clock not in events.CLOCKS:
        message = f"{faults.FAULT_VARIABLE}: events={clock}: the clock is one of {', '.join(events.CLOCKS)}"
        raise ValueError(message)
    events.give(clock)


def _check_version(version: str) -> None:
    found = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    first, after_last = SUPPORTED
    if not first <= found < after_last:
        message = (
            f"torchgauge-npusim {__version__} needs torch "
            f">={first[0]}.{first[1]},<{after_last[0]}.{after_last[1]} because it uses private functions, "
            f"but this is torch {version}: device {DEVICE_NAME!r} is not registered. "
            "Install a matching torchgauge-npusim, or uninstall it to silence this."
        )
        raise UnsupportedTorchError(message)


def _register_kernels(missing: dict[OpOverload, Callable[..., Any]]) -> None:
    everything = _library("_")
    everything.fallback(fallback.boxed_fallback, "PrivateUse1")
    copying = host_fallback.kernels(faults.ACTIVE.fallback_ops, kernels.KERNELS)
    copying.update(host_fallback.kernels(faults.ACTIVE.host_kernels, kernels.KERNELS, by_itself=True))
    # An absent kernel is a kernel that raises, which also hides operators that PyTorch composes of others.
    _implement({**kernels.KERNELS, **copying, **missing}.items(), "PrivateUse1")
    # PyTorch's fallback for these keys clones the source, which copies, which comes back here: until
    # SIGSEGV. Our copy handles both bits itself.
    for key in ("Conjugate", "Negative"):
        _implement([(torch.ops.aten._copy_from.default, torch.library.fallthrough_kernel)], key)


def _register_autocast() -> None:
    everything = _library("_")
    everything.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    _implement(autocast.kernels(), "AutocastPrivateUse1")


def _library(namespace: str) -> Any:
    # Any, because torch.library.Library has no type hints; kept, because it unregisters when it dies.
    library: Any = torch.library.Library(namespace, "IMPL")  # type: ignore[no-untyped-call]
    _libraries.append(library)
    return library


def _implement(kernels_by_op: Iterable[tuple[OpOverload, Callable[..., Any]]], key: str) -> None:
    libraries: dict[str, Any] = {}
    for op, kernel in kernels_by_op:
        namespace = op.namespace
        if namespace not in libraries:
            libraries[namespace] = _library(namespace)
        libraries[namespace].impl(op, kernel, key)


def _overloads(
    variable: str, names: Iterable[str], kernel_for: Callable[[str], Callable[..., Any]]
) -> dict[OpOverload, Callable[..., Any]]:
    """Map all overloads of the named operators to broken kernels; raises ValueError for unknown names."""
    raising: dict[OpOverload, Callable[..., Any]] = {}
    for name in names:
        namespace, _, base = name.partition("::")
        packet = getattr(getattr(torch.ops, namespace), base, None) if base else None
        if packet is None:
            message = f"{variable}: there is no operator {name!r}; write namespace::base_name"
            raise ValueError(message)
        kernel = kernel_for(name)
        raising.update({getattr(packet, overload): kernel for overload in packet.overloads()})
    return raising


def _raising_kernel(name: str) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        raise fallback.missing_operator(name)

    return kernel


def _aborting_kernel(name: str) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        sys.stderr.write(f"{DEVICE_NAME}: assertion failed in {name}\n")
        sys.stderr.flush()
        os.abort()

    return kernel
