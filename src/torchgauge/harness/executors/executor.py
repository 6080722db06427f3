"""The seam of an executor: it takes the groups of a plan and yields what is to be kept, as it happens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol, Union, get_type_hints

from torchgauge import registry
from torchgauge.clock import Clock
from torchgauge.devices.device import Device
from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.records import Again, Calibration, Environment, Group, Plan, Result
from torchgauge.suites.suite import Suite


@dataclass(frozen=True)
class RunNote:
    """A fact about the run that belongs in its journal."""

    text: str


@dataclass(frozen=True)
class BudgetSpent:
    """The time of the run is over: groups were left out."""


@dataclass(frozen=True)
class Attempted:
    """Rows of attempts that are not the last ones at their cases, and why others are made."""

    rows: tuple[Result, ...]
    again: Again


Yield = Union[Environment, Calibration, RunNote, BudgetSpent, Attempted, "list[Result]"]


@dataclass(frozen=True)
class Submission:
    """What an executor is given: groups still to run, and how to load what they need.

    ``folder`` is the run's folder, made absolute: compilers run in others. The executor keeps logs under
    ``folder/logs`` and scratch files under ``folder/work``, which it removes. ``cancelled`` is asked often;
    ``on_event`` hears of progress.
    ``options`` is what ``--executor-option`` said, as the executor declares it (:func:`executor_options`).
    ``mixed`` says that versions of torch may differ.
    ``made`` says how many attempts were made at cases of a run that goes on, by the key of the case.
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
    options: Any = None
    mixed: bool = False
    made: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", self.folder.absolute())


@dataclass(frozen=True)
class NoOptions:
    """The options of an executor that declares none."""


class Executor(Protocol):
    """Runs groups somewhere.

    It may also have ``options``, a frozen dataclass of numbers and words with defaults; ``elsewhere``, true
    where devices are those of other machines; ``ready(options)``, which raises before anything is planned;
    ``refuse(options, devices)``, which raises before anything is written; and ``jobs(options, plan)``, the
    lines that say of a plan which jobs it would start.
    """

    @property
    def name(self) -> str:
        """The name on the command line."""

    def submit(self, submission: Submission) -> Iterator[Yield]:
        """Run every group; one result per case, in lists that the caller makes durable together."""


def executor_options(name: str, given: Mapping[str, str], *, ask: bool = True) -> Any:
    """What ``--executor-option`` ``given`` is to the executor ``name``, which says whether it is ready.

    Nothing is asked of it where ``ask`` is false.

    Raises :class:`UsageError` for an option that it does not have or that has another type, and for an
    executor that is not known.
    """
    executor = registry.load("torchgauge.executors", name)
    declared = getattr(executor, "options", NoOptions)
    types = get_type_hints(declared)
    known = [field.name for field in fields(declared)]
    found = {}
    for key, text in given.items():
        if key not in known:
            hint = "" if known else f"executor {name} takes no options: remove them"
            raise UnknownNameError(f"option of executor {name!r}", key, known, hint=hint)
        try:
            found[key] = types[key](text)
        except ValueError:
            raise UsageError(
                f"executor option {key}={text!r} is not a {types[key].__name__}",
                hint=f"for example {key}={getattr(declared(), key)}",
            ) from None
    options = declared(**found)
    if ask and (ready := getattr(executor, "ready", None)):
        ready(options)
    return options


def chosen_words(name: str, options: Any) -> tuple[str, ...]:
    """Return the arguments that choose the executor ``name`` with ``options``; none for ``local``."""
    values = {
        each.name: (each.default, getattr(options, each.name)) for each in fields(options or NoOptions())
    }
    changed = sorted(f"{key}={value}" for key, (default, value) in values.items() if value != default)
    more = (word for text in changed for word in ("--executor-option", text))
    return () if name == "local" else ("--executor", name, *more)


def shown_jobs(name: str, options: Any, plan: Plan) -> Iterable[str]:
    """Return the jobs that the executor ``name`` would start for ``plan``, in lines; none if it has none."""
    jobs = getattr(registry.load("torchgauge.executors", name), "jobs", None)
    return jobs(options, plan) if jobs else ()


def is_elsewhere(name: str) -> bool:
    """Whether the executor ``name`` has the devices of other machines: this one need not have them."""
    return bool(getattr(registry.load("torchgauge.executors", name), "elsewhere", False))


def require_devices(name: str, options: Any, groups: Iterable[Group]) -> None:
    """Let the executor ``name`` raise where it will never have the devices of ``groups``."""
    executor = registry.load("torchgauge.executors", name)
    if refuse := getattr(executor, "refuse", None):
        refuse(options, sorted({group.device.name for group in groups}))
