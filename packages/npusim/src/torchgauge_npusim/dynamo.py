"""What Dynamo must know of the device, told when Dynamo is first imported.

Dynamo takes seconds to import, which nobody who merely imports torch should
pay; and it has no hook for late devices, so we watch for its import.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from typing import TYPE_CHECKING, Any

from torchgauge_npusim import device_module
from torchgauge_npusim.identity import DEVICE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_PACKAGE = __name__.partition(".")[0]


def register_when_imported() -> None:
    """Prepare Dynamo for the device: now if it is loaded, else module by module as it is imported."""
    for name, prepare in _PREPARE.items():
        loaded = sys.modules.get(name)
        if loaded is not None:
            prepare(loaded)
        else:
            sys.meta_path.insert(0, _Watcher(name))


class _Watcher(MetaPathFinder):
    """Finds nothing itself; adds our preparation to the import of one module."""

    def __init__(self, watched: str) -> None:
        self._watched = watched

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname != self._watched:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _PreparingLoader(spec.loader)
        return spec


class _PreparingLoader(Loader):
    """Loads a module as its own loader would, then prepares it for the device."""

    def __init__(self, original: Loader) -> None:
        self._original = original

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._original.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._original.exec_module(module)
        _PREPARE[module.__name__](module)

    def __getattr__(self, name: str) -> Any:
        # The module keeps this loader; get_source and its like must still work.
        return getattr(self._original, name)


def _skip_our_frames(trace_rules: ModuleType) -> None:
    # Our kernels are Python: after a graph break Dynamo would trace into them as into the user's code.
    trace_rules.add(_PACKAGE)


def _register(dynamo_devices: ModuleType) -> None:
    interface = _interface(dynamo_devices.DeviceInterface)
    for name in (DEVICE_NAME, f"{DEVICE_NAME}:0"):
        dynamo_devices.register_interface_for_device(name, interface)


def _interface(base: type[Any]) -> type[Any]:
    class Worker:
        set_device = staticmethod(device_module.set_device)
        current_device = staticmethod(device_module.current_device)
        get_device_properties = staticmethod(device_module.get_device_properties)

    def keep_device(device: int) -> int:
        device_module.set_device(device if device >= 0 else None)  # Dynamo says -1 for "leave it"
        return 0

    members = {
        "Worker": Worker,
        "current_device": staticmethod(device_module.current_device),
        "set_device": staticmethod(device_module.set_device),
        "exchange_device": staticmethod(keep_device),
        "maybe_exchange_device": staticmethod(keep_device),
        "device_count": staticmethod(device_module.device_count),
        "is_available": staticmethod(device_module.is_available),
        "synchronize": staticmethod(device_module.synchronize),
        "get_raw_stream": staticmethod(lambda _index: 0),
        "get_compute_capability": staticmethod(lambda _device=None: ""),
        "is_bf16_supported": staticmethod(device_module.is_bf16_supported),
    }
    return type("NpusimInterface", (base,), members)


_PREPARE: dict[str, Callable[[ModuleType], None]] = {
    "torch._dynamo.device_interface": _register,
    "torch._dynamo.trace_rules": _skip_our_frames,
}
