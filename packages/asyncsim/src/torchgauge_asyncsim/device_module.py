"""What users see as `torch.asyncsim`: what PyTorch looks for on a device module, and the plans."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from torchgauge_asyncsim import _C, __version__
from torchgauge_asyncsim.identity import DEVICE_NAME
from torchgauge_asyncsim.settings import spellings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import Self

    Device = torch.device | str | int | None

MODEL = "asyncsim (simulated)"
DTYPES = [torch.bfloat16, torch.float16]


@dataclass(frozen=True)
class DeviceProperties:
    """What Dynamo and Inductor ask of a device."""

    name: str
    total_memory: int
    multi_processor_count: int = 1
    driver_version: str = __version__


class Event(torch.Event):
    """An event of the device, with PyTorch's own methods."""

    def __new__(cls, enable_timing: bool = False, **kwargs: bool) -> Self:
        """Make an event; `blocking` and `interprocess` change nothing here."""
        del kwargs
        return super().__new__(cls, DEVICE_NAME, enable_timing=enable_timing)


class Stream(torch.Stream):
    """A stream of the device, with PyTorch's own methods."""

    def __new__(cls, device: Device = None, priority: int = 0, **kwargs: Any) -> Self:
        """Make a stream on `device`, by default on the current one."""
        if kwargs:
            return super().__new__(cls, **kwargs)
        return super().__new__(cls, torch.device(DEVICE_NAME, _index(device)), priority=priority)


def is_available() -> bool:
    """Whether the device can be used: always."""
    return True


def is_initialized() -> bool:
    """Whether a stream of the device was used in this process."""
    return bool(_C.is_initialized())


def init() -> None:
    """Do nothing: a stream's thread begins with its first kernel."""


def _lazy_init() -> None:
    """Do nothing, like `init`."""


def device_count() -> int:
    """Two, unless a fault says otherwise."""
    return int(_C.device_count())


def current_device() -> int:
    """Return the index of this thread's current device."""
    return int(_C.current_device())


def set_device(device: Device) -> None:
    """Make a device current; raises RuntimeError for an index that is not there."""
    _C.set_current_device(_index(device))


@contextlib.contextmanager
def device(device: Device) -> Iterator[None]:
    """Make a device current within the context; raises RuntimeError for an index that is not there."""
    before = current_device()
    set_device(device)
    try:
        yield
    finally:
        _C.set_current_device(before)


def get_device_name(device: Device = None) -> str:
    """Name the device for people."""
    _index(device)
    return MODEL


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Describe the device for compilers."""
    return DeviceProperties(MODEL, mem_get_info(device)[1])


def get_device_capability(device: Device = None) -> tuple[int, int]:
    """Nothing depends on it."""
    _index(device)
    return (1, 0)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 works: as well as on the host."""
    del including_emulation
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Dtypes that `torch.autocast` accepts for the device."""
    return list(DTYPES)


def synchronize(device: Device = None) -> None:
    """Wait until all that was submitted to all streams of a device has ended."""
    _C.synchronize(_index(device))


def current_stream(device: Device = None) -> torch.Stream:
    """Return this thread's current stream of a device."""
    return torch.accelerator.current_stream(torch.device(DEVICE_NAME, _index(device)))


def set_stream(stream: torch.Stream) -> None:
    """Make a stream current."""
    torch.accelerator.set_stream(stream)


def stream(stream: torch.Stream) -> torch.Stream:
    """Return a context in which a stream is current: the stream itself."""
    return stream


def manual_seed(seed: int) -> None:
    """Seed the current device's generator."""
    _generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices."""
    for index in range(device_count()):
        _generator(index).manual_seed(int(seed))


def seed() -> int:
    """Seed the current device's generator from the system's entropy and return the seed."""
    return int(_generator(None).seed())


def initial_seed() -> int:
    """Return the seed that the current device's generator started from."""
    return int(_generator(None).initial_seed())


def get_rng_state(device: Device = DEVICE_NAME) -> torch.Tensor:
    """Return the state of a device's generator as a byte tensor on the CPU."""
    return _generator(device).get_state()


def set_rng_state(new_state: torch.Tensor, device: Device = DEVICE_NAME) -> None:
    """Restore what `get_rng_state` returned."""
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """Return the states of all devices' generators."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Sequence[torch.Tensor]) -> None:
    """Restore what `get_rng_state_all` returned."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def memory_allocated(device: Device = None) -> int:
    """Bytes of blocks that tensors have."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Device = None) -> int:
    """The most bytes that tensors had at once since the peak was reset."""
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Device = None) -> int:
    """Bytes that the allocator holds, for tensors and for later ones."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: Device = None) -> int:
    """The most bytes that the allocator held since the peak was reset."""
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Device = None) -> None:
    """Count the peaks from what there is now."""
    _C.reset_peak(_index(device))


def memory_stats(device: Device = None) -> dict[str, int]:
    """Return the allocator's counters under PyTorch's names, in bytes and pieces."""
    counters: dict[str, int] = _C.memory_counters(_index(device))
    return counters


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Free and total bytes."""
    free, total = _C.memory_info(_index(device))
    return free, total


def empty_cache() -> None:
    """Give back what the allocator holds and no tensor has."""
    _C.empty_cache()


def plan_kernel(name: str, seconds: float | None) -> None:
    """Let every kernel of an operator ("aten::mm", "*" for all others) occupy its stream for `seconds`.

    In place or not is one. None takes the plan back; raises RuntimeError for a time below zero. Copies are
    "aten::copy_", collectives "c10d::allreduce" and the like.
    """
    for spelling in spellings(name):
        _C.plan_kernel(spelling, seconds)


def plan_launch(seconds: float) -> None:
    """Let the host be busy for `seconds` with each launch, beyond what launching takes anyway."""
    _C.plan_launch(seconds)


def forget_plans() -> None:
    """Let every kernel take as long as its arithmetic."""
    _C.forget_plans()


def set_late_counters(late: bool) -> None:
    """Let memory counters change when the stream gets there, as with allocators that work in stream order."""
    _C.set_late_counters(late)


def set_fault(name: str, on: bool = True) -> None:
    """Switch a fault on or off; raises ValueError for a name that is none."""
    _C.set_fault(name, on)


def _is_in_bad_fork() -> bool:
    return bool(_C.is_in_bad_fork())


def _index(device: Device) -> int:
    if device is None:
        return current_device()
    index = device if isinstance(device, int) else torch.device(device).index
    if index is None:
        return current_device()
    if not 0 <= index < device_count():
        message = f"invalid device ordinal: {index}; this host has {device_count()} {DEVICE_NAME} devices"
        raise RuntimeError(message)
    return index


def _generator(device: Device) -> torch.Generator:
    generator: torch.Generator = _C.default_generator(_index(device))
    return generator
