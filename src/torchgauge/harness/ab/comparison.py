"""How a comparison comes about: from a request, or from an A/B run that was interrupted."""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from torchgauge.clock import SYSTEM_CLOCK, Clock
from torchgauge.devices.device import Device
from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.harness.ab.either_side import SideParts, devices_of_either, groups_of_either, suites_of_either
from torchgauge.harness.ab.pair_launch import refusal
from torchgauge.harness.ab.progress import AbProgress
from torchgauge.harness.interpreter.foreign_plugins import check_scenarios, refuse
from torchgauge.harness.interpreter.interpreter import Interpreter, interpreter
from torchgauge.harness.interpreter.packages import libraries_in
from torchgauge.harness.planning.plan import make_group
from torchgauge.harness.planning.refusals import missing_suite
from torchgauge.harness.planning.selection import Selection
from torchgauge.harness.run.absent_devices import refuse_absent
from torchgauge.harness.run.campaigns import find_devices, refuse_changed_digests, refuse_other_settings
from torchgauge.harness.run.rank_devices import refuse_launched
from torchgauge.processes.known_secrets import own_command
from torchgauge.processes.secret_names import MASK, hide_told
from torchgauge.records import (
    Group,
    PlannedCase,
    Provenance,
    Refusal,
    RunSettings,
    Status,
)
from torchgauge.records.comparison import ComparisonPlan, Pair, Side, SideSpec
from torchgauge.results.comparing.comparison_store import ComparisonFolder
from torchgauge.results.run_id import new_run_id
from torchgauge.results.store import Store
from torchgauge.suites.capabilities import offered_as
from torchgauge.suites.model_code import digests_of
from torchgauge.suites.own.revision import commits_of, sources_of
from torchgauge.suites.own.suite import word_of
from torchgauge.suites.suite import Suite
from torchgauge.suites.torchbench import checkout as torchbench_checkout

CONTROLS = 2
"""Pairs of a run that are also measured head against head."""


@dataclass(frozen=True)
class Request:
    """What is to be compared, and how.

    ``base`` and ``head`` name interpreters as a person does. ``control`` asks for an A/A run, in which
    both are the same; ``controls`` counts the pairs of another run that are measured head against head.
    Orders, CPUs, hash seeds and controls are drawn from ``seed``; without one it is drawn itself.
    """

    selection: Selection
    settings: RunSettings
    base: SideSpec
    head: SideSpec
    control: bool = False
    controls: int = CONTROLS
    seed: int | None = None
    max_launches: int = 12
    policy: str = ""
    provenance: tuple[Provenance, ...] = ()


