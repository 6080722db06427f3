"""The device's name, and whether this process asked for it: PyTorch lets it name a backend only once."""

from __future__ import annotations

import os

CHOICE_VARIABLE = "TORCHGAUGE_SIMULATED_DEVICE"
CHOICE = "asyncsim"
RENAMED_VARIABLE = "TORCHGAUGE_ASYNCSIM_NAME"
DEVICE_NAME = os.environ.get(RENAMED_VARIABLE) or CHOICE


def chosen() -> bool:
    """Whether the environment asks for this device rather than for another simulated one, or for none."""
    return os.environ.get(CHOICE_VARIABLE) == CHOICE
