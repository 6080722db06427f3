"""What either side has: an A/B run plans the union, so that nobody vanishes whom only one side knows.

A suite, a model, a mode or a size that head no longer has is a case that head refuses, with the reason; what
only head has is one that base refuses. Each side then says for itself what it can run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torchgauge.devices.device import Device
from torchgauge.errors import NothingSelectedError, UnknownNameError, UsageError
from torchgauge.harness.interpreter.foreign_plugins import ForeignSuite, suites_of
from torchgauge.harness.interpreter.interpreter import Interpreter
from torchgauge.harness.planning.forecast import Forecast
from torchgauge.harness.planning.plan import all_groups, check_available
from torchgauge.harness.planning.selection import Selection, parse_shard
from torchgauge.harness.planning.sharding import shard_groups
from torchgauge.harness.run.campaigns import expand_devices
from torchgauge.records import Group
from torchgauge.records.comparison import Side, SideSpec
from torchgauge.suites.own.suite import OwnSuite
from torchgauge.suites.suite import Suite

Suites = Mapping[str, Suite]


@dataclass(frozen=True)
class SideParts:
    """What one side's interpreter has of what was asked for."""

    there: Interpreter
    suites: Suites
    devices: Mapping[str, Device]


def devices_of_either(names: tuple[str, ...], there: Mapping[Side, Interpreter]) -> tuple[str, ...]:
    """``names`` with ``all`` replaced by the devices of head, then by those that only base has."""
    expanded = (expand_devices(names, there[side]) for side in (Side.HEAD, Side.BASE))
    return tuple(dict.fromkeys(name for found in expanded for name in found))


def suites_of_either(
    there: Mapping[Side, Interpreter], names: Sequence[str], specs: Mapping[Side, SideSpec]
) -> dict[Side, Suites]:
    """The suites called ``names`` on both sides; one that only the other side knows is there without models.

    Where a side of ``specs`` names a revision, each side has files of users at its own.

    Raises :class:`UnknownNameError` for a name that neither side knows, and :class:`UsageError` where
    nothing of a named suite can be built.
    """
    found: dict[Side, dict[str, Suite]] = {side: {} for side in Side}
    lost: dict[str, UnknownNameError] = {}
    for side in Side:
        for name in dict.fromkeys(names):
            try:
                found[side].update(_at(suites_of(there[side], [name]), side, specs))
            except UnknownNameError as error:
                lost[name] = error
        check_available(found[side], names)
    known = list(dict.fromkeys((*found[Side.HEAD], *found[Side.BASE])))
    for name, unknown in lost.items():
        if name not in known:
            raise unknown
    # of a suite that a side does not know at all
    empty = {name: ForeignSuite(name, "", "", (), "", "", {}, ()) for name in known}
    return {side: {name: found[side].get(name) or empty[name] for name in known} for side in Side}


def _at(suites: Suites, side: Side, specs: Mapping[Side, SideSpec]) -> Suites:
    if not any(spec.revision for spec in specs.values()):
        return suites
    return {
        name: suite.at(specs[side].revision) if isinstance(suite, OwnSuite) else suite
        for name, suite in suites.items()
    }


def groups_of_either(selection: Selection, parts: Mapping[Side, SideParts]) -> tuple[Group, ...]:
    """The groups of head, then those of base in whose place head has none, cut to the shard.

    Checks that a suite has beside its models are left out: they have no step time to compare.

    Raises what :func:`all_groups` raises where neither side has anything.
    """
    head, base = parts[Side.HEAD], parts[Side.BASE]
    found: list[Group] = []
    empty: NothingSelectedError | None = None
    for ours, theirs in ((head, base), (base, head)):
        try:
            # a name is right where either side knows it
            suites = {name: _with_more(suite, theirs.suites[name]) for name, suite in ours.suites.items()}
            groups = all_groups(selection, ours.devices, suites)
        except NothingSelectedError as error:
            empty = error
            continue
        taken = set(map(_place, found))
        found += [group for group in groups if _place(group) not in taken]
    if not found and empty is not None:
        raise empty
    models = [group for group in found if not group.checks]
    with_models = {group.workload.suite for group in models}
    checks = next((each for each in found if each.checks and each.workload.suite not in with_models), None)
    if checks is not None:
        raise UsageError(
            f"suite {checks.workload.suite!r} holds checks, which have no step time to compare",
            hint="run torchgauge check or torchgauge ops with each build, then torchgauge results compat",
        )
    several = next((group for group in models if group.workload.processes > 1), None)
    if several is not None:
        raise UsageError(
            f"{several.workload.name} requires several processes, but an A/B run has one per side",
            hint="exclude this model, or use torchgauge run with each build, then torchgauge compare",
        )
    _, shards = parse_shard(selection.shard)
    return shard_groups(models, shards, Forecast()).shard(selection.shard)


def _with_more(ours: Suite, theirs: Suite) -> Suite:
    """Return ``ours`` with the models that only ``theirs`` has."""
    names = {entry.name for entry in ours.models()}
    more = tuple(entry for entry in theirs.models() if entry.name not in names)
    if not more:
        return ours
    return ForeignSuite(
        name=ours.name,
        doc=ours.doc,
        builder=ours.builder,
        preload=(),
        install_hint="",
        digest=ours.digest,
        environment={},
        entries=(*ours.models(), *more),
    )


def _place(group: Group) -> tuple[object, ...]:
    """Where a group stands, whatever the batch that a side gives it."""
    workload = group.workload
    return workload.suite, workload.model, workload.mode, workload.dtype, group.device
