"""The device's back end of torch.distributed: collectives on a stream of their own, over gloo on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from torchgauge_asyncsim.identity import DEVICE_NAME

if TYPE_CHECKING:
    from datetime import timedelta

NAME: Final = "asyncccl"


def register() -> None:
    """Make the back end the default one for tensors of the device, where torch has gloo."""
    from torch import distributed

    if distributed.is_available() and distributed.is_gloo_available():
        distributed.Backend.register_backend(NAME, _create, devices=[DEVICE_NAME])


def _create(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    from torch import distributed

    from torchgauge_asyncsim import _C

    host = distributed.ProcessGroupGloo(store, rank, size, timeout)
    return _C.collectives(host, rank, size)
