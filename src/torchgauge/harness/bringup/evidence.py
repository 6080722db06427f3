"""Rows of runs as findings: what they say of a question, in the list where it belongs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from torchgauge.counted import counted
from torchgauge.harness.bringup.finding import Finding, Kind
from torchgauge.harness.bringup.part import Part
from torchgauge.harness.bringup.question import (
    CLOCKS,
    DEVICES,
    FALLBACKS,
    INFERENCE,
    OPERATORS,
    TRAINING,
    decides,
    question_of,
)
from torchgauge.records import INCOMPLETE, Cause, Result, Status
from torchgauge.suites.check import TOO_FEW
from torchgauge.suites.conformance.suite import NAME as CONFORMANCE
from torchgauge.suites.distributed.suite import SUITE as DISTRIBUTED
from torchgauge.suites.ops.suite import SUITE as OPERATOR_SUITE

WRONG = frozenset({Status.FAIL_ACCURACY, Status.CRASH, Status.TIMEOUT})
"""What is dangerous: wrong numbers that nobody is told of, and what takes the process with it."""
QUIETLY_WRONG = frozenset({"nn.parameters_stay"})
"""Checks whose `unsupported` still leaves programs that run and do not do what they say."""
NOTHING_TO_WRITE = frozenset({"autoload.import_without_stack"})
"""Checks that could not be made here, which is no work for who writes the device's package."""
WITHOUT_OPERATORS = frozenset({("toy", "noop"), ("toy", "sum")})
"""Models of Python alone, of which a profiler rightly records nothing."""
FALLBACK_CHECKS = frozenset({"operators.fallback", "operators.fallback_families"})
USUAL = "float32"
"""The dtype that a device cannot do without; what it lacks in others changes no answer."""
NAMED = 4
_UNPLAIN = re.compile(r"[^A-Za-z0-9 _.,:;/()+=%-]")


def findings_of(rows: Sequence[Result]) -> list[Finding]:
    """What ``rows`` of one device say, all kinds of suites together."""
    checks = [row for row in rows if row.case.workload.suite == CONFORMANCE]
    others = [row for row in rows if row.case.workload.suite != CONFORMANCE]
    models = [row for row in others if row.case.workload.suite != OPERATOR_SUITE.name]
    found = [*_passes(others), *_failures(others), *_fallbacks(models), *_clocks(models)]
    return [*(replace(each, part=Part.CHECK.value) for each in _checks(checks)), *map(_parted, found)]


def _parted(found: Finding) -> Finding:
    """``found`` with the part that its rows are of, which follows from what it is about."""
    part = {OPERATORS: Part.OPS, DEVICES: Part.COLLECTIVES}.get(found.about, Part.MODELS)
    return replace(found, part=part.value)


def kind_of(row: Result) -> Kind:
    """The list in which a row stands that is no pass, or whose pass does not count."""
    name = row.case.workload.model
    if row.cause is Cause.CLOCK_CONTRADICTION or row.status in WRONG or name in QUIETLY_WRONG:
        return Kind.DANGER
    if row.status is Status.ERROR:
        loud = row.failure is not None and row.failure.type != AssertionError.__name__
        wrong = row.case.workload.suite == CONFORMANCE and name not in FALLBACK_CHECKS
        return Kind.DANGER if wrong and not loud else Kind.NEXT
    if row.status is Status.UNSUPPORTED and (name in NOTHING_TO_WRITE or TOO_FEW in row.reason):
        return Kind.UNKNOWN
    return Kind.NEXT if row.status in (Status.UNSUPPORTED, Status.OOM) else Kind.UNKNOWN


def _checks(rows: Iterable[Result]) -> Iterator[Finding]:
    """One finding for each group that has a pass, and one for each check that has none."""
    passed: dict[tuple[str, str], list[str]] = {}
    planned: Counter[tuple[str, str]] = Counter()
    device = ""
    for row in rows:
        device, name = str(row.case.device), row.case.workload.model
        key = (question_of(name), name.partition(".")[0])
        planned[key] += 1
        if row.status is Status.PASS:
            passed.setdefault(key, []).append(name)
        else:
            kind = kind_of(row)
            raised = row.status is Status.ERROR and not (row.failure and row.failure.missing_op)
            unmeasured = row.status in INCOMPLETE  # it may have been the one that fails
            says_no = raised or unmeasured or kind is Kind.DANGER or name in FALLBACK_CHECKS or decides(name)
            told = f"{row.status.value} {name}"
            yield Finding(kind, key[0], told, row.reason, row.reproduce, says_no)
    for (about, group), names in passed.items():
        told = f"{group}: {len(names)} of {planned[about, group]} checks pass"
        command = f"torchgauge check --device {device} --group {group}"
        if question_of(f"{group}.") != about:  # a few of the group are of another question
            told = f"{', '.join(names)} pass"
            command = f"torchgauge check --device {device} --checks {','.join(names)}"
        yield Finding(Kind.WORKS, about, told, "", command, count=len(names))


