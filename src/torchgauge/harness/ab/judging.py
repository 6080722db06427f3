"""The judge of a comparison: its policy, and the noise history of the class of machine that it runs on."""

from __future__ import annotations

from collections.abc import Sequence

from torchgauge.clock import SYSTEM_CLOCK, utc
from torchgauge.harness.ab.comparison import Comparison
from torchgauge.harness.ab.run_comparison import JudgeOf, Judging
from torchgauge.records import Environment
from torchgauge.results.comparing.judgement import Judge
from torchgauge.results.comparing.noise import NoiseHistory, noise_history
from torchgauge.results.comparing.policy import Policy, policy_of
from torchgauge.results.runner_class import runner_class
from torchgauge.results.store import Store


def read_policy(path: str) -> Policy:
    """The policy in the file ``path``, or the built-in one where that is empty.

    Raises :class:`DataFileError`.
    """
    return policy_of(path or None, utc(SYSTEM_CLOCK.now()).date())


def judge_for(comparison: Comparison, policy: Policy) -> JudgeOf:
    """What makes the judge of ``comparison`` as soon as the environments are known."""
    plan = comparison.plan

    def judge_of(environments: Sequence[Environment]) -> Judging:
        history = history_of(comparison.store, environments, comparison.clock.now())
        revisions = bool(plan.base.revision or plan.head.revision)
        return Judge(policy, history, plan.pairs, plan.max_launches, other_code=revisions)

    return judge_of


def history_of(store: Store, environments: Sequence[Environment], now: float) -> NoiseHistory:
    """The noise history of every class of runner among ``environments``; case ids name their device."""
    classes = sorted({runner_class(each) for each in environments})
    found = [noise_history(store, each, now) for each in classes]
    if len(found) == 1:
        return found[0]
    return NoiseHistory(
        priors={key: value for each in found for key, value in each.priors.items()},
        quarantine={key: value for each in found for key, value in each.quarantine.items()},
        runner_class="; ".join(classes),
    )
