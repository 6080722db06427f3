"""By which rows an item is shown: a function for each rule that the scorecard's file may name.

A rule decides where everything that it needs says yes or no. What is partly measured stays open, with what is
missing and the command that measures it; a failure that settles the matter is enough by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from torchgauge import registry
from torchgauge.clock import DAY_S
from torchgauge.counted import counted as numbered
from torchgauge.records import INCOMPLETE, Workload, left_out
from torchgauge.results.scorecard.evidence import Evidence, Moment, Says, Seen
from torchgauge.results.scorecard.finding import SHOWN, Finding, counted, listed
from torchgauge.results.scorecard.scorecard_file import Database, Item, Measured, Step
from torchgauge.suites.conformance.catalogue import CHECKS, catalogue
from torchgauge.suites.conformance.suite import NAME as CONFORMANCE
from torchgauge.suites.ops.suite import SUITE as OPERATORS
from torchgauge.suites.ops.upstream import FORWARD
from torchgauge.suites.suite import HOST
from torchgauge.suites.toy.suite import toy

EAGER = "eager"
DEFAULT_BACKEND = "inductor"
MODES = ("inference", "training")
FLOAT32 = "float32"
DTYPES_CHECK = "tensor.dtypes"
_LOST = {status.value for status in INCOMPLETE}
_NIGHTS = "torchgauge ci init"
"""What sets up nightly runs, of which the rules on many runs ask."""


@dataclass(frozen=True)
class Question:
    """An item that rows are asked about; ``rule`` is the item's, ``databases`` are those of operators."""

    item: Item
    rule: Measured
    evidence: Evidence
    databases: tuple[Database, ...]

    def decided(self, holds: bool, because: str, cases: tuple[str, ...] = ()) -> Finding:
        """All of the points, or none."""
        points = self.item.points if holds else 0
        return Finding(points, points, because, cases)

    def open(
        self, because: str, command: str, cases: tuple[str, ...] = (), most: int | None = None
    ) -> Finding:
        """Not decided."""
        return Finding(None, self.item.points if most is None else most, because, cases, command)


def find(item: Item, evidence: Evidence, databases: tuple[Database, ...]) -> Finding | None:
    """What rows show of ``item``; None where no rule is there for it."""
    if item.measured is None:
        return None
    rule = RULES[item.measured.rule]
    return rule(Question(item, item.measured, evidence, databases))


def checks(asked: Question) -> Finding:
    """All named checks pass; those that make no sense on the device are left out."""
    names = asked.rule.names or ()
    rows = {row.workload.model: row for row in asked.evidence.of_suite.get(CONFORMANCE, ())}
    found = counted(rows[name] for name in names if name in rows)
    command = f"torchgauge check --device {asked.evidence.device} --checks {','.join(names)}"
    if found.no:
        told = listed(f"{row.workload.model}: {row.why}" for row in found.no)
        return asked.decided(False, f"checks that do not pass: {told}", found.cases)
    missing = [name for name in names if name not in rows]
    if missing or found.nothing:
        told = listed([*missing, *(f"{row.workload.model} ({row.why})" for row in found.nothing)])
        return asked.open(f"checks without a result: {told}", command, found.cases)
    if not found.yes:
        return asked.open("none of the checks applies to this device", "", found.cases)
    return asked.decided(True, f"{numbered(len(found.yes), 'check')} passed", found.cases)


def check_share(asked: Question) -> Finding:
    """How many of torchgauge's own checks pass, of those that make sense on the device."""
    rows = {row.workload.model: row for row in asked.evidence.of_suite.get(CONFORMANCE, ())}
    names = [name for name, entry in catalogue().items() if entry.module.startswith(CHECKS)]
    command = f"torchgauge check --device {asked.evidence.device}"
    return _share(asked, {name: [rows[name]] if name in rows else [] for name in names}, "check", command)


def operators(asked: Question) -> Finding:
    """How many operators of PyTorch's database pass forward, of all that it has in this release."""
    base = asked.evidence.release.base
    database = next((each for each in asked.databases if each.release == base), None)
    command = f"torchgauge ops judge --device {asked.evidence.device} --tier full"
    if database is None:
        return asked.open(
            f"the scorecard's file does not contain the number of operators of torch {base}", ""
        )
    never = {each.name for each in OPERATORS.not_judged if each.variant in (None, FORWARD)}
    found: dict[str, list[Seen]] = {}
    for row in asked.evidence.of_suite.get(OPERATORS.name, ()):
        name = row.workload.model
        counts = row.workload.dtype == FLOAT32 or name in database.without_float32
        if row.workload.mode == FORWARD and counts and name not in never:
            found.setdefault(name, []).append(row)
    return _share(asked, found, "operator", command, database.operators - len(never) - len(found))


