"""What users see as `torch.npusim`: the functions that PyTorch looks for on a device module, and no more.

No streams or events of its own: a device registered from Python has none, and a harness must cope with
that. Memory is counted here only: `torch.accelerator` asks a C++ allocator, of which there is none.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from torchgauge_npusim import autocast, faults, generator, memory
from torchgauge_npusim.identity import DEVICE_NAME
from torchgauge_npusim.memory import check_index
from torchgauge_npusim.queue import QUEUE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Device = torch.device | str | int | None


@dataclass(frozen=True)
class DeviceProperties:
    """What Dynamo and Inductor ask of a device."""

    name: str
    multi_processor_count: int = 1
    total_memory: int | None = None


def is_available() -> bool:
    """Whether the device can be used: always."""
    return True


def is_initialized() -> bool:
    """Whether the device is ready: always, as there is no driver to start."""
    return True


def init() -> None:
    """Do nothing: there is no driver to start."""


def device_count() -> int:
    """One, or as many as the environment says. The fault counts two, and gives the first for both."""
    return 2 if faults.ACTIVE.ignored_index else faults.DEVICES


def current_device() -> int:
    """Return the index that was set, 0 at first, unless a fault says otherwise."""
    return 1 if faults.ACTIVE.wrong_device_index else faults.selected()


def set_device(device: Device) -> None:
    """Let calls go to a device from now on; raises RuntimeError for an index that there is not."""
    check_index(_device(device))
    faults.select(_device(device).index or 0)


@contextlib.contextmanager
def device(device: Device) -> Iterator[None]:
    """Make a device current within the context; raises RuntimeError for an index that there is not."""
    before = faults.selected()
    set_device(device)
    try:
        yield
    finally:
        faults.select(before)


def get_device_name(device: Device = None) -> str:
    """Name the device for people."""
    faults.answer_or_hang("get_device_name")
    check_index(_device(device))
    return f"{DEVICE_NAME} (simulated)"


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Describe the device for compilers."""
    return DeviceProperties(name=get_device_name(device))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 works: as well as on the CPU."""
    del including_emulation
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Dtypes that `torch.autocast` accepts for the device."""
    faults.answer_or_hang("get_amp_supported_dtype")
    return list(autocast.DTYPES)


def synchronize(device: Device = None) -> None:
    """Wait for the queue: at once, truthfully, unless operators were told to take time after their call."""
    check_index(_device(device))
    faults.answer_or_vanish(DEVICE_NAME)
    if faults.ACTIVE.hang_in_synchronize:
        faults.hang()
    if not faults.ACTIVE.synchronize_does_not_wait:
        QUEUE.wait()


def throttle_reasons(device: Device = None) -> str:
    """Why the device has lowered its clock; empty, as it has none, unless a fault says otherwise."""
    check_index(_device(device))
    return faults.throttle()


def manual_seed(seed: int) -> None:
    """Seed the device's generator."""
    generator.DEFAULT.manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices: of the one."""
    manual_seed(seed)


def seed() -> int:
    """Seed the device's generator from the system's entropy and return the seed."""
    return generator.DEFAULT.seed()


def initial_seed() -> int:
    """Return the seed that the device's generator started from."""
    return generator.DEFAULT.initial_seed()


def get_rng_state(device: Device = None) -> torch.Tensor:
    """Return the state of the device's generator as a byte tensor on the CPU."""
    check_index(_device(device))
    return generator.DEFAULT.get_state()


def set_rng_state(new_state: torch.Tensor, device: Device = None) -> None:
    """Restore what `get_rng_state` returned."""
    check_index(_device(device))
    generator.DEFAULT.set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """Return the states of all devices' generators."""
    return [get_rng_state()]


def set_rng_state_all(new_states: Sequence[torch.Tensor]) -> None:
    """Restore what `get_rng_state_all` returned."""
    (state,) = new_states
    set_rng_state(state)


def memory_allocated(device: Device = None) -> int:
    """Bytes that live on the device."""
    check_index(_device(device))
    return memory.live_bytes()


def max_memory_allocated(device: Device = None) -> int:
    """The most bytes that lived at once since the peak was reset."""
    check_index(_device(device))
    return memory.peak_bytes()


def reset_peak_memory_stats(device: Device = None) -> None:
    """Count the peak from what lives now."""
    check_index(_device(device))
    memory.forget_peak()


def memory_stats(device: Device = None) -> dict[str, int]:
    """Current and peak bytes under PyTorch's names; a device without a pool has no more to say."""
    return {
        "allocated_bytes.all.current": memory_allocated(device),
        "allocated_bytes.all.peak": max_memory_allocated(device),
    }


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Free and total bytes."""
    faults.answer_or_hang("mem_get_info")
    check_index(_device(device))
    total = memory.total_bytes()
    return max(0, total - memory.live_bytes()), total


def empty_cache() -> None:
    """Do nothing: memory is given back at once, so nothing is kept."""


class Event:
    """A point in the order of work, which has happened as soon as it is recorded."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        """Make an event; `blocking` and `interprocess` change nothing here."""
        del blocking, interprocess
        self.enable_timing = enable_timing
        self._at: float | None = None

    def record(self, stream: object = None) -> None:
        """Note the time."""
        del stream
        self._at = time.perf_counter()

    def synchronize(self) -> None:
        """Return at once, truthfully."""

    def query(self) -> bool:
        """Whether it has happened: always, unless a fault says otherwise."""
        return not faults.ACTIVE.own_event_query_never

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to another one; raises RuntimeError where one was not recorded."""
        if self._at is None or end._at is None:
            message = "both events must be recorded"
            raise RuntimeError(message)
        return (end._at - self._at) * 1e3


if not (faults.ACTIVE.own_events or faults.ACTIVE.own_event_query_never):
    del Event
if faults.ACTIVE.no_memory_stats:
    del memory_allocated, max_memory_allocated, reset_peak_memory_stats
    del memory_stats, mem_get_info, empty_cache


def _is_in_bad_fork() -> bool:
    # No driver that a fork could break.
    return False


def _device(device: Device) -> torch.device:
    if device is None:
        return torch.device(DEVICE_NAME, 0)
    return torch.device(DEVICE_NAME, device) if isinstance(device, int) else torch.device(device)
