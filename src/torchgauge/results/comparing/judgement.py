"""The judge of an A/B run: what is to be measured next, and what is known by now.

The rule in prose is ``docs/comparison.md``. The judge sees launches only and starts nothing; it keeps no
state but them, so a resumed run that feeds it the launches of its journal goes on where it stood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from scipy import stats

from torchgauge.counted import counted
from torchgauge.records import METRICS
from torchgauge.records.comparison import Action, Launch, MetricVerdict, Pair
from torchgauge.results.comparing.blank_verdict import SUITE
from torchgauge.results.comparing.launch_samples import LaunchSamples
from torchgauge.results.comparing.noise import NoiseHistory
from torchgauge.results.comparing.other_metrics import judge_other_metrics
from torchgauge.results.comparing.pair_evidence import LATENCY, TAIL, TIMED, WALL, PairEvidence
from torchgauge.results.comparing.pair_verdict import (
    CONFIRMING,
    HINT_LAUNCHES,
    HINTED,
    Finding,
    Repetition,
    timing_verdict,
    untimed_verdict,
)
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.comparing.pooled_noise import pooled_prior
from torchgauge.results.comparing.sequential import spent_p
from torchgauge.results.comparing.sized_change import MEMORY, SizedRule
from torchgauge.results.comparing.status_verdict import comparable, with_status
from torchgauge.results.comparing.suite_level import asks_for_more, suite_verdict

DEFAULT_ABBA_BLOCKS = 80
"""ABBA blocks per launch. More of them cannot remove what a launch adds, and fewer make launches poorer than
their start costs; ``benchmarks/regression_replay.py`` measured it.
"""

KNOWN = (*TIMED, MEMORY)
"""Metrics that history may know the noise of."""

Hypotheses = dict[tuple[str, str], Finding]


@dataclass(frozen=True)
class Wanted:
    """What the next launch should measure of one pair; whether it ``confirms`` a suspicion."""

    pair_key: str
    confirms: bool
    abba_blocks: int


class Judge:
    """Takes launches in any number, says which pairs need another one, and gives the verdicts."""

    def __init__(
        self,
        policy: Policy,
        history: NoiseHistory,
        pairs: Sequence[Pair],
        max_launches: int = 12,
        *,
        abba_blocks: int = DEFAULT_ABBA_BLOCKS,
        other_code: bool = False,
        repeat: bool = False,
    ) -> None:
        """Judge by ``policy``; with ``repeat`` every change needs fresh launches, of one pair alone, too."""
        self._policy, self._abba_blocks, self._repeat = policy, abba_blocks, repeat
        self._evidence = {
            pair.key: PairEvidence(
                pair,
                policy.rule(pair, LATENCY),
                max_launches,
                {each: prior for each in KNOWN if (prior := history.prior(pair, each)) is not None},
                quarantine=history.quarantined(pair),
                other_code=other_code,
            )
            for pair in pairs
        }

    def add(self, launch: Launch) -> None:
        """Take one launch of one pair; raises ``KeyError`` for a pair that is not of this run."""
        self._evidence[launch.pair_key].add(launch)

    def wanted(self) -> tuple[Wanted, ...]:
        """What the next launch should measure; empty where nothing more can or need be known.

        Fresh launches come when no pair needs first ones, and the suite needs none of them either: only then
        it is known what is suspected. Where nothing of what is asked for can be compared, controls end, too.
        """
        if self.nothing_to_compare():
            return ()
        hypotheses = self._hypotheses()
        first = [each for each in self._evidence.values() if self._is_open(each, hypotheses)]
        whole = None if first else self._whole()
        if whole is not None and asks_for_more(whole):
            first = [each for each in self._asked() if each.may_go_on(whole.launches)]
        fresh = [
            each
            for each in (() if first else self._evidence.values())
            if each.needs_fresh(self._fresh_launches(each, hypotheses))
        ]
        return tuple(
            Wanted(each.pair.key, confirms=not first, abba_blocks=self._abba_blocks)
            for each in first or fresh
        )

    def nothing_to_compare(self) -> str:
        """Why no pair that is asked for can be compared any more; empty where one can, or may yet."""
        asked = self._asked()
        if not asked or not all(each.says_nothing for each in asked):
            return ""
        first = asked[0]
        others = f", nor can {counted(len(asked) - 1, 'other pair')}" if len(asked) > 1 else ""
        return f"{first.pair.id} cannot be compared{others}: {first.mismatch or first.unusable[-1]}"

    def interim(self, pair_key: str) -> MetricVerdict | None:
        """The latency of the pair as it looks now and by itself, for progress; None before three launches."""
        evidence = self._evidence[pair_key]
        self._pool()
        finding = self._finding(evidence, LATENCY, len(evidence.first.timings))
        return None if finding is None else timing_verdict(evidence, finding)

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
                memory_prior=evidence.priors.get(MEMORY),
            )
            timed = [hypotheses[key, metric] for metric in TIMED if (key, metric) in hypotheses]
            found += [
                timing_verdict(evidence, each, self._repetition(evidence, each, hypotheses)) for each in timed
            ]
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
        the pairs that are asked for any power, and is judged by the same rule nevertheless. Nor must slow
        steps, which are adjusted among themselves.
        """
        self._pool()
        found: Hypotheses = {}
        for key, evidence in self._evidence.items():
            if evidence.mismatch:
                continue
            usable = len(evidence.first.timings) if final or evidence.exhausted else evidence.look
            for metric in TIMED:
                finding = self._finding(evidence, metric, usable)
                if finding is not None:
                    found[key, metric] = finding
        controls = {key for key, each in self._evidence.items() if each.pair.control}
        asked = {each: finding for each, finding in found.items() if each[0] not in controls}
        return {**_adjusted(found), **_adjusted(asked)}

    def _pool(self) -> None:
        """Tell every pair what the launches of all pairs say of noise, for those that have no history."""
        found = {
            metric: pooled_prior(each.first.logs(metric) for each in self._evidence.values())
            for metric in (LATENCY, WALL)
        }
        pooled = {metric: prior for metric, prior in found.items() if prior is not None}
        for each in self._evidence.values():
            each.pooled = pooled

    def _finding(self, evidence: PairEvidence, metric: str, usable: int) -> Finding | None:
        """One step time over the first ``usable`` launches, not adjusted; None below three of them."""
        moderated = evidence.evidence(usable, metric)
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
        if evidence.owes_warm_compilations or self._owes_memory(evidence):
            return True
        latency = hypotheses.get((evidence.pair.key, LATENCY))
        if latency is None:
            return True
        tail = hypotheses.get((evidence.pair.key, TAIL))
        if tail is not None and tail.looks_heavier and not (tail.survives and tail.shows_harm(evidence)):
            return True
        change = latency.change
        return not (change.same or ((change.more or change.less) and latency.survives))

    def _owes_memory(self, evidence: PairEvidence) -> bool:
        """Whether a launch differs in memory, and there are too few to judge that by; controls never ask."""
        rule = self._policy.rule(evidence.pair, MEMORY)
        if evidence.pair.control or rule.action is Action.IGNORE:
            return False
        tolerance = rule.tolerated(quarantined=bool(evidence.quarantine))
        matters = SizedRule(METRICS[MEMORY], tolerance, rule.floor, evidence.priors.get(MEMORY))
        return matters.owes(LaunchSamples.of(MEMORY, filter(comparable, evidence.launches)))

    def _fresh_launches(self, evidence: PairEvidence, hypotheses: Hypotheses) -> int:
        """Fresh launches that the step times of the pair ask for; 0 where nothing has to repeat."""
        asked = (
            self._repetition(evidence, hypotheses[evidence.pair.key, metric], hypotheses)
            for metric in TIMED
            if (evidence.pair.key, metric) in hypotheses
        )
        return max((each.launches for each in asked if each is not None), default=0)

    def _repetition(
        self, evidence: PairEvidence, finding: Finding, hypotheses: Hypotheses
    ) -> Repetition | None:
        """Return what has to repeat; a run of one pair needs no fresh launches except with ``repeat``.

        Fresh launches agree with a suspicion, which survived among all; a hint did not, so that its fresh
        launches have to show it by themselves, among all hints of the run (Bonferroni's inequality).
        """
        if (len(self._asked()) or len(self._evidence)) < 2 and not self._repeat:
            return None
        if finding.is_suspicion(evidence) or (self._repeat and finding.shows_gain):
            return Repetition(evidence.confirmations, CONFIRMING)
        if not finding.is_hint(evidence):
            return None
        hints = sum(
            each.is_hint(self._evidence[key])
            for (key, _), each in hypotheses.items()
            if not self._evidence[key].pair.control
        )
        return Repetition(max(HINT_LAUNCHES, evidence.confirmations), HINTED / max(1, hints))


def _adjusted(findings: Hypotheses) -> Hypotheses:
    """``findings`` with the p-values of Benjamini and Hochberg over all of them, slow steps apart."""
    adjusted: Hypotheses = {}
    for apart in (False, True):
        family = {key: each for key, each in findings.items() if (each.metric == TAIL) is apart}
        if family:
            ps = stats.false_discovery_control([each.p for each in family.values()])
            adjusted |= {
                key: replace(family[key], p_adjusted=float(p)) for key, p in zip(family, ps, strict=True)
            }
    return adjusted