def benchmarks(asked: Question) -> Finding:
    """How many models of whole suites pass compiled, in each mode, of all that the suites list."""
    suites = asked.rule.names or ()
    found: dict[str, list[Seen]] = {
        f"{suite}/{model} {mode}": [] for suite in suites for model, mode in listed_models(suite)
    }
    for suite in suites:
        for row in asked.evidence.of_suite.get(suite, ()):
            name = f"{suite}/{row.workload.model} {row.workload.mode}"
            if row.configuration == DEFAULT_BACKEND and name in found:
                found[name].append(row)
    device, modes = asked.evidence.device, ",".join(MODES)
    command = (
        f"torchgauge run {','.join(suites)} --device {device} --tier full "
        f"--mode {modes} --config {DEFAULT_BACKEND}"
    )
    return _share(asked, found, "benchmark", command)


def listed_models(suite: str) -> list[tuple[str, str]]:
    """Models and modes that the data file of ``suite`` lists, whatever is installed."""
    entries = registry.load(registry.SUITES, suite).models()
    return [(entry.name, mode) for entry in entries for mode in MODES if mode in entry.batch]


def _share(
    asked: Question, found: Mapping[str, Sequence[Seen]], noun: str, command: str, unseen: int = 0
) -> Finding:
    """Points by the share of names all of whose rows say yes, of those that are not excused.

    ``unseen`` are further ones, of which there is no row.
    """
    verdicts = {name: _all_of(rows) for name, rows in found.items()}
    count = {says: sum(each is says for each in verdicts.values()) for says in Says}
    count[Says.NOTHING] += max(0, unseen)
    whole = sum(count.values()) - count[Says.EXCUSED]
    steps = asked.rule.steps or ()
    if not whole:
        return asked.open(f"no {noun} applies to this device", "")
    least = points_at(steps, count[Says.YES] / whole)
    most = points_at(steps, (count[Says.YES] + count[Says.NOTHING]) / whole)
    rows = counted(row for each in found.values() for row in each)
    because = (
        f"{count[Says.YES]} of {numbered(whole, noun)} pass, {count[Says.NO]} do not, "
        f"{count[Says.NOTHING]} are inconclusive"
    )
    if least != most:
        return asked.open(because, command, rows.cases, most)
    return Finding(least, most, because, rows.cases)


def _all_of(rows: Sequence[Seen]) -> Says:
    says = {row.says for row in rows}
    for verdict in (Says.NO, Says.NOTHING, Says.YES):
        if verdict in says:
            return verdict
    return Says.EXCUSED if says else Says.NOTHING


def points_at(steps: Iterable[Step], share: float) -> int:
    """The points of the last step that ``share`` reaches; a share a billionth below counts."""
    return max((step.points for step in steps if share >= step.share - 1e-9), default=0)


def dtype(asked: Question) -> Finding:
    """The device takes the dtype, and operators of the smoke tier are right in it, as many as are needed."""
    wanted, minimum = asked.rule.dtype or "", asked.rule.minimum or 1
    device = asked.evidence.device
    check = next(
        (r for r in asked.evidence.of_suite.get(CONFORMANCE, ()) if r.workload.model == DTYPES_CHECK), None
    )
    told = check.facts.get(f"dtype_{wanted}") if check and check.says is not Says.NOTHING else None
    rows = counted(
        row
        for row in asked.evidence.of_suite.get(OPERATORS.name, ())
        if row.workload.mode == FORWARD
        and row.workload.dtype == wanted
        and row.workload.model in OPERATORS.smoke
    )
    commands = f"torchgauge ops judge --device {device} --dtype {wanted}"
    if told is not None and told != "works":
        return asked.decided(False, f"{DTYPES_CHECK}: {told}", (check.case_id,) if check else ())
    tier = "of the smoke tier"
    right = numbered(len(rows.yes), f"operator {tier} is", f"operators {tier} are")
    if rows.no and len(rows.yes) + len(rows.nothing) < minimum:
        because = f"{right} correct in {wanted}, {len(rows.no)} not"
        return asked.decided(False, because, rows.cases)
    if told is None:
        commands = f"torchgauge check --device {device} --checks {DTYPES_CHECK}"
        return asked.open(f"{DTYPES_CHECK} has no result for {wanted}", commands, rows.cases)
    if len(rows.yes) < minimum:
        because = f"{right} correct in {wanted}, and {minimum} are needed"
        return asked.open(because, commands, rows.cases)
    beside = f"; {len(rows.no)} are not" if rows.no else ""
    because = f"{wanted} works, and {right} correct in {wanted}{beside}"
    return asked.decided(True, because, rows.cases)


