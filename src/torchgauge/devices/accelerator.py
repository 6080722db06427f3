"""The session code that all torch devices share; an adapter overrides only what really differs.

Each hook is tried once (:mod:`torchgauge.devices.hooks`); a hook that is missing or that had to be replaced
is a note, never an exception. Runs in the worker, on Python 3.10 and torch 2.5 and later.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Optional, Union, cast

from torchgauge.devices import autocast, compilers, hooks, messages
from torchgauge.devices.clock_check import contradiction
from torchgauge.devices.device import Provision, driver_version
from torchgauge.devices.event_timer import TorchEventTimer
from torchgauge.devices.hooks import HOOK_ERRORS, first_line
from torchgauge.devices.opening import compute_once, refuse_absent
from torchgauge.devices.session import Absent, EventTimer, MemoryReading
from torchgauge.errors import InfrastructureError
from torchgauge.records import Configuration, Scalar

PROPERTIES = (
    "major",
    "minor",
    "gcnArchName",
    "multi_processor_count",
    "max_compute_units",
    "gpu_eu_count",
    "vendor",
    "platform_name",
)
"""Fields of the devices' property objects that tell machine classes apart; serial numbers are left out."""


class AcceleratorSession:
    """A torch device reached only through the interfaces that torch shares between devices.

    Opening it asks for one operator with a known answer, so that a device that went away, or that an
    earlier process left broken, is not blamed on a model.
    """

    provision: ClassVar[Provision] = Provision()
    """Where the device comes from: what an adapter's errors tell to type."""

    def __init__(self, name: str, index: int = 0, torch_type: str | None = None) -> None:
        self._name = name
        self._index = index
        self._torch_type = torch_type or name
        self._notes: dict[str, str] = {}
        self._device = self._open()

    events_contradict = ""
    """What the device's events showed that cannot be, once they were tried and refused."""

    def clock_contradiction(self) -> str:
        """How the device's clocks contradict each other while it does known work; "" where they agree."""
        return contradiction(self)

    def _open(self) -> Any:
        import torch

        try:
            device = torch.device(self._torch_type, self._index)
        except RuntimeError as error:
            raise InfrastructureError(
                f"device {self._name!r}: torch {torch.__version__} does not recognise "
                f"this device type: {first_line(error)}",
                hint=self.provision.install
                or "install the package that provides it, and leave TORCH_DEVICE_BACKEND_AUTOLOAD on",
            ) from error
        refuse_absent(self._name, self._torch_type, self._index, self.provision)
        if self._torch_type != "cpu":
            selected = hooks.select(self._torch_type, self._index)
            if selected.call is None:
                self._note("device index", selected.problem)
        self._pin_precision()
        compute_once(self._name, device, self.provision)
        return device

    def _pin_precision(self) -> None:
        """Make float32 mean float32, whatever the build's defaults are; undone by a configuration only."""
        import torch

        torch.set_float32_matmul_precision("highest")

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
                f"device {self._name!r} cannot be synchronised: {found.problem}",
                hint="torchgauge devices prints the device's own error",
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
            self.events_contradict = found.impossible
        return found.call

    def event_timer(self) -> EventTimer | None:
        """A new timer, or None where the device has no working timing events."""
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
            self._peak_memory.call[0]()

    def peak_memory(self) -> Union[MemoryReading, Absent]:
        """Peak bytes of the device's own allocator; waits first, as some allocators are asynchronous."""
        counter = self._peak_memory
        if counter.call is None:
            return Absent(counter.problem)
        _, read, _ = counter.call
        self.synchronize()
        return MemoryReading(int(read()), counter.source)

    def memory_in_use(self) -> int | None:
        """Return the bytes in use of the device's own allocator; None if it does not count them."""
        counter = self._peak_memory
        return None if counter.call is None else cast(Optional[int], counter.call[2]())

    def seed(self, seed: int) -> None:
        """Seed the host's generator and the device's."""
        import torch

        torch.default_generator.manual_seed(seed)  # torch.manual_seed() takes 1 ms in a build for CUDA
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

    def rng_state(self) -> Any:
        """The state of the host's generator and of the device's (None where it cannot be read)."""
        import torch

        getter = getattr(hooks.device_module(self._torch_type), "get_rng_state", None)
        if self._torch_type == "cpu":
            return torch.get_rng_state(), None
        try:
            if getter is None:
                raise AttributeError(name="get_rng_state")
            return torch.get_rng_state(), getter()
        except HOOK_ERRORS as error:
            self._note("rng state", f"torch.{self._torch_type}.get_rng_state: {first_line(error)}")
            return torch.get_rng_state(), None

    def set_rng_state(self, state: Any) -> None:
        """Restore what :meth:`rng_state` gave."""
        import torch

        host, device = state
        torch.set_rng_state(host)
        if device is not None:
            hooks.device_module(self._torch_type).set_rng_state(device)

    def is_oom(self, error: BaseException) -> bool:
        """Whether ``error``, or the error that it reports, means that an allocator was full."""
        import torch

        return messages.is_full_allocator(error, (torch.OutOfMemoryError, MemoryError))

    def is_lost(self, error: BaseException) -> bool:
        """Whether ``error``, or the error that it reports, means that the device is gone."""
        return messages.is_lost_device(error)

    @cached_property
    def profiler_activity(self) -> str | None:
        """The activity of ``torch.profiler`` that records the device, None where there is none."""
        activity, problem = hooks.profiler_activity(self._torch_type)
        self._note("profiler", problem)
        return activity

    @cached_property
    def _autocast_dtypes(self) -> tuple[str, ...]:
        dtypes = autocast.autocast_dtypes(self._torch_type)
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

    def precision(self) -> dict[str, Scalar]:
        """The switches that decide what float32 means and whether operators repeat themselves."""
        import torch

        return {
            "precision.float32_matmul": str(torch.get_float32_matmul_precision()),
            "precision.deterministic_algorithms": bool(torch.are_deterministic_algorithms_enabled()),
        }

    def driver(self) -> str:
        """The version of the driver, from the device's properties or the driver's own file; "" if unknown."""
        reported = self._property("driver_version")
        return str(reported) if reported else driver_version(self.provision)

    def fingerprint(self) -> dict[str, Scalar]:
        """Model, memory, capability, driver, precision and the package that provides the device."""
        found: dict[str, Scalar] = {"device.type": self._torch_type, **self.precision()}
        model = hooks.model_name(self._torch_type, self._index)
        if model.call is None:
            self._note("model name", model.problem)
        else:
            found["device.model"] = model.call
        for name in ("total_memory", *PROPERTIES):
            value = self._property(name)
            if isinstance(value, (str, int)) and value != "":
                key = "memory_bytes" if name == "total_memory" else name
                found[f"device.{key}"] = value
        driver = self.driver()
        if driver:
            found["device.driver"] = driver
        version = getattr(hooks.device_module(self._torch_type), "__version__", None)
        if isinstance(version, str):
            found["device.module_version"] = version
        return found

    @cached_property
    def _properties(self) -> Any:
        module = hooks.device_module(self._torch_type)
        try:
            return module.get_device_properties(self._index)
        except HOOK_ERRORS as error:
            self._note("properties", f"torch.{self._torch_type}.get_device_properties: {first_line(error)}")
            return None

    def _property(self, name: str) -> Any:
        return getattr(self._properties, name, None)

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

    def throttled_for(self) -> str:
        """Why the device has lowered its clock now, in its own words; "" where it has not or does not say."""
        return hooks.throttled_for(self._torch_type, self._index)

    def calibration_dtypes(self) -> tuple[str, ...]:
        """Single precision, which every device has."""
        return ("float32",)