@dataclass(frozen=True)
class SideSetup:
    """What one side runs with; ``groups`` say what this side's interpreter refuses."""

    spec: SideSpec
    devices: Mapping[str, Device]
    suites: Mapping[str, Suite]
    groups: tuple[Group, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What the suites want a person to hear."""
        return tuple(note for suite in self.suites.values() for note in suite.notes)

    def find(self, key: str) -> tuple[Group, PlannedCase]:
        """The case called ``key`` in its group."""
        return next(
            (group, planned) for group in self.groups for planned in group.cases if planned.case.key == key
        )


@dataclass(frozen=True)
class Comparison:
    """Everything that an A/B run needs."""

    plan: ComparisonPlan
    store: Store
    sides: Mapping[Side, SideSetup]
    progress: AbProgress
    clock: Clock = SYSTEM_CLOCK


def new_comparison(
    request: Request,
    *,
    store: str,
    progress: AbProgress,
    examined: Mapping[str, Interpreter] = MappingProxyType({}),
) -> Comparison:
    """The comparison that ``request`` asks for; nothing is written before all names are known to be right.

    Raises what :func:`planned_comparison` raises.
    """
    plan, setups = planned_comparison(request, examined)
    return Comparison(plan, Store.open(store, create=True), setups, progress)


def refuse_unchecked(settings: RunSettings) -> None:
    """Raise :class:`UsageError` where accuracy checks are off."""
    if not settings.accuracy:
        raise UsageError("--no-accuracy: unchecked results are not compared", hint="omit --no-accuracy")


def planned_comparison(
    request: Request, examined: Mapping[str, Interpreter] = MappingProxyType({})
) -> tuple[ComparisonPlan, dict[Side, SideSetup]]:
    """The plan that ``request`` asks for, and what each side runs with; writes nothing.

    Interpreters that are ``examined``, by their path, are not asked again. Raises :class:`UsageError` where
    both sides are the same and nobody asked for that, or the reverse.
    """
    refuse_launched(os.environ)
    sides = ((request.base.python, "--base"), (request.head.python, "--head"))
    base_there, head_there = (
        examined.get(python) or interpreter(python or None, option=option) for python, option in sides
    )
    commits = commits_of(request.selection.suites, request.base.revision, request.head.revision)
    base = replace(request.base, python=base_there.path, revision=commits[0])
    head = replace(request.head, python=head_there.path, revision=commits[1])
    _check_difference(base, head, control=request.control)
    sources = sources_of(request.selection.suites, request.base.revision, request.head.revision)
    base = replace(base, source=base.source or sources[0])
    head = replace(head, source=head.source or sources[1])
    refuse_unchecked(request.settings)
    # launches of equal seeds repeat their chance, and with it what it does to them
    seed = secrets.randbelow(1 << 31) if request.seed is None else request.seed
    selection = request.selection
    if base.configuration or head.configuration:
        names = tuple(dict.fromkeys((base.configuration, head.configuration)))
        selection = replace(selection, configurations=names)
    there = {Side.BASE: base_there, Side.HEAD: head_there}
    selection = replace(selection, devices=devices_of_either(selection.devices, there))
    suites = suites_of_either(there, selection.suites, {Side.BASE: base, Side.HEAD: head})
    parts = {}
    for side in (Side.HEAD, Side.BASE):
        check_scenarios(there[side], selection.modes)
        parts[side] = SideParts(there[side], suites[side], find_devices(selection.devices, there[side]))
    groups = groups_of_either(selection, parts)
    refuse_absent_on_both(groups, parts)
    setups = {
        Side.HEAD: _side(head, parts[Side.HEAD], groups),
        Side.BASE: _side(base, parts[Side.BASE], groups),
    }
    own, pythons = suites[Side.HEAD].values(), [each.path for each in there.values()]
    plan = ComparisonPlan(
        run_id=new_run_id(),
        created_at=SYSTEM_CLOCK.now(),
        command=own_command(),
        settings=request.settings,
        base=_published(base, "base", head),
        head=_published(head, "head", base),
        pairs=_pairs(request, seed, base, head, setups),
        groups=setups[Side.HEAD].groups,
        seed=seed,
        policy=request.policy,
        max_launches=request.max_launches,
        suite_digests=tuple(
            {**digests_of(own, setups[Side.HEAD].groups), **libraries_in(pythons, own)}.items()
        ),
        provenance=request.provenance,
    )
    return plan, setups


def resumed_comparison(
    path: str, progress: AbProgress, typed: Mapping[str, object] = MappingProxyType({})
) -> tuple[Comparison, ComparisonFolder]:
    """Return the comparison in the folder ``path``, to be continued.

    Raises :class:`UsageError` where ``path`` is not a comparison folder, and where a ``typed`` setting, the
    data of a suite or the code of a model differs from the plan.
    """
    refuse_launched(os.environ)
    folder = ComparisonFolder(Path(path))
    if not (folder.path / "plan.json").is_file():
        raise UsageError(
            f"{path} is not a comparison folder",
            hint="STORE/comparisons/ID, as `torchgauge ab` prints at its end",
        )
    plan = folder.plan()
    refuse_other_settings(plan, typed)
    if plan.settings.torchbench is not None:
        os.environ[torchbench_checkout.VARIABLE] = plan.settings.torchbench
    setups = {}
    specs = {Side.BASE: plan.base, Side.HEAD: plan.head}
    _check_values_kept(specs.values())
    there = {side: interpreter(each.python) for side, each in specs.items()}
    suites = suites_of_either(there, [*map(word_of, plan.groups)], specs)
    for side, spec in specs.items():
        devices = find_devices(sorted({str(group.device) for group in plan.groups}), there[side])
        setups[side] = _side(spec, SideParts(there[side], suites[side], devices), plan.groups)
    refuse_changed_digests(plan, suites[Side.HEAD].values(), [each.path for each in there.values()])
    store = Store.open(folder.path.parent.parent)
    return Comparison(plan, store, setups, progress), folder


def refuse_absent_on_both(groups: Sequence[Group], parts: Mapping[Side, SideParts]) -> None:
    """Raise :class:`InfrastructureError` where neither side has a device of ``groups``; one may lack it."""
    try:
        refuse_absent(parts[Side.BASE].there, groups, parts[Side.BASE].devices)
    except InfrastructureError:
        refuse_absent(parts[Side.HEAD].there, groups, parts[Side.HEAD].devices)


def _published(spec: SideSpec, side: str, other: SideSpec) -> SideSpec:
    """``spec`` as the plan keeps it: of a secret its name, and whether the other's value differs."""
    theirs = dict(other.variables)
    variables = []
    for name, value in spec.variables:
        shown = hide_told(f"{name}={value}").partition("=")[2]
        differs = shown != value and theirs.get(name, value) != value
        variables.append((name, f"{shown} (of the {side})" if differs else shown))
    return replace(spec, variables=tuple(variables))


def _check_values_kept(specs: Iterable[SideSpec]) -> None:
    for spec in specs:
        for name, value in spec.variables:
            if MASK in value:
                raise UsageError(
                    f"the value of {name} is a secret and was not stored: this comparison cannot be resumed",
                    hint="start a new comparison",
                )


def _side(spec: SideSpec, parts: SideParts, groups: Sequence[Group]) -> SideSetup:
    """``groups`` as the interpreter of one side can run them."""
    own = tuple(_own(group, parts.devices, parts.suites[group.workload.suite]) for group in groups)
    return SideSetup(spec, parts.devices, parts.suites, refuse(parts.there, own, parts.devices))


def _own(group: Group, devices: Mapping[str, Device], suite: Suite) -> Group:
    """The group as one side has it; what its suite does not offer is refused, with the reason."""
    workload = group.workload
    entry = next((each for each in suite.models() if each.name == workload.model), None)
    lacks = f"no model {workload.model!r}" if entry is None else ""
    if entry is not None and offered_as(entry, workload.mode) is None:
        lacks = f"no mode {workload.mode!r} for this model"
    if entry is not None and workload.size not in entry.sizes:
        lacks = f"no size {workload.size!r} for this model"
    if entry is None or lacks:
        refused = Refusal(Status.UNSUPPORTED, f"its suite {suite.name!r} has {lacks}")
        return replace(group, cases=tuple(replace(each, refusal=refused) for each in group.cases))
    configurations = [planned.case.configuration for planned in group.cases]
    device = devices[group.device.name]
    return make_group(
        group.workload, entry, configurations, group.device, device, missing=missing_suite(suite)
    )


def _pairs(
    request: Request, seed: int, base: SideSpec, head: SideSpec, setups: Mapping[Side, SideSetup]
) -> tuple[Pair, ...]:
    """A pair for each workload and configuration, and A/A pairs of a few that head does not refuse."""
    found: list[Pair] = []
    for group in setups[Side.HEAD].groups:
        by_name = {planned.case.configuration.name: planned.case for planned in group.cases}
        if head.configuration:
            ours, theirs = by_name[head.configuration], by_name[base.configuration]
            found.append(Pair(theirs, ours, request.control))
        else:
            found += [Pair(case, case, request.control) for case in by_name.values()]
    if request.control:
        return tuple(found)
    runnable = [p for p in found if refusal(setups[Side.HEAD].find(p.head.key)[1]) is None]
    dice = random.Random(f"controls {seed}")  # noqa: S311  a choice, not a secret
    chosen = dice.sample(runnable, min(request.controls, len(runnable)))
    return (*found, *(Pair(pair.head, pair.head, control=True) for pair in chosen))


def _check_difference(base: SideSpec, head: SideSpec, *, control: bool) -> None:
    if bool(base.configuration) != bool(head.configuration):
        raise UsageError(
            "--base-config and --head-config go together", hint="--base-config NAME --head-config NAME"
        )
    same = replace(base, label="", source=None) == replace(head, label="", source=None)
    if same and not control:
        raise UsageError(
            "base and head are the same: interpreter, environment variables, configuration and revision",
            hint="--base PYTHON, --base-env K=V, --base-config NAME or --base-rev REVISION; "
            "or --control to measure an A/A run",
        )
    if control and not same:
        raise UsageError(
            "--control measures head against head, so base and head must be equal",
            hint="omit --control; every comparison also measures two cases head against head",
        )