def models(asked: Question) -> Finding:
    """As many models as are needed pass by a path, eager or compiled."""
    minimum = asked.rule.minimum or 1
    compiled = asked.rule.path != EAGER
    rows = [
        row
        for row in asked.evidence.rows
        if row.workload.mode in MODES and (row.backend != EAGER) is compiled
    ]
    names: dict[tuple[str, str], list[Seen]] = {}
    for row in rows:
        names.setdefault((row.workload.suite, row.workload.model), []).append(row)
    passed = [name for name, found in names.items() if any(row.says is Says.YES for row in found)]
    found = counted(rows)
    path = DEFAULT_BACKEND if compiled else EAGER
    others = (rows for name, rows in names.items() if name not in passed)
    silent = sum(any(row.says is Says.NOTHING for row in each) for each in others)
    doubt = f", {silent} more in doubt" if silent else ""
    passing = f"{numbered(len(passed), 'model')} passed in {asked.rule.path} mode"
    because = f"{passing}{doubt}, and {minimum} are needed"
    if len(passed) >= minimum:
        return asked.decided(True, because.partition(",")[0], found.cases)
    command = f"torchgauge run timm --device {asked.evidence.device} --config {path}"
    return asked.open(because, command, found.cases)


def suite(asked: Question) -> Finding:
    """Every model of the smoke tiers of whole suites passes."""
    names = asked.rule.names or ()
    device = asked.evidence.device
    wanted = [
        (name, entry.name)
        for name in names
        for entry in registry.load(registry.SUITES, name).models()
        if "smoke" in entry.tiers
    ]
    rows: dict[tuple[str, str], list[Seen]] = {key: [] for key in wanted}
    for name in names:
        for row in asked.evidence.of_suite.get(name, ()):
            rows.get((name, row.workload.model), []).append(row)
    found = counted(row for each in rows.values() for row in each)
    if found.no:
        return asked.decided(
            False, f"cases that do not pass: {listed(r.case_id for r in found.no)}", found.cases
        )
    silent = [f"{suite}/{model}" for (suite, model), each in rows.items() if _all_of(each) is Says.NOTHING]
    if silent:
        command = f"torchgauge run {','.join(names)} --device {device} --tier smoke"
        return asked.open(f"models without a result: {listed(silent)}", command, found.cases)
    return asked.decided(True, f"{numbered(len(found.yes), 'case')} passed", found.cases)


# --- speed ---------------------------------------------------------------------------------------


def speed(asked: Question) -> Finding:
    """Judge the mean ratio of step times, host over device; within ``margin`` of 1 it is undecided.

    The mean is geometric, over the same workload in the same configuration, fast on either side. Toys are
    excluded.
    """
    rule, evidence = asked.rule, asked.evidence
    timed = _pairs(rule, evidence)
    pairs = [pair for pair in timed if not toy(pair[0].workload)]
    without = left_out(toy(own.workload) for own, _ in timed)
    excluded = f" ({without})" if without else ""
    minimum, margin = rule.minimum or 1, rule.margin or 0.0
    path = {"eager": EAGER, "compiled": DEFAULT_BACKEND}.get(rule.path or "", f"{EAGER},{DEFAULT_BACKEND}")
    command = (
        f"torchgauge run timm --device {evidence.device},{HOST} --mode {rule.mode or ','.join(MODES)} "
        f"--config {path}"
    )
    if evidence.is_host:
        return asked.open("the device is the CPU, and speed is measured relative to the CPU", "")
    if not evidence.host:
        return asked.open("the CPU of the same machine has no rows", command)
    models = {(own.workload.suite, own.workload.model) for own, _ in pairs}
    cases = tuple(f"{own.case_id} ({own.run_id})" for own, _ in pairs[:SHOWN])
    if len(models) < minimum:
        because = (
            f"{numbered(len(models), 'model was', 'models were')} timed on device and CPU{excluded}, "
            f"and {minimum} are needed"
        )
        return asked.open(because, command, cases)
    ratio = math.exp(sum(math.log(_median(host) / _median(own)) for own, host in pairs) / len(pairs))
    because = (
        f"{ratio:.2f} times as fast as the CPU, over "
        f"{numbered(len(pairs), 'case')} of {numbered(len(models), 'model')}{excluded}"
    )
    if 1 - margin <= ratio < 1 + margin:
        return asked.open(f"{because}: too close for a verdict", command, cases)
    return asked.decided(ratio > 1, because, cases)


