"""The session code that all torch devices share; an adapter overrides only what really differs.

Each hook is tried once (:mod:`torchgauge.devices.hooks`); a hook that is missing or that had to be replaced
is a note, never an exception. Runs in the worker, on Python 3.10 and torch 2.5 and later.
"""

from __future__ import annotations

import errno
import re
from functools import cached_property
from typing import Any, Union

from torchgauge.devices import compilers, hooks
from torchgauge.devices.hooks import HOOK_ERRORS, first_line
from torchgauge.devices.session import Absent, EventTimer, MemoryReading
from torchgauge.errors import InfrastructureError
from torchgauge.records import Configuration, Scalar

OUT_OF_MEMORY = re.compile(
    r"\bout of (?:(?:device|host|gpu|system) )?memory\b(?! (?:pool|format|order|bound|range|access))"
    r"|\b(?:can't|cannot|could not|unable to|failed to) allocate (?:memory\b|[\d.]+ ?(?:[kmgt]i?b|bytes?)\b)"
    r"|defaultcpuallocator: (?:can't allocate|not enough) memory"
    r"|\bstd::bad_alloc\b|\b(?:cublas|cudnn|hipblas|rocblas)_status_alloc_failed\b",
    re.IGNORECASE,
)
"""Messages of plain RuntimeErrors that mean a full allocator. Shared memory of a kernel is another matter."""

PROPERTIES = (
    "major",
    "minor",
    "gcnArchName",
    "multi_processor_count",
    "max_compute_units",
    "gpu_eu_count",
    "vendor",
    "platform_name",
    "driver_version",
)
"""Fields of the devices' property objects that tell machine classes apart; serial numbers are left out."""


class TorchEventTimer:
    """Two events of the device; ``elapsed_s`` waits for the second."""

    def __init__(self, first: Any, second: Any) -> None:
        self._first = first
        self._second = second

    def start(self) -> None:
        """Record the first event on the current stream."""
        self._first.record()

    def stop(self) -> None:
        """Record the second event on the current stream."""
        self._second.record()

    def elapsed_s(self) -> float:
        """Seconds between the events."""
        self._second.synchronize()
        return float(self._first.elapsed_time(self._second)) / 1e3


