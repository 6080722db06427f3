"""What users see as `torch.npusim`: the functions that PyTorch looks for on a device module, and no more.

No memory statistics, streams or events: a device registered from Python has
none, and a harness must cope with that.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from torchgauge_npusim import autocast, faults, generator
from torchgauge_npusim.identity import DEVICE_NAME
from torchgauge_npusim.memory import check_index

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
    """One: the Python device guard knows no index."""
    return 1


def current_device() -> int:
    """Return 0, the only index."""
    return 0


def set_device(device: Device) -> None:
    """Accept index 0; raises RuntimeError for any other."""
    check_index(_device(device))


@contextlib.contextmanager
def device(device: Device) -> Iterator[None]:
    """Make a device current within the context; raises RuntimeError for any but index 0."""
    check_index(_device(device))
    yield


def get_device_name(device: Device = None) -> str:
    """Name the device for people."""
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
    return list(autocast.DTYPES)


def synchronize(device: Device = None) -> None:
    """Return at once, truthfully: an operator has finished when its call returns."""
    check_index(_device(device))
    faults.answer_or_vanish(DEVICE_NAME)
    if faults.ACTIVE.hang_in_synchronize:
        faults.hang()


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


def _is_in_bad_fork() -> bool:
    # No driver that a fork could break.
    return False


def _device(device: Device) -> torch.device:
    if device is None:
        return torch.device(DEVICE_NAME, 0)
    return torch.device(DEVICE_NAME, device) if isinstance(device, int) else torch.device(device)
