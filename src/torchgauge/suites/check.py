"""The seam of a check: a question to a device whose answer is a status, not a time.

A suite of checks marks its entries with ``framework="check"`` and names a builder
``module:function(workload, session)``, a :data:`Check`; one that has models beside them names it as
``checker``. Check cases are ordinary cases, but many of them share one process. Worker side and parent side
both import this: standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from torchgauge.records import Cause, Failure, Measurement, Scalar, Status
from torchgauge.records.case import Workload

CHECK = "check"
"""The framework of entries that are checks, and the mode of those that have only one."""


class CheckSession(Protocol):
    """The part of a device session that checks use."""

    @property
    def name(self) -> str:
        """The device's name in case ids."""

    @property
    def index(self) -> int:
        """Index of the device among the visible ones."""

    @property
    def torch_device(self) -> Any:
        """The ``torch.device``, or None where the device runs no torch."""

    @property
    def distributed_backend(self) -> str | None:
        """Name of the collectives backend, None where there is none."""

    @property
    def profiler_activity(self) -> str | None:
        """The activity of ``torch.profiler`` that records the device, None where there is none."""

    def synchronize(self) -> None:
        """Wait until all work submitted to the device has ended."""

    def seed(self, seed: int) -> None:
        """Seed the device's generator and the host's."""

    def is_oom(self, error: BaseException) -> bool:
        """Whether ``error`` means that the device ran out of memory."""

    def is_lost(self, error: BaseException) -> bool:
        """Whether ``error`` means that the device no longer answers."""

    def autocast_dtypes(self) -> tuple[str, ...]:
        """Low-precision dtypes that autocast accepts."""


@dataclass(frozen=True)
class CheckOutcome:
    """How a check ended; ``reason`` is not empty where ``status`` is no pass.

    ``facts`` are kept in the row as they are, ``measurements`` are summarised there. ``error`` is what was
    raised where the check caught it itself: the harness describes it where there is no ``failure``.
    """

    status: Status = Status.PASS
    reason: str = ""
    cause: Cause | None = None
    failure: Failure | None = None
    facts: tuple[tuple[str, Scalar], ...] = ()
    measurements: tuple[Measurement, ...] = ()
    error: BaseException | None = None


TOO_FEW = "need as many devices"
"""What a case says of a machine with fewer devices than it has processes."""


class NotOnThisDeviceError(Exception):
    """PyTorch or the device says that it does not have what a check asks for; the message is the reason."""


class WrongAnswerError(AssertionError):
    """Numbers of the device differ from those of the host."""


Check = Callable[[Workload, CheckSession], CheckOutcome]
"""``check(workload, session)``.

May raise: :class:`NotOnThisDeviceError` and ``NotImplementedError`` become ``unsupported``,
:class:`WrongAnswerError` becomes ``fail_accuracy``, a full allocator ``oom``, a lost device ``infra``, and
everything else ``error``.
"""
