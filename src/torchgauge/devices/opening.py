"""What a session asks before it serves a device: whether it is there, and whether it computes.

Worker side. Both raise :class:`InfrastructureError`, which becomes ``infra`` and is never blamed on a model.
"""

from __future__ import annotations

from typing import Any

from torchgauge.counted import counted
from torchgauge.devices.availability import availability
from torchgauge.devices.device import Provision
from torchgauge.devices.hooks import HOOK_ERRORS, first_line
from torchgauge.errors import InfrastructureError


def refuse_absent(name: str, torch_type: str, index: int, provision: Provision) -> None:
    """Raise where torch has no code for the device type, or counts too few devices of it."""
    import torch

    found = availability(torch_type)
    who = f"device {name!r}"
    if not found.built:
        raise InfrastructureError(
            f"{who}: torch {torch.__version__} is not built for this device",
            hint=provision.install or "torchgauge devices prints which part is missing",
        )
    if found.count == 0:
        said = f": {found.problem}" if found.problem else ""
        raise InfrastructureError(
            f"{who}: torch {torch.__version__} is built for this device, but found none{said}",
            hint=f"{provision.tool} lists the driver's devices" if provision.tool else "check its driver",
        )
    if index >= found.count:
        raise InfrastructureError(
            f"{who} has {counted(found.count, 'device')}: there is no index {index}",
            hint="torchgauge devices lists them",
        )


def compute_once(name: str, device: Any, provision: Provision) -> None:
    """Raise where the device does not answer one addition, or answers it wrongly.

    An earlier process may have left it broken, or it went away: the next group must not be blamed for it.
    """
    import torch

    answer: object
    try:
        ones = torch.ones(4, device=device)
        answer = (ones + ones).cpu().tolist()
    except HOOK_ERRORS as error:
        answer = first_line(error)
    if answer != [2.0] * 4:
        tool = provision.tool
        raise InfrastructureError(
            f"device {name!r} does not compute: 1 + 1 gave {answer}",
            hint=f"{tool} shows the device's state; the device may need a reset"
            if tool
            else "the device may need a reset",
        )
