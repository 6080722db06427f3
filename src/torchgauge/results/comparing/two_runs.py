"""Comparing what a store holds: two runs, or two devices or configurations, whenever they were measured.

The rule is in ``docs/comparison.md``. One run is one launch, so a ratio of two runs has in it whatever
differs between launches and hours. That part is not in the samples of either run; it comes from history, and
without history nothing is decided. Such a comparison is for reading ratios, not for blocking anybody's work.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from scipy import stats

from torchgauge.clock import SYSTEM_CLOCK, utc
from torchgauge.counted import counted
from torchgauge.errors import UsageError
from torchgauge.records import (
    Cause,
    Compared,
    Measurement,
    Modifier,
    Outcome,
    Phase,
    Realised,
    Status,
    compared_by,
    digest,
)
from torchgauge.records.comparison import Launch, MetricVerdict, Pair, Side, Verdict
from torchgauge.results.comparing.blank_verdict import blank_verdict
from torchgauge.results.comparing.noise import NoiseHistory, Prior, noise_of
from torchgauge.results.comparing.other_metrics import judge_other_metrics
from torchgauge.results.comparing.policy import Policy, Rule, policy_of
from torchgauge.results.comparing.run_history import RunHistory, read_run_history
from torchgauge.results.comparing.run_pairs import (
    Difference,
    Measured,
    RunPair,
    RunSide,
    changed_code,
    changed_facts,
    difference,
    pair_up,
    read_side,
    shadowed,
)
from torchgauge.results.comparing.run_ratio import CONFIDENCE, adjusted, decided
from torchgauge.results.comparing.run_suite import suite_of
from torchgauge.results.comparing.status_verdict import judge_status, unfit, unlike, with_status
from torchgauge.results.dataset import around_damage, read_table
from torchgauge.results.environments import environments_of
from torchgauge.results.log_ratio import ratio_of, variance_of
from torchgauge.results.lookup import resolve_run
from torchgauge.results.stats import paired_ratio
from torchgauge.results.store import Store

STEP_TIMES = compared_by(Compared.STEPS)
"""Step times that may be compared."""

EARLIER_RUNS = "earlier runs"
NO_HISTORY = (
    "no noise history of this case on this class of runner: the interval covers only variation within one "
    "launch"
)
NO_HOURS = (
    "the noise is known only from A/A launches minutes apart; to cover variation between hours, "
    "store three runs of this case first, or use torchgauge ab"
)


@dataclass(frozen=True)
class TwoRuns:
    """A comparison: both sides, the one thing that differs, the facts of it, and the verdicts.

    ``dropped`` are cases outside the common set of the geometric mean.
    """

    base: RunSide
    head: RunSide
    differs: Difference
    facts: dict[str, tuple[object, object]]
    verdicts: list[MetricVerdict]
    dropped: tuple[str, ...]


def compare_named(
    store: Store, base: RunSide, head: RunSide, policy: str | None = None, *, metric: str = "latency"
) -> TwoRuns:
    """Compare the runs that ``base`` and ``head`` name, such as ``latest~1``, with their noise history.

    ``policy`` is the file of the rules, None for the built-in ones. Raises what :func:`compare_sides` raises.
    """
    now = SYSTEM_CLOCK.now()
    rules = policy_of(policy, utc(now).date())
    base, head = (replace(side, run_id=resolve_run(store, side.run_id)) for side in (base, head))
    history = history_of(store, head, now)
    base_history = history_of(store, base, now) if base.run_id != head.run_id else history
    return compare_sides(store, base, head, rules, history, base_history=base_history, metric=metric)


def compare_sides(
    store: Store,
    base: RunSide,
    head: RunSide,
    policy: Policy,
    history: NoiseHistory,
    *,
    base_history: NoiseHistory | None = None,
    metric: str = "latency",
) -> TwoRuns:
    """The comparison of two sides that differ in one thing.

    ``history`` is of the head's class of runner; ``base_history`` of the base's where that is another.
    Raises :class:`UsageError` for a metric that is no step time, for sides that differ in nothing or in two
    things, and for names that are not there.
    """
    if metric not in STEP_TIMES:
        raise UsageError(f"{metric!r} is not a step time", hint=f"one of: {', '.join(STEP_TIMES)}")
    differs = difference(base, head)
    left = read_side(store, base)
    right = left if base == head else read_side(store, head)
    pairs = pair_up(left, right, differs)
    judged = _Comparison(store, base, head, policy, history, base_history or history, differs, metric)
    return judged.result(pairs)


def history_of(store: Store, side: RunSide, now: float) -> NoiseHistory:
    """The noise history of all classes of runner in the run of ``side``; case ids tell devices apart."""
    return noise_of(store, environments_of(store, side.run_id).values(), now)


@dataclass(frozen=True)
class _Comparison:
    store: Store
    base: RunSide
    head: RunSide
    policy: Policy
    history: NoiseHistory
    base_history: NoiseHistory
    differs: Difference
    metric: str

    def result(self, pairs: Sequence[RunPair]) -> TwoRuns:
        earlier = self._earlier(pairs)
        verdicts: list[MetricVerdict] = []
        for pair in pairs:
            verdicts += self._of_pair(pair, earlier)
        verdicts = adjusted(verdicts, self.policy)
        timed = [each for each in verdicts if each.metric == self.metric]
        dropped = tuple(each.pair_id for each in timed if each.ratio is None)
        suite = suite_of([each for each in timed if each.ratio is not None], len(dropped), self.policy)
        facts: dict[str, tuple[object, object]] = {}
        code: dict[str, tuple[object, object]] = {}
        for pair in pairs:
            if pair.base and pair.head and pair.base.environment and pair.head.environment:
                facts |= changed_facts(pair.base.environment, pair.head.environment)
                code |= changed_code(pair.base, pair.head) | shadowed(pair.base, pair.head)
        return TwoRuns(
            self.base, self.head, self.differs, facts | code, verdicts + ([suite] if suite else []), dropped
        )

    def _of_pair(self, pair: RunPair, earlier: RunHistory) -> list[MetricVerdict]:
        blank = self._blank(pair)
        if pair.base is None or pair.head is None or pair.refusal:
            return [replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=pair.refusal)]
        records = Pair(pair.base.case, pair.head.case)
        # one run of either side as a launch: what the rules of the other metrics take
        launch = Launch(records.key, records.id, 1, Side.BASE, _outcome(pair.base), _outcome(pair.head))
        quarantined = bool(self.history.quarantined(records))

        def rule_of(metric: str) -> Rule:
            return self.policy.rule(records, metric)

        if self.differs is Difference.RUN:
            others = judge_other_metrics(records, [launch], rule_of, quarantined=quarantined)
        else:
            others = [judge_status(records, [launch], rule_of, quarantined=quarantined)]
        others = [replace(each, pair_id=blank.pair_id) for each in others]
        status = others[0]
        doubt = unfit(launch)
        if status.verdict is not Verdict.UNCHANGED:
            refused = replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=status.reason)
            refused = with_status(refused, status)
            if status.verdict is Verdict.NOT_COMPARABLE:
                return [refused]
            if self.differs is not Difference.RUN and {launch.base.status, launch.head.status} & {
                Status.UNSUPPORTED,
                Status.SKIPPED,
            }:
                return [refused]  # what one of two configurations cannot do was never broken
            if self.differs is not Difference.RUN and unlike(launch):
                return [replace(refused, reason=doubt)]  # nor what it does by another path
            return [refused, *others]
        if doubt:
            return [replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=doubt), *others]
        return [self._timed(blank, pair.base, pair.head, earlier), *others]

    def _timed(
        self, blank: MetricVerdict, base: Measured, head: Measured, earlier: RunHistory
    ) -> MetricVerdict:
        """The step time of a pair whose sides both passed."""
        ours, theirs = base.summaries.get(self.metric), head.summaries.get(self.metric)
        for side, row in (("first", ours), ("second", theirs)):
            if row is None or row["median"] is None:
                why = (row and row["absent"]) or "the metric was not measured"
                reason = f"no {self.metric} on the {side} side: {why}"
                return replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=reason)
        assert ours is not None
        assert theirs is not None
        blank = replace(blank, base=ours["median"], head=theirs["median"])
        if ours["median"] <= 0 or theirs["median"] <= 0:
            reason = f"medians of {ours['median']:g} and {theirs['median']:g} s have no ratio"
            return replace(blank, verdict=Verdict.NOT_COMPARABLE, reason=reason)
        log, within = self._within(base, head)
        n = min(ours["n"], theirs["n"])
        prior, source = self._prior(blank, base, head, earlier)
        blank = replace(
            blank,
            ratio=ratio_of(log),
            spread=math.sqrt(within) if within is not None else None,
            prior_spread=prior.spread if prior else None,
            prior_df=prior.df if prior else 0.0,
        )
        if within is None:
            return replace(blank, reason=f"no interval: a side has only {counted(n, 'sample')}")
        if prior is None:
            reach = float(stats.norm.isf((1 - CONFIDENCE) / 2)) * math.sqrt(within)
            return replace(blank, low=ratio_of(log - reach), high=ratio_of(log + reach), reason=NO_HISTORY)
        found = decided(blank, log, within, prior, source)
        if self.differs is Difference.RUN and source != EARLIER_RUNS:
            return replace(found, p=None, reason=NO_HOURS)
        return found

    def _within(self, base: Measured, head: Measured) -> tuple[float, float | None]:
        """The log ratio and the variance that the samples show; None where they are too few.

        Configurations of one run were measured in the same rounds: there the ratio is paired by round.
        """
        ours, theirs = base.summaries[self.metric], head.summaries[self.metric]
        if self.differs is Difference.CONFIGURATION and self.base.run_id == self.head.run_id:
            paired = _paired(*(self._rounds.get(side.case.key, {}) for side in (base, head)))
            if paired is not None:
                return paired
        log = math.log(theirs["median"]) - math.log(ours["median"])
        sides = [variance_of(row["low"], row["high"], row["confidence"]) for row in (ours, theirs)]
        known = [variance for variance in sides if variance is not None]
        return log, sum(known) if len(known) == 2 else None

    @cached_property
    def _rounds(self) -> dict[str, dict[int, float]]:
        """Samples of the head's run by case key and round."""
        import pyarrow.compute as pc

        columns = ("case_key", "metric", "block", "value")
        table = read_table(self.store, "samples", self.head.run_id, columns)
        found: dict[str, dict[int, float]] = defaultdict(dict)
        for row in table.filter(pc.equal(table["metric"], self.metric)).to_pylist():
            if row["block"] is not None:
                found[row["case_key"]][row["block"]] = row["value"]
        return found

    def _prior(
        self, blank: MetricVerdict, base: Measured, head: Measured, earlier: RunHistory
    ) -> tuple[Prior | None, str]:
        """What history says of the log ratio of two launches, and where that is from: the wider of two.

        A/A launches alternate on one machine, so their spread is the least that two runs differ by; earlier
        runs of the same cases show hours as well, and only they decide between two runs.
        """
        found: list[tuple[Prior, str]] = []
        own = self.history.prior(Pair(head.case, head.case))
        other = self.base_history.prior(Pair(base.case, base.case))
        if own is not None and other is not None:
            spread = math.sqrt((own.spread**2 + other.spread**2) / 2)
            found.append((Prior(spread, min(own.df, other.df)), "A/A launches"))
        runs = self._between_runs(base, head, earlier)
        if runs is not None:
            found.append((runs, EARLIER_RUNS))
        if not found:
            return None, ""
        widest = max(found, key=lambda each: each[0].spread)[0]
        return widest, EARLIER_RUNS if runs is not None else "A/A launches"

    def _between_runs(self, base: Measured, head: Measured, earlier: RunHistory) -> Prior | None:
        ours, theirs = base.row["environment_id"] or "", head.row["environment_id"] or ""
        if self.differs is Difference.CONFIGURATION and self.base.run_id == self.head.run_id:
            return earlier.of_two(theirs, base.case.key, head.case.key)
        sides = [earlier.of_one(ours, base.case.key), earlier.of_one(theirs, head.case.key)]
        known = [side for side in sides if side is not None]
        if not known or (self.differs is not Difference.RUN and len(known) < 2):
            return None
        spread = math.sqrt(sum(side.spread**2 for side in known) / len(known))
        return Prior(spread, min(side.df for side in known))

    def _earlier(self, pairs: Sequence[RunPair]) -> RunHistory:
        environments = {
            str(side.row["environment_id"])
            for pair in pairs
            for side in (pair.base, pair.head)
            if side is not None and side.row["environment_id"]
        }
        without = {self.base.run_id, self.head.run_id}  # which are read already, and were not damaged
        return around_damage(
            self.store, lambda: read_run_history(self.store, self.metric, environments, without)
        )

    def _blank(self, pair: RunPair) -> MetricVerdict:
        base = pair.base.case if pair.base is not None else None
        head = pair.head.case if pair.head is not None else None
        case = head or base
        assert case is not None
        rule = self.policy.rule_of(case.workload.suite, case.id, "latency")
        reason = self.history.quarantined(Pair(head, head)) if head else ""
        name = case.id
        if base is not None and head is not None and self.differs is not Difference.RUN:
            by_device = self.differs is Difference.DEVICE
            name += f" against {base.device if by_device else base.configuration.name}"
        return blank_verdict(
            Pair(case, case),
            self.metric,
            rule,
            quarantined=bool(reason),
            pair_key=digest([base.key if base else "", head.key if head else "", False]),
            pair_id=name,
            base_case=base.id if base else "",
            head_case=head.id if head else "",
            unit="s",
            estimator="medians of one launch each",
            confidence=CONFIDENCE,
            launches=1 if base and head else 0,
        )


