"""What a night must measure again: its open suspicions, on the pool that measured them, build against build.

A suspicion is open until a machine has answered, however many nights that takes. What was not confirmable
is tried again: the build that was not there, or the hour that was too busy, may be another tomorrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.harness.ab.confirmation import open_suspicions, ran_one_build
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.origin import read_provenance
from torchgauge.results.store import Store
from torchgauge.results.trends.trend import Suspicion, trend
from torchgauge.workflows.campaign import CampaignPlan
from torchgauge.workflows.config import Config, Pool
from torchgauge.workflows.night_changes import matters, night_filters, rule_of, standing
from torchgauge.workflows.planning import BESIDE_STEP_MINUTES

MOST_LEGS = 8
"""Jobs that one night dispatches at most; what is left over stays open."""
MOST_S = 7_200.0
"""Seconds that one of them may measure; a pool whose jobs may take less gives it less."""
BUILDS_MINUTES = 40
"""What its step may take beside that: to make two builds, to finish the comparison that runs."""
PREFIX = "confirmed-"


@dataclass(frozen=True)
class ConfirmLeg:
    """One job of the matrix: the last good build against the suspect one on one pool; time in minutes.

    ``good_sha`` and ``suspect_sha`` are the commits that the two nights were planned for, empty where that
    is not known. ``cases`` counts the suspicions. ``artifact`` lacks the number of the attempt.
    """

    pool: str
    leg: int
    good_run: str
    suspect_run: str
    good_sha: str
    suspect_sha: str
    good_torch: str
    suspect_torch: str
    cases: int
    runs_on: tuple[str, ...]
    container: str
    install: str
    budget: str
    step_minutes: int
    job_minutes: int
    artifact: str


def open_in(store: Store, policy: Policy) -> list[Suspicion]:
    """Every open suspicion of ``store`` that matters to ``policy`` and still holds, the urgent ones first."""
    found: list[Suspicion] = []
    for wanted in night_filters(store):
        for series in trend(store, wanted).series:
            worse = standing(series, policy)
            rule = rule_of(series.series, policy)
            found += [
                each
                for each in series.suspicions
                if each.state.open and (each in worse if each.worse else matters(each, rule))
            ]
    return open_suspicions(found, len(found))


def pair_of(each: Suspicion) -> tuple[str, str]:
    """The two runs whose builds are compared: the last good one and the suspect."""
    return each.good.run_id, each.suspect.run_id


def pool_of(store: Store, each: Suspicion, campaign: CampaignPlan) -> str:
    """The pool that measured ``each``; where none did, the first of ``campaign`` that has its device."""
    said = str(read_provenance(store, each.suspect.run_id).get("pool", ""))
    device = each.series.device.partition(".")[0]
    return said or next((pool.name for pool in campaign.pools if pool.device == device), "")


def legs_of(
    store: Store, suspicions: Sequence[Suspicion], campaign: CampaignPlan, config: Config
) -> tuple[ConfirmLeg, ...]:
    """The jobs that measure ``suspicions``: one for each pool and pair of builds, the most urgent first.

    A pool that ``campaign`` leaves out gets none: a night that somebody starts for one pool uses no other.
    Nor is there one where both nights ran one build: that needs no machine.
    """
    there = {pool.name for pool in campaign.pools}
    grouped: dict[tuple[str, str, str], list[Suspicion]] = {}
    for each in suspicions:
        pool = pool_of(store, each, campaign)
        if pool in there and not ran_one_build(each):
            grouped.setdefault((pool, *pair_of(each)), []).append(each)
    urgent = list(grouped.items())[:MOST_LEGS]
    return tuple(
        _leg(number, members, config.pool(pool), campaign)
        for number, ((pool, _, _), members) in enumerate(urgent, start=1)
    )


def _leg(number: int, members: Sequence[Suspicion], pool: Pool, campaign: CampaignPlan) -> ConfirmLeg:
    good, suspect = members[0].good, members[0].suspect
    budget_s = min(pool.budget_s, MOST_S)
    step = -(-int(budget_s) // 60) + BUILDS_MINUTES
    return ConfirmLeg(
        pool=pool.name,
        leg=number,
        good_run=good.run_id,
        suspect_run=suspect.run_id,
        good_sha=good.commit,
        suspect_sha=suspect.commit,
        good_torch=good.torch_version.partition("+")[0],
        suspect_torch=suspect.torch_version.partition("+")[0],
        cases=len(members),
        runs_on=pool.runs_on,
        container=pool.container,
        install=pool.install,
        budget=f"{budget_s:g}s",
        step_minutes=step,
        job_minutes=step + BESIDE_STEP_MINUTES,
        artifact=f"{PREFIX}{campaign.campaign_id}-{pool.name}-{number}",
    )
