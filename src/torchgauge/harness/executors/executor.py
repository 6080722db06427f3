"""The seam of an executor: it takes the groups of a plan and yields what is to be kept, as it happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Union

from torchgauge.clock import Clock
from torchgauge.devices.device import Device
from torchgauge.records import Calibration, Environment, Group, Plan, Result
from torchgauge.suites.suite import Suite

if TYPE_CHECKING:
    from torchgauge.harness.launched.crew import Crew


@dataclass(frozen=True)
class RunNote:
    """A fact about the run that belongs in its journal."""

    text: str


@dataclass(frozen=True)
class BudgetSpent:
    """The time of the run is over: groups were left out."""


Yield = Union[Environment, Calibration, RunNote, BudgetSpent, "list[Result]"]


@dataclass(frozen=True)
class Submission:
    """What an executor is given: groups still to run, and how to load what they need.

    ``folder`` is the run's folder; the executor keeps logs under ``folder/logs`` and scratch files under
    ``folder/work``, which it removes. ``cancelled`` is asked often; ``on_event`` hears of progress.
    ``crew`` are the processes of torchgauge that a launcher started, None where it was started once.
    """

    plan: Plan
    groups: tuple[Group, ...]
    folder: Path
    devices: Mapping[str, Device]
    suites: Mapping[str, Suite]
    python: str
    clock: Clock
    cancelled: Callable[[], bool]
    on_event: Callable[[Group, dict[str, Any]], None]
    crew: Crew | None = None


class Executor(Protocol):
    """Runs groups somewhere."""

    @property
    def name(self) -> str:
        """The name on the command line."""

    def submit(self, submission: Submission) -> Iterator[Yield]:
        """Run every group; one result per case, in lists that the caller makes durable together."""