def _pairs(rule: Measured, evidence: Evidence) -> list[tuple[Seen, Seen]]:
    """The same workload and configuration on the device and on the processor, both with right results."""
    host = {_key(row): row for row in evidence.host if _timed(row, rule)}
    found = [(row, host[_key(row)]) for row in evidence.rows if _timed(row, rule) and _key(row) in host]
    return sorted(found, key=lambda pair: pair[0].case_id)


def _key(row: Seen) -> tuple[Workload, str]:
    return row.workload, row.configuration


def _timed(row: Seen, rule: Measured) -> bool:
    """Whether the row has step times that count and is of the path and mode that are asked for."""
    if row.says is not Says.YES or row.latency is None or row.workload.mode not in MODES:
        return False
    path = EAGER if row.backend == EAGER else "compiled"
    return rule.path in (None, path) and rule.mode in (None, row.workload.mode)


def _median(row: Seen) -> float:
    assert row.latency is not None  # of rows that are timed
    return row.latency[1]


# --- rules that look at many runs and not at the newest row --------------------------------------


def builds(asked: Question) -> Finding:
    """Cases passed with a nightly and with a release of torch, within so many days of the newest row."""
    days = asked.rule.days or 1
    recent = [each for each in _within(asked.evidence, days) if each.counts]
    kinds = {each.release.final for each in recent if each.release is not None}
    missing = [word for final, word in ((True, "a release"), (False, "a nightly")) if final not in kinds]
    if missing:
        because = f"no case passed with {' and with '.join(missing)} in the last {numbered(days, 'day')}"
        return asked.open(because, _NIGHTS)
    return asked.decided(True, "cases passed with a nightly and with a release")


def flaky(asked: Question) -> Finding:
    """The share of cases that ended differently in one environment, of those seen often enough."""
    rule, days = asked.rule, asked.rule.days or 1
    found: dict[tuple[str, str], list[str]] = {}
    for each in _within(asked.evidence, days):
        if each.status not in _LOST:
            found.setdefault((each.key, each.environment), []).append(each.status)
    often = {key: said for key, said in found.items() if len(said) >= (rule.minimum or 1)}
    if not often:
        because = (
            f"no case was measured {rule.minimum} times in one "
            f"environment in the last {numbered(days, 'day')}"
        )
        return asked.open(because, _NIGHTS)
    changed = sum(len(set(said)) > 1 for said in often.values())
    because = f"{changed} of {numbered(len(often), 'case')} had different statuses in one environment"
    return asked.decided(changed < (rule.share or 0.0) * len(often), because)


def outages(asked: Question) -> Finding:
    """The longest time in which no row said anything of the device, over so many days."""
    evidence, days, longest = asked.evidence, asked.rule.days or 1, asked.rule.longest_days or 1
    said = sorted({each.at for each in evidence.moments if each.status not in _LOST})
    recent = [
        (late - early) / DAY_S for early, late in pairwise(said) if evidence.newest_at - late <= days * DAY_S
    ]
    worst = max(recent, default=0.0)
    if worst > longest:
        return asked.decided(False, f"{worst:.1f} days passed without a row of the device")
    span = (said[-1] - said[0]) / DAY_S if said else 0.0
    if not said or span < days:
        return asked.open(f"the rows span {span:.1f} days, and {days} are needed", _NIGHTS)
    because = f"the longest time without a row in the last {days} days is {worst:.1f} days"
    return asked.decided(True, because)


def _within(evidence: Evidence, days: int) -> list[Moment]:
    return [each for each in evidence.moments if evidence.newest_at - each.at <= days * DAY_S]


RULES: Mapping[str, Callable[[Question], Finding]] = {
    "checks": checks,
    "check_share": check_share,
    "dtype": dtype,
    "operators": operators,
    "benchmarks": benchmarks,
    "models": models,
    "suite": suite,
    "speed": speed,
    "builds": builds,
    "flaky": flaky,
    "outages": outages,
}
"""The rules by their names."""
