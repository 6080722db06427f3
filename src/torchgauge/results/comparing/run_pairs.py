"""Which cases of two runs are compared: the same workload, with exactly one thing that differs.

Two numbers are comparable where one of workload, configuration and environment differs, and the workload
never does. Where an environment differs in more than one thing of weight (machine, torch, device), a ratio
would not say which of them made it, so there is none.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.records import Case, Environment
from torchgauge.results.dataset import read_table
from torchgauge.results.environments import environments_of
from torchgauge.results.rows import torch_version
from torchgauge.results.runner_class import runner_class
from torchgauge.results.store import Store
from torchgauge.suites.model_code import CHECKOUT, LIBRARY, MODEL_CODE, SHADOWED

Row = dict[str, Any]


class Difference(str, Enum):
    """The one thing that differs between two sides."""

    RUN = "run"
    DEVICE = "device"
    CONFIGURATION = "configuration"


@dataclass(frozen=True)
class RunSide:
    """One side: a run and, where they are what differs, a device and a configuration."""

    run_id: str
    device: str = ""
    configuration: str = ""

    @property
    def label(self) -> str:
        """The side as a person reads it."""
        return " ".join(part for part in (self.run_id, self.configuration, self.device) if part)


@dataclass(frozen=True)
class Measured:
    """One planned case of a side with its row of ``results`` and its rows of ``summaries`` by metric."""

    case: Case
    row: Row
    summaries: Mapping[str, Row]
    environment: Environment | None


@dataclass(frozen=True)
class RunPair:
    """What stands opposite each other: a side may be missing; ``refusal`` says why there is no ratio."""

    base: Measured | None
    head: Measured | None
    refusal: str = ""


def difference(base: RunSide, head: RunSide) -> Difference:
    """What differs between two sides; raises :class:`UsageError` for nothing, or for two things."""
    for name, ours, theirs in (
        ("device", base.device, head.device),
        ("config", base.configuration, head.configuration),
    ):
        if bool(ours) != bool(theirs):
            raise UsageError(
                f"--{name}-{'b' if ours else 'a'} is missing", hint=f"pass both: --{name}-a X --{name}-b Y"
            )
    device, configuration = base.device != head.device, base.configuration != head.configuration
    if device and configuration:
        raise UsageError(
            "device and configuration both differ, so a ratio could not be attributed to one of them",
            hint="compare devices at one configuration, or configurations on one device",
        )
    if device or configuration:
        return Difference.DEVICE if device else Difference.CONFIGURATION
    if base.run_id == head.run_id:
        raise UsageError(
            f"run {base.run_id} is compared with itself",
            hint="pass another run, or --device-a and --device-b, or --config-a and --config-b",
        )
    return Difference.RUN


def read_side(store: Store, side: RunSide) -> list[Measured]:
    """The cases of ``side``; raises :class:`UnknownNameError` for a device or configuration it lacks."""
    cases = {planned.case.key: planned.case for planned in store.run(side.run_id).plan().cases}
    summaries: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in read_table(store, "summaries", side.run_id).to_pylist():
        summaries[row["case_key"]][row["metric"]] = row
    environments = environments_of(store, side.run_id)
    found = [
        Measured(cases[key], row, summaries[key], environments.get(row["environment_id"] or ""))
        for row in read_table(store, "results", side.run_id).to_pylist()
        if (key := row["case_key"]) in cases
    ]
    for kind, wanted, name_of in (
        ("device", side.device, _device_of),
        ("configuration", side.configuration, _configuration_of),
    ):
        known = {name_of(each) for each in found}
        if wanted and wanted not in known:
            raise UnknownNameError(f"{kind} of run {side.run_id}", wanted, known)
        found = [each for each in found if not wanted or name_of(each) == wanted]
    return found


def pair_up(base: Iterable[Measured], head: Iterable[Measured], differs: Difference) -> list[RunPair]:
    """Every case of either side, once: with its counterpart, or alone."""
    left, right = list(base), list(head)
    pairs = []
    for exact in (True, False):
        theirs = _by_place(right, differs, exact=exact)
        unmatched = []
        for ours in left:
            place = _place(ours, differs, exact=exact)
            candidates = theirs.get(place, [])
            mine = _by_place(left, differs, exact=exact)[place] if not exact else [ours]
            if candidates and (exact or len(candidates) == len(mine) == 1):
                other = candidates.pop(0)
                right.remove(other)
                pairs.append(RunPair(ours, other, refusal(ours, other, differs)))
            else:
                unmatched.append(ours)
        left = unmatched
    pairs += [RunPair(each, None, "the second side does not have the case") for each in left]
    pairs += [RunPair(None, each, "the first side does not have the case") for each in right]
    return sorted(pairs, key=_order)


def refusal(base: Measured, head: Measured, differs: Difference) -> str:
    """Why two cases cannot be compared; empty where they can."""
    ours, theirs = base.case.workload, head.case.workload
    if ours.declared_hash != theirs.declared_hash:
        names = [name for name in vars(replace(ours)) if getattr(ours, name) != getattr(theirs, name)]
        listed = ", ".join(f"{name} {getattr(ours, name)} and {getattr(theirs, name)}" for name in names)
        return f"the workloads differ: {listed}"
    hashes = base.row["realised_hash"], head.row["realised_hash"]
    if all(hashes) and hashes[0] != hashes[1]:
        return f"the two sides built different models: hashes {hashes[0]} and {hashes[1]}"
    if differs is not Difference.CONFIGURATION and base.case.configuration != head.case.configuration:
        return (
            f"the two sides define configuration {head.case.configuration.name} differently,"
            f" and the {differs.value} differs too"
        )
    return _environment_refusal(base, head, differs)


def changed_facts(base: Environment | None, head: Environment | None) -> dict[str, tuple[object, object]]:
    """Facts of the environments' identities that are not equal, by name."""
    ours, theirs = (dict(each.identity) if each else {} for each in (base, head))
    return {
        key: (ours.get(key), theirs.get(key))
        for key in sorted(ours.keys() | theirs.keys())
        if ours.get(key) != theirs.get(key)
    }


