"""The nightly gate: what a night found, turned into red or green.

Red is for what is known to be worse: a case that ends other than expected, or a change of level that was
measured again and is real, until it recovers or the policy acknowledges it. What is missing is never green:
neither a case nor the answer to a suspicion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torchgauge.counted import counted
from torchgauge.records import Modifier, to_plain
from torchgauge.records.comparison import Action
from torchgauge.results import document
from torchgauge.results.comparing.gate_verdict import EXIT_CODES, GateVerdict, worst
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.gain import change_text
from torchgauge.results.hostile_text import first_line
from torchgauge.results.trends.trend_outcomes import TrendState
from torchgauge.workflows.gate_verdict import TITLES
from torchgauge.workflows.night_changes import NightlyChange
from torchgauge.workflows.night_clusters import FailureCluster
from torchgauge.workflows.night_findings import NightFindings

SUMMARY_BYTES = 1_000_000
"""Bytes of a summary; GitHub drops one of more than 1 MiB as a whole."""
_SHOWN = 25
"""Cases that one cluster or change lists."""
_CUT = "\n\nThe rest is cut off; `torchgauge ci gate --json` prints everything.\n"


@dataclass(frozen=True)
class NightlyGate:
    """What the gate says of a night; ``reasons`` are its words, worst first."""

    verdict: GateVerdict
    exit_code: int
    reasons: tuple[str, ...]
    findings: NightFindings


OUTCOMES = {
    "failed": GateVerdict.REGRESSION,
    "degraded": GateVerdict.REGRESSION,
    "confirmed": GateVerdict.REGRESSION,
    "not measured": GateVerdict.INCOMPLETE,
    "lost": GateVerdict.INCOMPLETE,
    "not confirmable": GateVerdict.INCOMPLETE,
    "suspected": GateVerdict.UNDECIDED,
    "not confirmed": GateVerdict.UNDECIDED,
    "unsteady": GateVerdict.UNDECIDED,
}
"""What each kind of finding makes of a night, worst first: the one place that says so."""
_LOST = {Modifier.DEGRADED.value: "degraded", Modifier.UNSTEADY.value: "unsteady"}
"""What was measured before and is not is a finding of a kind of its own where it ended so."""


def nightly_gate(
    found: NightFindings, policy: Policy | None = None, undecided: str = "failure"
) -> NightlyGate:
    """What ``found`` means; ``undecided`` is ``neutral``, ``success`` or ``failure``, as the policy says."""
    order = list(OUTCOMES)
    reasons = sorted(_reasons(found, policy or Policy.default()), key=lambda each: order.index(each[0]))
    verdict = worst([GateVerdict.PASS, *(OUTCOMES[kind] for kind, _ in reasons)])
    let_pass = verdict is GateVerdict.UNDECIDED and undecided != "failure"
    code_ = 0 if let_pass else EXIT_CODES[verdict]
    return NightlyGate(verdict, code_, tuple(words for _, words in reasons), found)


def _reasons(found: NightFindings, policy: Policy) -> Iterator[tuple[str, str]]:
    """Each kind of finding that gates, a key of :data:`OUTCOMES`, with its words."""
    for each in found.failures:
        if _gates(each, policy):
            words = f"{each.ended} where {each.expected.value} is expected: {_count(len(each.cases))}"
            yield "failed", words
    for each in found.lost:
        if _gates(each, policy):
            yield (
                _LOST.get(each.ended, "lost"),
                f"measured before, {each.ended} now: {_count(len(each.cases))}",
            )
    for each in found.unconfirmed:
        if _gates(each, policy):
            told = f"reported as {each.ended} by the pool, without an earlier measurement"
            yield "not confirmed", f"{told}: {_count(len(each.cases))}"
    for gap in found.gaps:
        yield "not measured", f"incomplete: {gap}"
    for change in found.changes:
        yield from _of_change(change)


def _of_change(change: NightlyChange) -> Iterator[tuple[str, str]]:
    gating = [case for case in change.cases if case.gates]
    for case in gating:
        moved = change_text(case.size, case.unit)
        if case.state is TrendState.CONFIRMED:
            when = "tonight" if case.confirmed_now else "and not recovered"
            yield (
                "confirmed",
                f"confirmed {when}: {case.case_id} {moved} since {change.date}",
            )
        elif case.state is TrendState.NOT_CONFIRMABLE:
            told = f"{case.case_id} {moved} since {change.date}: {first_line(case.reason)}"
            yield "not confirmable", f"NOT_CONFIRMABLE: {told}"
    waiting = sum(case.state is TrendState.SUSPECTED for case in gating)
    if waiting:
        yield "suspected", f"suspected since {change.date} and not measured again: {_count(waiting)}"


def gate_json(result: NightlyGate) -> dict[str, Any]:
    """The gate as JSON values."""
    found = result.findings
    names = ("campaign_id", "night", "gaps", "rejected", "left_out", "runs", "cases", "failures", "lost",
             "unconfirmed", "changes")  # fmt: skip
    said = {"verdict": result.verdict.value, "exit_code": result.exit_code, "reasons": list(result.reasons)}
    return {**said, **{name: to_plain(getattr(found, name)) for name in names}}


def gate_summary(result: NightlyGate, limit: int = SUMMARY_BYTES) -> str:
    """The gate as Markdown for the summary of a step, at most ``limit`` bytes; what is cut is said."""
    found = result.findings
    clusters = (*found.failures, *found.lost, *found.unconfirmed)
    text = findings_text(found.changes, clusters, gate=True, found=found, title=TITLES[result.verdict])
    return beginning(text, limit if text.isascii() else limit // 4)


def findings_text(changes: Sequence[NightlyChange], clusters: Sequence[FailureCluster], **night: Any) -> str:
    """Changes and clusters with their cases, as Markdown; below what is said of their ``night``, if any."""
    about = {"gate": False, **night}
    return document.markdown("workflows/night", changes=changes, clusters=clusters, most=_SHOWN, **about)


def beginning(text: str, limit: int) -> str:
    """``text``, or as many of its lines as ``limit`` characters hold and a last one that says so."""
    if len(text) <= limit:
        return text
    return text[: limit - len(_CUT)].rpartition("\n")[0] + _CUT


def _gates(cluster: FailureCluster, policy: Policy) -> bool:
    """Whether the policy gates the status of any of its cases."""
    rules = (policy.rule_of(each.case_id.partition("/")[0], each.case_id, "status") for each in cluster.cases)
    return any(rule.action is Action.GATE for rule in rules)


def _count(number: int) -> str:
    return counted(number, "case")
