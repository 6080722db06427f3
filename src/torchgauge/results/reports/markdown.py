"""A report as Markdown for one comment on a pull request: the verdict first, what is unchanged folded away.

A comment of GitHub's holds 65,536 characters. Rows beyond that are cut, and a line says how many.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from torchgauge.records.comparison import Action, MetricVerdict
from torchgauge.results import document
from torchgauge.results.comparing import verdict_words as words
from torchgauge.results.document import ours
from torchgauge.results.journal import RunState
from torchgauge.results.reports.publisher import Publisher, Report
from torchgauge.results.reports.report import ComparisonReport, noise_class
from torchgauge.results.reports.run_report import CaseLine, RunReport

LIMIT = 65_536
"""Characters of a comment."""

_FACTS = re.compile(
    r".+\.model|.+\.cores_available|host\.(?:memory_bytes|system)|.*driver.*|python\.version"
    r"|torch\.(?:version|git_commit|flavour)|compiler\..+|imported_from"
)
"""Facts of an environment that are always shown; others only where the sides differ in them."""
_MOST_FACTS = 16
_STATES = {
    RunState.COMPLETE: "complete",
    RunState.INTERRUPTED: "interrupted",
    RunState.OUT_OF_BUDGET: "out of time",
    RunState.RUNNING: "still running",
}


@dataclass(frozen=True)
class _Group:
    """What is said of cases that are told apart by ``field``, and how far their table may fill the room."""

    field: str
    title: str
    meaning: str
    share: float
    head: str
    status: bool = False


_APART = (
    _Group("degraded", "Degraded passes", "not on the requested path", 0.9, "pass, but"),
    _Group("other_model", "Not the named model", "the suite built another model, so not a pass", 0.95,
           "the model", status=True),
    _Group("unchecked", "Unchecked", "not shown to be correct, so not a pass", 0.97, "unchecked, since"),
    _Group("unsteady", "Unsteady", "their step times are excluded from means and comparisons", 0.98,
           "unsteady, since"),
)  # fmt: skip


def render(report: Report, limit: int = LIMIT) -> str:
    """``report`` as Markdown, at most ``limit`` characters where its summary alone has fewer."""
    told = {"report": report, "state": _STATES[report.state], "command": shlex.join(report.command)}
    if isinstance(report, RunReport):
        return document.markdown("results/reports/run_report", limit, apart=_apart(report), **told)
    counted = [each for each in report.verdicts if each.action is not Action.IGNORE]
    tolerances = [each.tolerance for each in report.judged if each.metric == "latency"]
    return document.markdown(
        "results/reports/comparison_report",
        limit,
        words=words,
        counted=counted,
        let_pass=words.let_pass(counted).partition(": "),
        tolerance=max(tolerances, default=None),
        doubt=words.in_doubt(report.verdicts),
        suite=report.suite if report.suite is not None and report.suite.ratio is not None else None,
        controls=len({each.pair_key for each in report.verdicts if each.control}),
        facts=list(_facts(report)),
        variables=lambda side: " ".join(f"{name}={value}" for name, value in side.variables),
        change=_change,
        noise=noise_class,
        **told,
    )


def _apart(report: RunReport) -> list[tuple[_Group, tuple[CaseLine, ...]]]:
    """The cases that are told apart, by the field that says why; those that there are."""
    found = (report.degraded, report.other_models, report.unchecked, report.unsteady)
    return [(group, cases) for group, cases in zip(_APART, found, strict=True) if cases]


def _facts(report: ComparisonReport) -> Iterator[tuple[str, str, str, str]]:
    """Device, fact and both sides: machine and versions, and what else differs between the sides."""
    sides = [dict(side.environments) for side in (report.base, report.head)]
    for device in dict.fromkeys(name for side in sides for name in side):
        base, head = (dict(side.get(device, ())) for side in sides)
        keys = sorted(base.keys() | head.keys())
        named = [key for key in keys if _FACTS.fullmatch(key)][:_MOST_FACTS]
        differ = [key for key in keys if base.get(key) != head.get(key) and key not in named]
        for key in (*named, *differ[:_MOST_FACTS]):
            yield device, key, base.get(key, ""), head.get(key, "")


def _change(verdict: MetricVerdict) -> str:
    """Return both medians, where there are both."""
    return ours(words.change(verdict)) if verdict.base is not None and verdict.head is not None else ""


PUBLISHER = Publisher("markdown", render)
