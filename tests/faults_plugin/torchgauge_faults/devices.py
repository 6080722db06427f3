"""Two devices of a third party: one whose runtime does not survive a fork, and one that is not there."""

from __future__ import annotations

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


def open_lost_device(name: str, index: int) -> None:
    """Raises ``RuntimeError`` always, as a runtime without its driver does."""
    raise RuntimeError(f"no driver for {name}.{index}")