def changed_code(base: Measured, head: Measured) -> dict[str, tuple[object, object]]:
    """Return the facts of both rows that name code and libraries and are not equal, by name and model."""
    ours, theirs = _facts_of(base), _facts_of(head)
    work = head.case.workload
    names = {CHECKOUT: f"checkout of {work.suite}", MODEL_CODE: f"code of {work.suite}/{work.model}"}
    names.update({fact: fact for fact in ours if fact.startswith(LIBRARY)})
    return {
        name: (ours[fact], theirs[fact])
        for fact, name in names.items()
        if fact in ours and fact in theirs and ours[fact] != theirs[fact]
    }


def shadowed(base: Measured, head: Measured) -> dict[str, tuple[object, object]]:
    """Return the modules that hid other copies on either side."""
    ours, theirs = (_facts_of(side).get(SHADOWED, "nothing") for side in (base, head))
    return {SHADOWED: (ours, theirs)} if {ours, theirs} != {"nothing"} else {}


def _facts_of(side: Measured) -> dict[str, object]:
    facts: dict[str, object] = json.loads(side.row["facts"] or "{}")
    return facts


def _environment_refusal(base: Measured, head: Measured, differs: Difference) -> str:
    ours, theirs = base.environment, head.environment
    if ours is None or theirs is None:
        return ""  # the status says why a side has no environment
    changed = {**changed_facts(ours, theirs), **changed_code(base, head)}
    torch = _release(ours) != _release(theirs)
    versions = f"torch ({torch_version(ours)} and {torch_version(theirs)})"
    if differs is Difference.CONFIGURATION and changed:
        return f"configuration and environment both differ: {', '.join(list(changed)[:4])}"
    if differs is Difference.DEVICE and torch:
        return f"device and {versions} both differ, so a ratio could not be attributed to one of them"
    if differs is Difference.RUN and torch and runner_class(ours) != runner_class(theirs):
        return f"machine and {versions} both differ, so a ratio could not be attributed to one of them"
    return ""


def _release(environment: Environment) -> str:
    """The version of torch without its build: builds for different devices are one release."""
    return (torch_version(environment) or "").partition("+")[0]


def _by_place(side: Iterable[Measured], differs: Difference, *, exact: bool) -> dict[object, list[Measured]]:
    found: dict[object, list[Measured]] = defaultdict(list)
    for each in side:
        found[_place(each, differs, exact=exact)].append(each)
    return found


def _place(measured: Measured, differs: Difference, *, exact: bool) -> object:
    """What must be equal for two cases to be opposite each other; names only where it is not ``exact``."""
    workload = measured.case.workload
    what = workload.declared_hash if exact else (workload.suite, workload.model, workload.mode)
    return (
        what,
        "" if differs is Difference.DEVICE else _device_of(measured),
        "" if differs is Difference.CONFIGURATION else _configuration_of(measured),
    )


def _device_of(measured: Measured) -> str:
    return str(measured.case.device)


def _configuration_of(measured: Measured) -> str:
    return measured.case.configuration.name


def _order(pair: RunPair) -> str:
    measured = pair.head or pair.base
    return measured.case.id if measured else ""
