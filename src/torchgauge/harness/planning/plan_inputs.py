"""What is known before a plan is made: durations and histories from a store or a file, sizes and tiers.

Two sources, kept apart. The store in which results go is different on every machine and after every run, so
it may decide an order and never a sharding: shards are cut by what was named with ``--durations``, or evenly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.devices.host import host_identity
from torchgauge.harness.planning.forecast import STARTUP_S, Forecast, parameters_of
from torchgauge.harness.planning.priority import Priority
from torchgauge.harness.planning.selection import TIERS
from torchgauge.records import Group
from torchgauge.results.durations import History, is_store, read_durations_file, read_history
from torchgauge.results.store import Store
from torchgauge.suites.suite import ModelEntry, Suite


@dataclass(frozen=True)
class PlanInputs:
    """Forecasts for the sharding and for the order, and what decides the value of a group."""

    sharding: Forecast
    order: Forecast
    priority: Priority


def gather(
    groups: Sequence[Group], suites: Mapping[str, Suite], *, durations: str | None, store: str | None
) -> PlanInputs:
    """What ``durations`` (a store or a file) and ``store``, which need not be there, know of ``groups``.

    Raises :class:`torchgauge.errors.UsageError` where ``durations`` is neither a store nor a file.
    """
    cases = [planned.case.id for group in groups for planned in group.cases]
    entries = [(name, entry) for name, suite in suites.items() for entry in suite.models()]
    parameters = parameters_of(suites)
    named = History()
    if durations is not None:
        path = Path(durations)
        named = read_history(Store.open(path), cases) if is_store(path) else read_durations_file(path)
    own = History()
    if store is not None and is_store(store):
        own = read_history(Store.open(store), cases, machine=host_identity())
    sharding = Forecast(named.seconds, parameters, source=named.source)
    both = {**own.seconds, **named.seconds}
    ratio, startup = own.wall_ratio or named.wall_ratio, own.startup_s or named.startup_s
    order = Forecast(
        both,
        parameters,
        1.0 if ratio is None else ratio,
        STARTUP_S if startup is None else startup,
        named.source or (own.source if both else ""),
    )
    tiers = {(name, entry.name): first_tier(entry) for name, entry in entries}
    return PlanInputs(sharding, order, Priority(tiers, own.cases or named.cases, SYSTEM_CLOCK.now()))


def first_tier(entry: ModelEntry) -> str:
    """The smallest tier that holds the model."""
    return min((tier for tier in entry.tiers if tier in TIERS), key=TIERS.index, default=TIERS[-1])