class AcceleratorSession:
    """A torch device reached only through the interfaces that torch shares between devices."""

    def __init__(self, name: str, index: int = 0, torch_type: str | None = None) -> None:
        self._name = name
        self._index = index
        self._torch_type = torch_type or name
        self._notes: dict[str, str] = {}
        self._device = self._open()

    def _open(self) -> Any:
        import torch

        try:
            device = torch.device(self._torch_type, self._index)
        except RuntimeError as error:
            raise InfrastructureError(
                f"device {self._name!r}: torch {torch.__version__} does not know it: {first_line(error)}",
                hint="install the package that provides it, and leave TORCH_DEVICE_BACKEND_AUTOLOAD on",
            ) from error
        if self._torch_type != "cpu":
            selected = hooks.select(self._torch_type, self._index)
            if selected.call is None:
                self._note("device index", selected.problem)
        return device

    def _note(self, hook: str, problem: str) -> None:
        if problem:
            self._notes[hook] = problem

    @property
    def name(self) -> str:
        """The device's name in case ids."""
        return self._name

    @property
    def index(self) -> int:
        """Index of the device among the visible ones."""
        return self._index

    @property
    def torch_device(self) -> Any:
        """The ``torch.device``."""
        return self._device

    @property
    def notes(self) -> tuple[str, ...]:
        """Hooks tried so far that are missing or degraded, each with its reason."""
        return tuple(f"{hook}: {problem}" for hook, problem in sorted(self._notes.items()))

    @cached_property
    def distributed_backend(self) -> str | None:
        """Name of the default collectives backend, None where there is none."""
        backend, problem = hooks.distributed_backend(self._torch_type)
        self._note("distributed", problem)
        return backend

    @cached_property
    def _synchronize(self) -> Any:
        found = hooks.synchronize(self._torch_type, self._index)
        used = f" (used: {found.source})" if found.call is not None else ""
        self._note("synchronize", found.problem and found.problem + used)
        if found.call is None:
            raise InfrastructureError(
                f"device {self._name!r} cannot be waited for: {found.problem}",
                hint="torchgauge devices shows what the device answers",
            )
        return found.call

    def synchronize(self) -> None:
        """Wait until all work submitted to the device has ended."""
        self._synchronize()

    @cached_property
    def _event_pair(self) -> Any:
        found = hooks.event_pair(self._torch_type, self._index, self.synchronize)
        if found.call is None:
            self._note("events", found.problem)
        return found.call

    def event_timer(self) -> EventTimer | None:
        """A new timer, or None where the device has no working events."""
        if self._event_pair is None:
            return None
        return TorchEventTimer(*self._event_pair())

    @cached_property
    def _peak_memory(self) -> hooks.Hook:
        found = hooks.peak_memory(self._torch_type, self._index, self.synchronize)
        if found.call is None:
            self._note("peak memory", found.problem)
        return found

    def reset_peak_memory(self) -> None:
        """Start a new peak; does nothing where there is no counter."""
        if self._peak_memory.call is not None:
            reset, _ = self._peak_memory.call
            reset()

    def peak_memory(self) -> Union[MemoryReading, Absent]:
        """Peak bytes of the device's own allocator; waits first, as some allocators are asynchronous."""
        counter = self._peak_memory
        if counter.call is None:
            return Absent(counter.problem)
        _, read = counter.call
        self.synchronize()
        return MemoryReading(int(read()), counter.source)

    def seed(self, seed: int) -> None:
        """Seed the host's generator and the device's."""
        import torch

        torch.manual_seed(seed)
        module = hooks.device_module(self._torch_type)
        for name in ("manual_seed_all", "manual_seed"):
            function = getattr(module, name, None)
            if function is not None:
                try:
                    function(seed)
                except HOOK_ERRORS as error:
                    self._note("seed", f"torch.{self._torch_type}.{name}: {first_line(error)}")
                return
        if self._torch_type != "cpu":
            self._note(
                "seed", f"torch.{self._torch_type} has no manual_seed; only torch.manual_seed was called"
            )

    def is_oom(self, error: BaseException) -> bool:
        """Whether ``error``, or the error that it reports, means that an allocator was full."""
        import torch

        types = tuple(
            found for found in (getattr(torch, "OutOfMemoryError", None), MemoryError) if found is not None
        )
        seen: set[int] = set()
        current: BaseException | None = error
        while current is not None and id(current) not in seen:
            seen.add(id(current))
            if isinstance(current, types):
                return True
            if isinstance(current, OSError) and current.errno == errno.ENOMEM:
                return True
            if isinstance(current, RuntimeError) and OUT_OF_MEMORY.search(str(current)):
                return True
            current = getattr(current, "inner_exception", None) or current.__cause__
        return False

    @cached_property
    def _autocast_dtypes(self) -> tuple[str, ...]:
        dtypes = hooks.autocast_dtypes(self._torch_type)
        if not dtypes:
            self._note("autocast", "no low-precision dtype ran under torch.autocast")
        return dtypes

    def autocast_dtypes(self) -> tuple[str, ...]:
        """Low-precision dtypes in which autocast was seen to work."""
        return self._autocast_dtypes

    def unsupported(self, configuration: Configuration) -> str | None:
        """Why the configuration's compiler cannot serve the device in this process; None where it may."""
        if not configuration.compiled:
            return None
        return compilers.compile_refusal(self._torch_type, configuration.backend)

    def fingerprint(self) -> dict[str, Scalar]:
        """Model, memory, capability, driver and the package that provides the device."""
        found: dict[str, Scalar] = {"device.type": self._torch_type}
        model = hooks.model_name(self._torch_type, self._index)
        if model.call is None:
            self._note("model name", model.problem)
        else:
            found["device.model"] = model.call
        found.update(self._properties())
        module = hooks.device_module(self._torch_type)
        version = getattr(module, "__version__", None)
        if isinstance(version, str):
            found["device.module_version"] = version
        return found

    def _properties(self) -> dict[str, Scalar]:
        module = hooks.device_module(self._torch_type)
        try:
            properties = module.get_device_properties(self._index)
        except HOOK_ERRORS as error:
            self._note("properties", f"torch.{self._torch_type}.get_device_properties: {first_line(error)}")
            return {}
        found: dict[str, Scalar] = {}
        for name in ("total_memory", *PROPERTIES):
            value = getattr(properties, name, None)
            if isinstance(value, (str, int)) and value != "":
                key = "memory_bytes" if name == "total_memory" else name
                found[f"device.{key}"] = value
        return found

    def telemetry(self) -> dict[str, Scalar]:
        """Utilisation, temperature, power, clock and free memory, as far as the device gives them."""
        readings, problem = hooks.telemetry(self._torch_type, self._index)
        self._note("telemetry", problem)
        found: dict[str, Scalar] = dict(readings)
        memory = hooks.free_and_total_memory(self._torch_type, self._index)
        if memory.call is None:
            self._note("free memory", memory.problem)
        else:
            found["device.memory_free_bytes"] = memory.call[0]
        return found

    def calibration_dtypes(self) -> tuple[str, ...]:
        """Single precision, which every device has."""
        return ("float32",)
