"""What a report of an A/B run says, before it has a form: one record that every form is made of.

Why one: the comment on a pull request, the file for a test viewer and the JSON of one run must never differ
in what they call a regression. What could not be compared is counted, and never reads as success.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torchgauge.records import Environment, digest
from torchgauge.records.comparison import Action, CodeSource, ComparisonPlan, MetricVerdict, Verdict
from torchgauge.results.comparing.comparison_store import ComparisonFolder
from torchgauge.results.comparing.gate_verdict import LATENCY, Headline, headline, is_missed
from torchgauge.results.comparing.verdict_words import BETTER, CHANGED, SILENT, WORSE
from torchgauge.results.journal import RunState
from torchgauge.results.store import Store

VERSION = 1
"""Version of the fields of these records, which the JSON form says."""

STATUS = "status"


@dataclass(frozen=True)
class SideFacts:
    """One side: label, interpreter, what was set for it, machine and versions by device, and code."""

    label: str
    python: str
    variables: tuple[tuple[str, str], ...]
    configuration: str
    environments: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    source: CodeSource | None = None

    @property
    def torch_commit(self) -> str:
        """The commit of the side's torch, if its environment has one."""
        return next((dict(facts).get("torch.git_commit", "") for _, facts in self.environments), "")


@dataclass(frozen=True)
class FalseAlarms:
    """False alarms among the A/A comparisons of the last ``days`` days, with an exact interval at 95 %."""

    alarms: int
    trials: int
    rate: float | None
    low: float | None
    high: float | None
    days: int = 30


@dataclass(frozen=True)
class Counts:
    """Pairs by what is said of them, A/A pairs left out; each pair is in one of the first five.

    ``quarantined`` ones are among them, ``reported`` and ``ignored`` count what the policy does not gate.
    """

    planned: int
    changed: int
    unchanged: int
    undecided: int
    not_comparable: int
    not_run: int
    quarantined: int = 0
    reported: int = 0
    ignored: int = 0

    @property
    def tested(self) -> int:
        """Pairs that were compared, decided or not."""
        return self.changed + self.unchanged + self.undecided


@dataclass(frozen=True)
class ComparisonReport:
    """An A/B run as it is reported; ``verdicts`` are all of them, A/A and the whole suite included.

    ``not_run`` names pairs that were planned and have no verdict. ``detectable`` is the smallest relative
    change of step time that four of five pairs could have shown; None where no pair says. ``marker`` is
    equal for reports of equal selections, so that a later one can replace an earlier one.
    """

    run_id: str
    created_at: float
    state: RunState
    headline: Headline
    counts: Counts
    base: SideFacts
    head: SideFacts
    verdicts: tuple[MetricVerdict, ...]
    not_run: tuple[str, ...]
    detectable: float | None
    false_alarms: FalseAlarms | None
    command: tuple[str, ...]
    policy: str
    marker: str
    version: int = VERSION

    @property
    def judged(self) -> tuple[MetricVerdict, ...]:
        """Verdicts on pairs, without A/A and without the whole suite."""
        return tuple(each for each in self.verdicts if each.pair_key and not each.control)

    @property
    def flagged(self) -> tuple[MetricVerdict, ...]:
        """Verdicts on pairs that say something changed and that the policy does not ignore, worst first."""
        found = [each for each in self.judged if each.verdict in CHANGED and each.action is not Action.IGNORE]
        return tuple(sorted(found, key=_severity))

    @property
    def unclear(self) -> tuple[MetricVerdict, ...]:
        """Verdicts on pairs that say nothing where something was to be said, with their reasons."""
        return tuple(each for each in self.judged if each.verdict in SILENT and is_missed(each))

    @property
    def suite(self) -> MetricVerdict | None:
        """The verdict on the geometric mean over all pairs; None where there is none."""
        return next((each for each in self.verdicts if not each.pair_key), None)


def comparison_report(store: Store, folder: ComparisonFolder) -> ComparisonReport:
    """The report of the A/B run in ``folder``; raises :class:`DataFileError` for a damaged plan."""
    plan, found = folder.plan(), folder.findings()
    verdicts, environments, state = found.verdicts, found.environments, found.state
    known = {each.pair_key for each in verdicts}
    pairs = [pair for pair in plan.pairs if not pair.control]
    not_run = tuple(pair.id for pair in pairs if pair.key not in known)
    counts = count(len(pairs), verdicts, len(not_run))
    return ComparisonReport(
        run_id=plan.run_id,
        created_at=plan.created_at,
        state=state,
        headline=headline(verdicts, incomplete=bool(not_run) or state is not RunState.COMPLETE),
        counts=counts,
        base=_side(plan, environments, 0),
        head=_side(plan, environments, 1),
        verdicts=verdicts,
        not_run=not_run,
        detectable=_detectable(verdicts),
        false_alarms=_false_alarms(store, environments, plan.created_at),
        command=plan.command,
        policy=plan.policy,
        marker=digest(sorted(pair.key for pair in pairs)),
    )


