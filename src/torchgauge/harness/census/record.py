"""Recording a census: which models on which device, and the answers of children as data. Parent side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torchgauge.devices.discover import parse_target
from torchgauge.errors import NothingSelectedError, UsageError
from torchgauge.harness.census.children import CensusRunner
from torchgauge.harness.census.job import CensusItem
from torchgauge.harness.census.versions import versions_in
from torchgauge.harness.interpreter.foreign_plugins import suites_of
from torchgauge.harness.interpreter.interpreter import Interpreter, interpreter
from torchgauge.harness.planning.selection import DTYPE_ALIASES, check_plain_names, select_models
from torchgauge.harness.run.campaigns import expand_devices, find_devices
from torchgauge.harness.scenarios.scenario import implementation_for
from torchgauge.results.atomic_file import write_atomically
from torchgauge.suites.capabilities import offered_as
from torchgauge.suites.catalog import workload_for
from torchgauge.suites.census.data import CensusData, plain, read, to_bytes
from torchgauge.suites.census.record import EAGER, PATHS, ModelCensus
from torchgauge.suites.lending import lender
from torchgauge.suites.ops.catalogue import catalogue_of
from torchgauge.suites.suite import Suite

OPS = "ops"
"""The suite whose entries are recorded for what they dispatch and not as models."""
DEADLINE_S = 600.0
Said = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """What a person asked to record; without ``suites`` every suite of models, and the operators."""

    device: str
    suites: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    modes: tuple[str, ...] = ("inference", "training")
    dtypes: tuple[str, ...] = ("float32",)
    paths: tuple[str, ...] = PATHS
    python: str | None = None
    deadline_s: float = DEADLINE_S


@dataclass
class _Answers:
    """What the children have said so far."""

    versions: dict[str, str] = field(default_factory=dict)
    models: list[ModelCensus] = field(default_factory=list)
    entries: dict[str, set[str]] = field(default_factory=dict)
    parts: dict[str, set[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def record(wanted: Wanted, out: Path, say: Said = lambda _: None) -> CensusData:
    """Record what ``wanted`` names and write it to ``out`` after every recording; what is there stays.

    Raises :class:`UsageError` for a name that nothing answers to and for a file of other package versions,
    :class:`NothingSelectedError`, and :class:`InfrastructureError` where the device cannot be opened.
    """
    there = interpreter(wanted.python)
    name = expand_devices((wanted.device,), there)[0]
    target, device = parse_target(name), next(iter(find_devices((name,), there).values()))
    if device.torch_type is None:
        raise UsageError(f"device {name!r} does not run torch", hint="--device with a torch device")
    items, packages, variables = items_of(wanted, there)
    before = _before(out, versions_in(there, packages))
    answers = _Answers()
    runner = CensusRunner(there.path, target, device, packages, variables, wanted.deadline_s)
    for number, (item, line) in enumerate(runner.answers(items), 1):
        _absorb(answers, item, line, str(target))
        data = _merged(before, answers)
        problem = f": {line['problem']}" if line.get("problem") else ""
        say(f"{number}/{len(items)} {item.name}{problem}")
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, to_bytes(data))
    return _merged(before, answers)


def _before(out: Path, installed: Mapping[str, str]) -> CensusData | None:
    """What ``out`` holds already; raises :class:`UsageError` where that is of other versions."""
    if not out.exists():
        return None
    before = read(out)
    other = {
        name: (before.versions[name], version)
        for name, version in installed.items()
        if before.versions.get(name, version) != version
    }
    if other:
        text = ", ".join(f"{name} {old} (installed: {new})" for name, (old, new) in sorted(other.items()))
        raise UsageError(f"{out} was recorded with {text}", hint="pass another file with --out")
    return before


def items_of(wanted: Wanted, there: Interpreter) -> tuple[list[CensusItem], tuple[str, ...], dict[str, str]]:
    """The recordings in order, the packages whose versions matter, and variables that children need."""
    names = wanted.suites or ("all", OPS)
    suites = suites_of(there, [name for name in names if name != OPS] or ["all"])
    if set(names) == {OPS}:
        suites = {}
    unknown = [path for path in wanted.paths if path not in PATHS]
    if unknown:
        raise UsageError(f"--path {unknown[0]!r} is unknown", hint=f"--path {','.join(PATHS)}")
    if suites:
        check_plain_names({name: suite.models() for name, suite in suites.items()}, wanted.models)
    items = [item for name, suite in suites.items() for item in _models(name, suite, wanted)]
    packages = {"torch"} | {
        package
        for name, suite in suites.items()
        for entry in suite.models()
        for package in entry.packages
        if any(item.workload is not None and item.workload.suite == name for item in items)
    }
    if OPS in names:
        items += _entries(there, wanted)
    if not items:
        raise NothingSelectedError("nothing to record", hint="torchgauge suites lists suites and models")
    variables = {key: value for suite in suites.values() for key, value in suite.environment.items()}
    return items, tuple(sorted(packages)), variables


def _models(name: str, suite: Suite, wanted: Wanted) -> Iterator[CensusItem]:
    if suite.unavailable is not None:
        if name in wanted.suites:
            raise UsageError(f"suite {name!r}: {suite.unavailable.reason}", hint=suite.unavailable.hint)
        return
    for each in wanted.modes:
        implementation_for(each, suite)  # a mode that nobody has is refused, whatever is selected
    for entry in select_models(name, suite.models(), wanted.models, "full"):
        if entry.framework != "torch" or "small" not in entry.sizes or entry.declined:
            continue
        builds = lender(entry.recipe) or suite
        if builds.unavailable is not None:
            continue
        for mode in (each for each in wanted.modes if offered_as(entry, each)):
            for dtype in dict.fromkeys(DTYPE_ALIASES.get(each, each) for each in wanted.dtypes):
                workload = workload_for(name, entry, mode, dtype=dtype)
                for path in wanted.paths:
                    yield CensusItem(
                        name=f"{name}/{entry.name}:{mode}:{dtype}:{path}",
                        workload=workload,
                        path=path,
                        recipe=dict(entry.recipe),
                        builder=builds.builder,
                        scenario=implementation_for(mode, builds),
                        preload=builds.preload,
                    )


def _entries(there: Interpreter, wanted: Wanted) -> Iterator[CensusItem]:
    """The entries of the operator database; none where an operator test package is missing."""
    if wanted.models and wanted.suites != (OPS,):
        return
    catalogue = catalogue_of(None if there.own else there.path)
    known = {operator.name for operator in catalogue.operators}
    chosen = [each for each in wanted.models if each in known]
    if wanted.models and not chosen:
        raise UsageError(
            f"{wanted.models[0]!r} is not an operator of torch {catalogue.torch}", hint="--suite ops"
        )
    yield from (CensusItem(name) for name in (chosen or sorted(known)))


# --- answers to data ---------------------------------------------------------------------------


def _absorb(answers: _Answers, item: CensusItem, line: Mapping[str, Any], device: str) -> None:
    answers.versions.update({name: plain(text) for name, text in line.get("versions", {}).items()})
    for name, parts in line.get("parts", {}).items():
        answers.parts.setdefault(name, set()).update(parts)
    if item.workload is None:
        for name, _ in (*line.get("operators", ()), *line.get("received", ())):
            answers.entries.setdefault(name, set()).add(item.name)
        return
    answers.models.append(
        ModelCensus(
            suite=item.workload.suite,
            model=item.workload.model,
            mode=item.workload.mode,
            dtype=item.workload.dtype,
            path=item.path,
            operators=_pairs(line.get("operators", ())),
            received=_pairs(line.get("received", ())) if item.path == EAGER else frozenset(),
            problem=line.get("problem", ""),
            recorded_on=device,
        )
    )


def _pairs(found: Sequence[Sequence[str]]) -> frozenset[tuple[str, str]]:
    return frozenset((name, dtype) for name, dtype in found)


def _merged(before: CensusData | None, answers: _Answers) -> CensusData:
    """What ``before`` held, with what was recorded anew in its place."""
    now = CensusData(
        dict(answers.versions),
        tuple(answers.models),
        {name: frozenset(found) for name, found in answers.entries.items()},
        {name: frozenset(found) for name, found in answers.parts.items()},
    )
    if before is None:
        return now
    return replace(
        now,
        versions={**before.versions, **now.versions},
        models=_replaced(before.models, now.models),
        opinfo=_entries_replaced(before.opinfo, now.opinfo),
        parts={
            name: before.parts.get(name, frozenset()) | now.parts.get(name, frozenset())
            for name in {*before.parts, *now.parts}
        },
    )


def _replaced(old: Sequence[ModelCensus], new: Sequence[ModelCensus]) -> tuple[ModelCensus, ...]:
    def key(each: ModelCensus) -> tuple[str, ...]:
        return (each.suite, each.model, each.mode, each.dtype, each.path)

    return tuple({**{key(each): each for each in old}, **{key(each): each for each in new}}.values())


def _entries_replaced(
    old: Mapping[str, frozenset[str]], new: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """Attributions of entries that were recorded again are those of the new recording alone."""
    again = frozenset(name for names in new.values() for name in names)
    found = {name: (old.get(name, frozenset()) - again) | new.get(name, frozenset()) for name in {*old, *new}}
    return {name: entries for name, entries in found.items() if entries}
