"""The device's own random numbers, so that work on the device never moves the CPU's generator.

PyTorch will not build a Generator for a device registered from Python; a CPU
generator kept apart gives the same numbers with the same seed.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT = torch.Generator("cpu")
# Two threads that swap the global CPU state at once would leave the device's state in the CPU's place.
_SWAP = threading.Lock()


@contextlib.contextmanager
def standing_in_for_cpu() -> Iterator[None]:
    """Let an operator that only knows the global CPU generator, such as dropout, draw from the device's."""
    with _SWAP:
        cpu_state = torch.default_generator.get_state()
        torch.default_generator.set_state(DEFAULT.get_state())
        try:
            yield
        finally:
            DEFAULT.set_state(torch.default_generator.get_state())
            torch.default_generator.set_state(cpu_state)
