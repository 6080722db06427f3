"""What A/B runs of the store say, worst verdicts first, and how often the rule was seen to cry wolf."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchgauge.dashboard.pages.number_text import NO_NUMBER, change
from torchgauge.dashboard.plain_rows import Row, plain_rows
from torchgauge.errors import TorchgaugeError
from torchgauge.records.comparison import Verdict
from torchgauge.results import units
from torchgauge.results.hostile_text import first_line, slug

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext
    from torchgauge.results.comparing.noise_ledger import AlarmRate, CaseNoise

MOST_RUNS, MOST_VERDICTS, MOST_CASES = 20, 25, 50

_ORDER = {
    verdict.value: place
    for place, verdict in enumerate(
        (
            Verdict.BROKEN,
            Verdict.REGRESSION,
            Verdict.UNDECIDED,
            Verdict.NOT_COMPARABLE,
            Verdict.FIXED,
            Verdict.IMPROVEMENT,
            Verdict.UNCHANGED,
        )
    )
}
_CHANGED = frozenset(
    each.value for each in (Verdict.BROKEN, Verdict.REGRESSION, Verdict.FIXED, Verdict.IMPROVEMENT)
)
_COLUMNS = (
    "pair_id", "pair_key", "base_label", "head_label", "metric", "verdict", "reason", "ratio", "low", "high",
    "confidence", "tolerance", "launches", "confirmed", "quarantined", "control", "action", "run_created_at",
)  # fmt: skip


@dataclass(frozen=True)
class ShownVerdict:
    """One verdict; ``css`` is the class of its badge."""

    pair: str
    metric: str
    verdict: str
    css: str
    ratio: str
    interval: str
    launches: int
    remarks: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class ShownComparison:
    """One A/B run; ``controls`` are its A/A comparisons, of which ``alarms`` said that something changed."""

    run_id: str
    anchor: str
    when: str
    sides: str
    counts: str
    verdicts: tuple[ShownVerdict, ...]
    more: int
    controls: int
    alarms: int
    command: str
    problem: str


@dataclass(frozen=True)
class ShownRate:
    """A false-alarm rate in words."""

    name: str
    alarms: str
    rate: str
    decided: str


@dataclass(frozen=True)
class ShownCase:
    """A case in quarantine, or one that raised false alarms."""

    case_id: str
    runner_class: str
    reason: str
    since: str
    clean: int
    alarms: str
    spread: str


@dataclass(frozen=True)
class ABRuns:
    """All of it; ``older`` A/B runs are counted only, ``open`` ones have no tables yet."""

    comparisons: tuple[ShownComparison, ...]
    older: int
    open: tuple[str, ...]
    rates: tuple[ShownRate, ...]
    quarantine: tuple[ShownCase, ...]
    alarming: tuple[ShownCase, ...]
    problems: tuple[str, ...]


def ab_runs(context: SiteContext) -> ABRuns | None:
    """What the A/B runs say; None where the store has none."""
    folder = context.store.path / "comparisons"
    if not folder.is_dir() or not any(folder.glob("[!.]*")):
        return None
    from torchgauge.results.comparing.comparison_store import comparison_ids

    ids = comparison_ids(context.store)
    there = [run for run in ids if context.store.table_path("verdicts", run).is_file()]
    shown = [_comparison(context, run) for run in reversed(there[-MOST_RUNS:])]
    rates, quarantine, alarming, problems = _ledger(context)
    return ABRuns(
        tuple(shown),
        len(there) - len(shown),
        tuple(run for run in ids if run not in there),
        rates,
        quarantine,
        alarming,
        problems,
    )


def _comparison(context: SiteContext, run: str) -> ShownComparison:
    from torchgauge.results.comparing.comparison_store import ComparisonFolder, read_comparisons

    command, problem, rows = "", "", []
    try:
        rows = plain_rows(read_comparisons(context.store, "verdicts", [run], _COLUMNS))
    except TorchgaugeError as error:
        problem = error.message
    try:
        plan = ComparisonFolder(context.store.path / "comparisons" / run).plan()
        command = units.shortened(shlex.join(plan.command), 4_000)
    except TorchgaugeError as error:
        problem = problem or error.message
    return _shown(run, rows, command, problem)


def _shown(run: str, rows: list[Row], command: str, problem: str) -> ShownComparison:
    judged = [row for row in rows if not row["control"]]
    judged.sort(key=_rank)
    counts = Counter(row["verdict"] for row in judged)
    listed = [row for row in judged if row["verdict"] != Verdict.UNCHANGED.value][:MOST_VERDICTS]
    listed = listed or judged[:MOST_VERDICTS]
    controls: dict[str, bool] = {}
    for row in rows:
        if row["control"]:
            changed = row["verdict"] in _CHANGED
            controls[row["pair_key"]] = controls.get(row["pair_key"], False) or changed
    first = judged[0] if judged else None
    return ShownComparison(
        run_id=run,
        anchor=f"ab-{slug(run)}",
        when=units.moment(first["run_created_at"].timestamp()) if first else "",
        sides=f"{_label(first['base_label'])} → {_label(first['head_label'])}" if first else "",
        counts=", ".join(f"{number} {_words(name)}" for name, number in counts.items()),
        verdicts=tuple(_verdict(row) for row in listed),
        more=len(judged) - len(listed),
        controls=len(controls),
        alarms=sum(controls.values()),
        command=command,
        problem=first_line(problem, 400),
    )


def _rank(row: Row) -> tuple[int, float, str, str]:
    return (
        _ORDER.get(row["verdict"], 0), -abs((row["ratio"] or 1.0) - 1.0), row["pair_id"], row["metric"]
    )  # fmt: skip


def _verdict(row: Row) -> ShownVerdict:
    remarks = []
    if row["confirmed"] is not None:
        remarks.append("confirmed" if row["confirmed"] else "did not repeat")
    if row["quarantined"]:
        remarks.append("in quarantine")
    if row["action"] != "gate":
        remarks.append(_words(row["action"]))
    text, interval = _ratio(row)
    return ShownVerdict(
        pair=_label(row["pair_id"], 200),
        metric=_label(row["metric"]),
        verdict=_words(row["verdict"]),
        css=verdict_css(row["verdict"]),
        ratio=text,
        interval=interval,
        launches=row["launches"],
        remarks=tuple(remarks),
        reason=first_line(row["reason"] or "", 300),
    )


def _ratio(row: Row) -> tuple[str, str]:
    ratio, low, high = row["ratio"], row["low"], row["high"]
    if ratio is None or not ratio > 0:
        return NO_NUMBER, ""
    if low is None or high is None:
        return change(ratio, None), ""
    return change(ratio, None), f"[{change(low, None)}, {change(high, None)}]"


def verdict_css(verdict: str) -> str:
    """The class of a badge: red for what is worse, blue for what is better or the same."""
    if verdict in (Verdict.BROKEN.value, Verdict.REGRESSION.value):
        return "s-err"
    if verdict in (Verdict.UNDECIDED.value, Verdict.NOT_COMPARABLE.value):
        return "s-acc"
    return "s-pass" if verdict in _ORDER else "s-none"


def _ledger(
    context: SiteContext,
) -> tuple[tuple[ShownRate, ...], tuple[ShownCase, ...], tuple[ShownCase, ...], tuple[str, ...]]:
    from torchgauge.results.comparing.noise_ledger import read_ledger

    try:
        ledger = read_ledger(context.store, context.now)
    except TorchgaugeError as error:
        return (), (), (), (f"the noise ledger cannot be made: {error.message}",)
    rates = (_rate("all time", ledger.alarms), _rate("the last 30 days", ledger.recent))
    held = [each for each in ledger.cases if each.quarantine]
    loud = [each for each in ledger.cases if each.alarms.alarms and not each.quarantine]
    loud.sort(key=lambda each: (-each.alarms.alarms, each.case_id))
    return rates, _cases(held[:MOST_CASES]), _cases(loud[:MOST_CASES]), ()


def _cases(cases: Iterable[CaseNoise]) -> tuple[ShownCase, ...]:
    return tuple(
        ShownCase(
            _label(each.case_id, 200),
            _label(each.runner_class, 200),
            each.quarantine,
            units.moment(each.quarantined_on * 86_400.0)[:10] if each.quarantined_on is not None else "",
            each.clean_nights,
            f"{each.alarms.alarms} of {each.alarms.trials}",
            f"{each.spread:.1%}" if each.spread is not None else "not known",
        )
        for each in cases
    )


def _rate(name: str, rate: AlarmRate) -> ShownRate:
    if rate.rate is None or rate.low is None or rate.high is None:
        return ShownRate(name, "0 of 0", "not known: nothing was measured against itself", "0")
    return ShownRate(
        name,
        f"{rate.alarms} of {rate.trials}",
        f"{rate.rate:.1%} [{rate.low:.1%}, {rate.high:.1%}]",
        f"{rate.decided}",
    )


def _label(text: Any, limit: int = 80) -> str:
    return first_line(str(text), limit)


def _words(text: str) -> str:
    return text.replace("_", " ")