def _about(row: Result) -> str:
    workload = row.case.workload
    if workload.suite == OPERATOR_SUITE.name:
        return OPERATORS
    if workload.suite == DISTRIBUTED.name:
        return DEVICES
    return TRAINING if workload.mode == "training" else INFERENCE


def _passes(rows: Sequence[Result]) -> Iterator[Finding]:
    """How many operators of each dtype, and models of each mode, give right numbers."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for row in rows:
        workload = row.case.workload
        word = f"operators in {workload.dtype}" if _about(row) == OPERATORS else f"models, {workload.mode}"
        groups.setdefault((_about(row), word), []).append(row)
    for (about, word), found in groups.items():
        right = [row for row in found if row.status is Status.PASS and not row.unchecked]
        tried = [row for row in found if row.status is not Status.SKIPPED]
        if right:
            told = f"{plain(word)}: {len(right)} of {len(tried)} right"
            yield Finding(Kind.WORKS, about, told, "", right[0].reproduce, count=len(right))


def _failures(rows: Iterable[Result]) -> Iterator[Finding]:
    """One finding for each cause of failures."""
    groups: dict[tuple[str, Kind, str], list[Result]] = {}
    for row in rows:
        if row.status is Status.PASS and not row.unchecked:
            continue
        if row.status is Status.SKIPPED and row.cause is Cause.DECLARED:
            continue  # no function of inputs that a test could pass on
        kind = Kind.UNKNOWN if row.status is Status.PASS else kind_of(row)
        wrong = row.case.workload.model if row.status is Status.FAIL_ACCURACY else ""  # by other numbers each
        alike = wrong or (row.failure.fingerprint if row.failure is not None else "") or row.reason
        groups.setdefault((_about(row), kind, f"{row.status.value} {alike}"), []).append(row)
    for (about, kind, _), found in sorted(groups.items(), key=lambda item: -len(item[1])):
        first = found[0]
        names = list(dict.fromkeys(row.case.workload.model for row in found))
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        times = f"{len(found)} x " if len(found) > 1 else ""
        told = plain(f"{times}{first.status.value}: {', '.join(names[:NAMED])}{more}")
        usual = any(row.case.workload.dtype == USUAL for row in found)
        left = first.status is Status.SKIPPED or TOO_FEW in first.reason
        says_no = kind is Kind.DANGER or (usual and not left)
        why = first.reason or first.unchecked
        yield Finding(kind, about, told, why, first.reproduce, says_no, len(found))


def _fallbacks(rows: Iterable[Result]) -> Iterator[Finding]:
    """Which operators of models ran on the host, how many models have none, and where nobody can say."""
    clean, unknown = [], []
    for row in rows:
        facts = dict(row.facts)
        if (row.case.workload.suite, row.case.workload.model) in WITHOUT_OPERATORS:
            continue
        if facts.get("fallback_ops"):
            told = plain(f"{row.case.workload.model} {row.case.workload.mode}: operators ran on the host")
            yield Finding(Kind.NEXT, FALLBACKS, told, row.degraded or str(facts.get("fallback_names", "")),
                          row.reproduce)  # fmt: skip
        elif "fallback_ops" in facts:
            clean.append(row)
        elif "fallback_unknown" in facts:
            unknown.append(row)
    if clean:
        told = f"{counted(len(clean), 'model case')} without a fallback to the host"
        yield Finding(Kind.WORKS, FALLBACKS, told, "", clean[0].reproduce, count=len(clean))
    if unknown:
        why = str(dict(unknown[0].facts)["fallback_unknown"])
        told = f"fallbacks of {counted(len(unknown), 'model case')}"
        yield Finding(Kind.UNKNOWN, FALLBACKS, told, why, unknown[0].reproduce)


def _clocks(rows: Sequence[Result]) -> Iterator[Finding]:
    """Contradictions of clocks, which are about every time that anybody takes."""
    bad = [row for row in rows if row.cause is Cause.CLOCK_CONTRADICTION]
    if bad:
        told = f"host and device clocks contradict each other in {counted(len(bad), 'model case')}"
        yield Finding(Kind.DANGER, CLOCKS, told, bad[0].reason, bad[0].reproduce, count=len(bad))
    agreed = [row for row in rows if row.summaries and "clock_unknown" not in dict(row.facts)]
    if agreed:
        told = f"host and device clocks agree in {counted(len(agreed), 'model case')}"
        yield Finding(Kind.WORKS, CLOCKS, told, "", agreed[0].reproduce, count=len(agreed))
    unknown = [row for row in rows if "clock_unknown" in dict(row.facts)]
    if unknown:
        why = str(dict(unknown[0].facts)["clock_unknown"])
        told = f"clocks of {counted(len(unknown), 'model case')}"
        yield Finding(Kind.UNKNOWN, CLOCKS, told, why, unknown[0].reproduce)


def plain(text: str) -> str:
    """``text`` with nothing that acts in Markdown: names of models and operators are others' words."""
    return _UNPLAIN.sub("?", text)
