"""The judge of a comparison: its policy, and the noise history of the class of machine that it runs on."""

from __future__ import annotations

from collections.abc import Sequence

from torchgauge.clock import SYSTEM_CLOCK, utc
from torchgauge.harness.ab.comparison import Comparison
from torchgauge.harness.ab.run_comparison import JudgeOf, Judging
from torchgauge.records import Environment
from torchgauge.results.comparing.judgement import Judge
from torchgauge.results.comparing.noise import noise_of
from torchgauge.results.comparing.policy import Policy, policy_of


def read_policy(path: str) -> Policy:
    """The policy in the file ``path``, or the built-in one where that is empty.

    Raises :class:`DataFileError`.
    """
    return policy_of(path or None, utc(SYSTEM_CLOCK.now()).date())


def judge_for(comparison: Comparison, policy: Policy) -> JudgeOf:
    """What makes the judge of ``comparison`` as soon as the environments are known."""
    plan = comparison.plan

    def judge_of(environments: Sequence[Environment]) -> Judging:
        history = noise_of(comparison.store, environments, comparison.clock.now())
        revisions = bool(plan.base.revision or plan.head.revision)
        return Judge(policy, history, plan.pairs, plan.max_launches, other_code=revisions)

    return judge_of
