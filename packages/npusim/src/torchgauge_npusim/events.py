"""Events, taken away: what a backend shows whose C++ half implements none of their hooks."""

from __future__ import annotations

from typing import Any

import torch

from torchgauge_npusim.identity import DEVICE_NAME


def take_away() -> None:
    """Let every event of the device refuse what it is asked, in PyTorch's words."""
    # The class is C++ and takes no new attributes; a subclass in its place does.
    given: Any = torch.Event

    class Event(given):  # type: ignore[misc]
        def record(self, *args: Any, **kwargs: Any) -> Any:
            """Record, on any device but ours."""
            if self.device.type == DEVICE_NAME:
                # c10/core/impl/DeviceGuardImplInterface.h
                message = "Backend doesn't support events."
                raise RuntimeError(message)
            return super().record(*args, **kwargs)

    torch.Event = Event  # type: ignore[misc]