def _paired(base: dict[int, float], head: dict[int, float]) -> tuple[float, float | None] | None:
    """The log ratio paired by round and its variance; None for less than two common rounds, or no ratio."""
    common = sorted(base.keys() & head.keys())
    ours, theirs = ([side[each] for each in common] for side in (base, head))
    if len(common) < 2 or min(*ours, *theirs) <= 0:
        return None
    found = paired_ratio(ours, theirs, CONFIDENCE)
    assert found.estimate is not None
    if not 0 < found.estimate < math.inf:
        return None
    return math.log(found.estimate), variance_of(found.low, found.high, CONFIDENCE)


def _outcome(measured: Measured) -> Outcome:
    row = measured.row
    return Outcome(
        case_key=measured.case.key,
        status=Status(row["status"]),
        phase=Phase(row["phase"]),
        cause=Cause(row["cause"]) if row["cause"] else None,
        reason=row["reason"] or row["error_message"] or "",
        modifiers=tuple(map(Modifier, row["modifiers"] or ())),
        facts=tuple(json.loads(row["facts"] or "{}").items()),
        measurements=tuple(
            Measurement(
                summary["metric"],
                summary["unit"],
                samples=() if summary["median"] is None else (summary["median"],),
                provenance=summary["provenance"] or "",
                absent=(summary["absent"] or "the metric was not measured")
                if summary["median"] is None
                else "",
            )
            for summary in measured.summaries.values()
        ),
        realised=Realised(row["realised_hash"], row["parameters"] or 0, row["buffers"] or 0, "")
        if row["realised_hash"]
        else None,
    )
