"""Three devices of a third party: one that does not survive a fork, one that is not there, one that kills."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from torchgauge.devices.cpu import DEVICE as HOST
from torchgauge.devices.device import DeviceDescriptor

COLD = DeviceDescriptor(
    name="coldcpu",
    label="CPU without fork",
    session="torchgauge.devices.cpu:CpuSession",
    torch_type=HOST.torch_type,
    fork_safe=False,
    fixed_environment=HOST.fixed_environment,
)
LOST = DeviceDescriptor(
    name="lostdevice",
    label="Device that cannot be opened",
    session="torchgauge_faults.devices:open_lost_device",
    torch_type=None,
    fork_safe=True,
)
MORTAL = DeviceDescriptor(
    name="mortalcpu",
    label="CPU that the second process does not survive",
    session="torchgauge_faults.devices:open_mortal_device",
    torch_type=HOST.torch_type,
    fork_safe=True,
    fixed_environment=HOST.fixed_environment,
)
OPENED = "TORCHGAUGE_FAULTS_OPENED"
"""Names a folder in which every process that opens the mortal device leaves a file."""


def open_lost_device(name: str, index: int) -> None:
    """Raises ``RuntimeError`` always, as a runtime without its driver does."""
    raise RuntimeError(f"no driver for {name}.{index}")


def open_mortal_device(name: str, index: int) -> object:
    """A session of the host, but for the second process that asks: it is killed here."""
    from torchgauge.devices.cpu import CpuSession

    folder = Path(os.environ[OPENED])
    (folder / str(os.getpid())).touch()
    if len(list(folder.iterdir())) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return CpuSession(name, index)