def count(planned: int, verdicts: Iterable[MetricVerdict], not_run: int) -> Counts:
    """Pairs by the worst that is said of them by a metric that the policy does not ignore."""
    by_pair: dict[str, list[MetricVerdict]] = {}
    for each in verdicts:
        if each.pair_key and not each.control:
            by_pair.setdefault(each.pair_key, []).append(each)
    kinds = [_kind(found) for found in by_pair.values()]
    everything = [each for found in by_pair.values() for each in found]
    worse = [each for each in everything if each.verdict in WORSE]
    return Counts(
        planned=planned,
        changed=kinds.count("changed"),
        unchanged=kinds.count("unchanged"),
        undecided=kinds.count("undecided"),
        not_comparable=kinds.count("not_comparable"),
        not_run=not_run,
        quarantined=sum(any(each.quarantined for each in found) for found in by_pair.values()),
        reported=len({each.pair_key for each in worse if each.action is Action.REPORT}),
        ignored=len({each.pair_key for each in worse if each.action is Action.IGNORE}),
    )


def noise_class(verdict: MetricVerdict) -> str:
    """How noisy the pair is beside its tolerance: ``quiet`` below a third of it, ``noisy`` above it."""
    if verdict.spread is None:
        return "unknown"
    if verdict.spread <= verdict.tolerance / 3:
        return "quiet"
    return "normal" if verdict.spread <= verdict.tolerance else "noisy"


def _kind(verdicts: Sequence[MetricVerdict]) -> str:
    """The one word of a pair; what is better elsewhere hides nothing that is not known."""
    told = [each for each in verdicts if each.action is not Action.IGNORE]
    lost = any(each.verdict is Verdict.NOT_COMPARABLE and each.action is Action.GATE for each in told)
    if any(each.verdict in WORSE for each in told):
        return "changed"
    if any(each.verdict is Verdict.UNDECIDED and is_missed(each) for each in told):
        return "undecided"
    if lost:
        return "not_comparable"
    if any(each.verdict in BETTER for each in told):
        return "changed"
    compared = any(each.metric == LATENCY and each.verdict is Verdict.UNCHANGED for each in told)
    refused = any(each.metric == STATUS and each.verdict is Verdict.NOT_COMPARABLE for each in verdicts)
    return "unchanged" if compared and not refused else "not_comparable"


def _severity(verdict: MetricVerdict) -> tuple[int, int, float, str]:
    order = (Verdict.BROKEN, Verdict.OUTPUTS_DIFFER, Verdict.REGRESSION, Verdict.FIXED, Verdict.IMPROVEMENT)
    change = -abs(math.log(verdict.ratio)) if verdict.ratio is not None and verdict.ratio > 0 else 0.0
    return order.index(verdict.verdict), verdict.action is not Action.GATE, change, verdict.pair_id


def _detectable(verdicts: Iterable[MetricVerdict]) -> float | None:
    """The upper quintile of the pairs' own figures: four of five could have shown a change of that size."""
    found = sorted(
        each.detectable
        for each in verdicts
        if each.pair_key and not each.control and each.metric == LATENCY and each.detectable is not None
    )
    return found[max(0, math.ceil(0.8 * len(found)) - 1)] if found else None


def _side(plan: ComparisonPlan, environments: Sequence[Environment], index: int) -> SideFacts:
    """Facts of base (0) or head (1): on each device base describes itself first, then head."""
    spec = (plan.base, plan.head)[index]
    by_device: dict[str, list[Environment]] = {}
    for each in environments:
        by_device.setdefault(each.device, []).append(each)
    return SideFacts(
        spec.label,
        spec.python,
        spec.variables,
        spec.configuration,
        tuple(
            (device, tuple((key, str(value)) for key, value in found[index].identity))
            for device, found in sorted(by_device.items())
            if len(found) > 1  # one alone does not say whose it is
        ),
        spec.source,
    )


def _false_alarms(store: Store, environments: Sequence[Environment], now: float) -> FalseAlarms | None:
    """The ledger's rate on this class of runner, over the days up to this run; None without a class."""
    if not environments:
        return None
    from torchgauge.results.comparing.noise_ledger import read_ledger
    from torchgauge.results.runner_class import runner_class

    recent = read_ledger(store, now, runner_class(environments[-1])).recent
    return FalseAlarms(recent.alarms, recent.trials, recent.rate, recent.low, recent.high)
