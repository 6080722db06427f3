"""The device's name, read once: PyTorch lets a process name its backend only once."""

from __future__ import annotations

import os

NAME_VARIABLE = "TORCHGAUGE_NPUSIM_NAME"
DEVICE_NAME = os.environ.get(NAME_VARIABLE) or "npusim"
