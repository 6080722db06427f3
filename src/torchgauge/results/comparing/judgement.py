"""The judge of an A/B run: what is to be measured next, and what is known by now.

The rule in prose is ``docs/comparison.md``. The judge sees launches only and starts nothing; it keeps no
state but them, so a resumed run that feeds it the launches of its journal goes on where it stood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from scipy import stats

from torchgauge.records.comparison import Launch, MetricVerdict, Pair
from torchgauge.results.comparing.noise import NoiseHistory
from torchgauge.results.comparing.other_metrics import judge_other_metrics
from torchgauge.results.comparing.pair_evidence import PairEvidence
from torchgauge.results.comparing.pair_verdict import LATENCY, WALL, Finding, timing_verdict, untimed_verdict
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.comparing.sequential import is_gain, is_harm, is_unchanged, spent_p
from torchgauge.results.comparing.status_verdict import with_status
from torchgauge.results.comparing.suite_level import METRIC as SUITE
from torchgauge.results.comparing.suite_level import asks_for_more, suite_verdict

DEFAULT_QUADS = 80
"""Quads per launch. More of them cannot remove what a launch adds, and fewer make launches poorer than
their start costs; ``docs/performance.md`` has the times for other numbers.
"""

Hypotheses = dict[tuple[str, str], Finding]


@dataclass(frozen=True)
class Wanted:
    """What the next launch should measure of one pair: ``quads`` of it; ``confirms`` a suspicion or not."""

    pair_key: str
    confirms: bool
    quads: int


class Judge:
    """Takes launches in any number, says which pairs need another one, and gives the verdicts."""

    def __init__(
        self,
        policy: Policy,
        history: NoiseHistory,
        pairs: Sequence[Pair],
        max_launches: int = 12,
        *,
        quads: int = DEFAULT_QUADS,
    ) -> None:
        self._policy, self._quads = policy, quads
        self._evidence = {
            pair.key: PairEvidence(
                pair,
                policy.rule(pair, LATENCY),
                max_launches,
                history.prior(pair, LATENCY),
                history.prior(pair, WALL),
                history.quarantined(pair),
            )
            for pair in pairs
        }

    def add(self, launch: Launch) -> None:
        """Take one launch of one pair; raises ``KeyError`` for a pair that is not of this run."""
        self._evidence[launch.pair_key].add(launch)

    def wanted(self) -> tuple[Wanted, ...]:
        """What the next launch should measure; empty where nothing more can or need be known.

        Fresh launches come when no pair needs first ones, and the suite needs none of them either: only then
        it is known what is suspected.
        """
        hypotheses = self._hypotheses()
        first = [each for each in self._evidence.values() if self._is_open(each, hypotheses)]
        if first:
            return tuple(Wanted(each.pair.key, confirms=False, quads=self._quads) for each in first)
        whole = self._whole()
        if whole is not None and asks_for_more(whole):
            fewest = [each for each in self._asked() if each.may_go_on(whole.launches)]
            if fewest:
                return tuple(Wanted(each.pair.key, confirms=False, quads=self._quads) for each in fewest)
        return tuple(
            Wanted(each.pair.key, confirms=True, quads=self._quads)
            for each in self._evidence.values()
            if self._suspected(each, hypotheses) and each.needs_fresh
        )

    def interim(self, pair_key: str) -> MetricVerdict | None:
        """The latency of the pair as it looks now and by itself, for progress; None before three launches."""
        evidence = self._evidence[pair_key]
        finding = self._finding(evidence, LATENCY, len(evidence.first.timings))
        return None if finding is None else timing_verdict(evidence, finding, has_to_repeat=False)

    def verdicts(self) -> list[MetricVerdict]:
        """All metrics of all pairs, in the order of the pairs; the whole suite last, with no pair key."""
        hypotheses = self._hypotheses(final=True)
        found: list[MetricVerdict] = []
        for key, evidence in self._evidence.items():
            others = judge_other_metrics(
                evidence.pair,
                evidence.launches,
                partial(self._policy.rule, evidence.pair),
                quarantined=bool(evidence.quarantine),
            )
            timed = [hypotheses[key, metric] for metric in (LATENCY, WALL) if (key, metric) in hypotheses]
            found += [timing_verdict(evidence, each, self._has_to_repeat(evidence, each)) for each in timed]
            if not timed:
                found.append(with_status(untimed_verdict(evidence), others[0]))
            found += others
        whole = self._whole()
        return found if whole is None else [*found, whole]

    def _asked(self) -> list[PairEvidence]:
        """The pairs that somebody asked for: all but the controls."""
        return [each for each in self._evidence.values() if not each.pair.control]

    def _whole(self) -> MetricVerdict | None:
        """The verdict on the whole suite."""
        suites = {each.pair.head.workload.suite for each in self._asked()}
        name = suites.pop() if len(suites) == 1 else ""
        return suite_verdict(self._asked(), self._policy.rule_of(name, "", SUITE))

    def _hypotheses(self, final: bool = False) -> Hypotheses:
        """Every pair's step times as of its last look, or in the end as of its last launch.

        Controls are adjusted in the company of all, the others among themselves: a control must not cost
        the pairs that are asked for any power, and is judged by the same rule nevertheless.
        """
        found: Hypotheses = {}
        for key, evidence in self._evidence.items():
            if evidence.mismatch:
                continue
            usable = len(evidence.first.timings) if final or evidence.exhausted else evidence.look
            for metric in (LATENCY, WALL):
                finding = self._finding(evidence, metric, usable)
                if finding is not None:
                    found[key, metric] = finding
        controls = {key for key, each in self._evidence.items() if each.pair.control}
        return {
            **_adjusted(found),
            **_adjusted({each: finding for each, finding in found.items() if each[0] not in controls}),
        }

    def _finding(self, evidence: PairEvidence, metric: str, usable: int) -> Finding | None:
        """One step time over the first ``usable`` launches, not adjusted; None below three of them."""
        moderated = evidence.evidence(usable, wall=metric == WALL)
        if moderated is None:
            return None
        rule = self._policy.rule(evidence.pair, metric)
        levels = evidence.levels(rule)
        p = float(spent_p(moderated, levels))
        return Finding(metric, rule, levels, moderated, p, p)

    def _is_open(self, evidence: PairEvidence, hypotheses: Hypotheses) -> bool:
        """Whether the first stage of the pair goes on: nothing decided, and launches and time left."""
        if evidence.given_up or evidence.exhausted:
            return False
        if evidence.owes_warm_compilations:
            return True
        latency = hypotheses.get((evidence.pair.key, LATENCY))
        if latency is None:
            return True
        levels, moderated = latency.levels, latency.moderated
        if is_unchanged(moderated, levels):
            return False
        changed = bool(is_harm(moderated, levels) or is_gain(moderated, levels))
        return not (changed and latency.survives)

    def _suspected(self, evidence: PairEvidence, hypotheses: Hypotheses) -> bool:
        """Whether a step time of the pair is suspected of harm and has to repeat."""
        return any(
            self._has_to_repeat(evidence, hypotheses[evidence.pair.key, metric])
            for metric in (LATENCY, WALL)
            if (evidence.pair.key, metric) in hypotheses
        )

    def _has_to_repeat(self, evidence: PairEvidence, finding: Finding) -> bool:
        """A run of one pair needs no fresh launches: the error of one hypothesis is that of its own test."""
        return (len(self._asked()) or len(self._evidence)) > 1 and finding.is_suspicion(evidence)


def _adjusted(findings: Hypotheses) -> Hypotheses:
    """``findings`` with the p-values of Benjamini and Hochberg over all of them."""
    if not findings:
        return {}
    adjusted = stats.false_discovery_control([each.p for each in findings.values()])
    return {
        key: replace(each, p_adjusted=float(p))
        for (key, each), p in zip(findings.items(), adjusted, strict=True)
    }
