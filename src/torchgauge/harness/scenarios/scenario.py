"""The seam of a scenario: a name and what it needs on the parent side, callables on the worker side."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from torchgauge import registry
from torchgauge.errors import NotOfferedError, TorchgaugeError
from torchgauge.suites.capabilities import SCENARIOS, needs_of

LATENCY = "latency"


class Seeded(Protocol):
    """The part of a device session that an observation needs."""

    def seed(self, seed: int) -> None:
        """Seed the device's generator and the host's."""


@dataclass(frozen=True)
class RemadeCall:
    """What runs another module than the one that was built, made of it: a quantised copy, for one.

    One that ``keeps_cache`` of what it has read is handed one token a call, those of a prompt too.
    """

    call: Callable[..., Any]
    module: Any
    keeps_cache: bool = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        return self.call(*args, **kwargs)


@dataclass
class EarlierSteps:
    """The ``count`` compiled steps, by ``leader``, before an observed step of a TorchBench model.

    The observation of compiled code takes these steps and sets ``start``, the state after them, unless
    ``start`` is set. Eager's observation begins from ``start``. With ``keeps_end``, the observation of
    compiled code sets ``end``, the state after the observed step. Observations with the seed ``nudge``
    begin from weights that differ slightly from those of ``start``. A message names the
    observed step by ``place``, or by its number if that is empty.
    """

    count: int
    start: Any = None
    keeps_end: bool = False
    nudge: int = 0
    leader: Callable[..., Any] | None = None
    end: Any = None
    place: str = ""


@dataclass
class Subject:
    """A model ready to run: moved to its device and dtype, with its inputs.

    ``call`` is what runs the mathematics: the module itself, or its compiled form. ``autocast`` makes the
    context that forward and loss run in, None where there is none. ``built`` is what the suite built, with
    what else the model can do. ``keeps_cache`` is that of a :class:`RemadeCall`. ``kept`` holds the
    name and dtype of each floating-point or complex tensor whose dtype is not the workload's. ``earlier``
    holds the steps before an observed step of a TorchBench model that upstream steps, and ``renew`` writes
    other inputs when the state of that model has been restored.
    """

    module: Any
    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    loss: Callable[[Any], Any] | None
    session: Seeded
    seed: int
    autocast: Callable[[], Any] | None = None
    built: Any = None
    keeps_cache: bool = False
    kept: Sequence[str] = ()
    earlier: EarlierSteps | None = None
    renew: Callable[[], Any] | None = None

    def run_by(self, call: Callable[..., Any]) -> Subject:
        """The same with ``call`` in the module's place, and with the module that a remade one is of."""
        if isinstance(call, RemadeCall):
            return replace(self, call=call.call, module=call.module, keeps_cache=call.keeps_cache)
        return replace(self, call=call)

    def forward(self) -> Any:
        """The output of one forward pass."""
        if self.autocast is None:
            return self.call(*self.args, **self.kwargs)
        with self.autocast():
            return self.call(*self.args, **self.kwargs)

    def forward_loss(self) -> Any:
        """The loss of one forward pass; raises :class:`NotOfferedError` where the suite declares none."""
        if self.loss is None:
            raise NotOfferedError("the suite declares no loss for this model")
        if self.autocast is None:
            return self.loss(self.call(*self.args, **self.kwargs))
        with self.autocast():
            return self.loss(self.call(*self.args, **self.kwargs))


class Scenario(Protocol):
    """How a workload of one mode is stepped and observed."""

    @property
    def name(self) -> str:
        """The mode in case ids."""

    @property
    def doc(self) -> str:
        """What the final result is."""

    @property
    def implementation(self) -> str:
        """Module that the worker imports, with ``enter()``, ``step(subject)`` and ``observe(subject)``.

        Without ``observe`` nothing is compared, and rows are unchecked. ``ITERATIONS`` is the number of steps
        in an observation, 1 by default, each of which must enter compiled code.
        ``timed_result(subject, returned)`` returns the result of a timed step for comparison. ``TIMED`` holds
        the prefixes of the paths that it shares with an observation. ``STATE`` holds the kinds of state that
        an observation changes and shows by itself, such as ``parameter.``. A scenario that does not measure
        steps has ``run(all_series, session, settings)``, which returns the measurements of each series by its
        key.
        """

    @property
    def metric(self) -> str:
        """The final number: no case passes without it."""

    @property
    def needs(self) -> tuple[str, ...] | None:
        """What it needs of a model (``forward``, ``loss``, ...); None where models have to list it."""


@dataclass(frozen=True)
class ScenarioDescriptor:
    """A scenario as data."""

    name: str
    doc: str
    implementation: str
    needs: tuple[str, ...] | None = None
    metric: str = LATENCY


def require(capabilities: Collection[str], mode: str, implementation: str) -> None:
    """Raise :class:`NotOfferedError` where a model has not all ``capabilities`` that the scenario needs.

    A suite that steps its own models, by another ``implementation``, knows what they can do.
    """
    missing = sorted((needs_of(mode) or frozenset()).difference(capabilities))
    if missing and implementation == implementation_for(mode, None):
        raise NotOfferedError(f"the model has no {' and no '.join(missing)}, which scenario {mode!r} needs")


def final_metric(mode: str) -> str:
    """The metric without which no case of ``mode`` has passed; that of a step where nobody says."""
    try:
        return str(getattr(registry.load(SCENARIOS, mode), "metric", LATENCY))
    except TorchgaugeError:  # nobody has it here, or it cannot be loaded
        return LATENCY


def implementation_for(mode: str, suite: Any) -> str:
    """The module that steps the models of ``suite`` in ``mode``: its own, or the scenario's.

    Raises :class:`UnknownNameError` and :class:`InfrastructureError`.
    """
    own: Mapping[str, str] = getattr(suite, "scenarios", {})
    return own.get(mode) or str(registry.load(SCENARIOS, mode).implementation)
