"""Is every night there that must be? What a dropped schedule, a dead runner or a lost artifact leaves behind.

Read from the store alone, from the plans that the intake kept and what it wrote beside each run, so that the
watch does not trust the night that it watches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from enum import Enum
from pathlib import Path

from torchgauge.counted import counted
from torchgauge.records import INCOMPLETE
from torchgauge.results import document
from torchgauge.results.origin import read_provenance
from torchgauge.results.store import Store
from torchgauge.workflows.campaign import CampaignPlan, no_case
from torchgauge.workflows.nights import due_night
from torchgauge.workflows.planned_nights import UNASKED, EndedJobs, PlannedNight, planned_nights

NOTHING = "no result: the nightly run never started, was cancelled, or still runs"


class NightState(str, Enum):
    """What a store holds of a night."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    MISSING = "missing"


@dataclass(frozen=True)
class ShardSeen:
    """A run of a campaign: which shard of which pool it is, and how many of its cases say nothing.

    ``plan`` is the digest of the plan that it was made with.
    """

    pool: str
    shard: int
    of: int
    attempt: int
    run_id: str
    rows: int
    silent: int
    plan: str = ""


@dataclass(frozen=True)
class NightReport:
    """A night: its best campaign, and every gap in words."""

    night: str
    state: NightState
    campaign_id: str
    runs: int
    gaps: tuple[str, ...]


@dataclass(frozen=True)
class WatchReport:
    """The nights that are due at ``now``, newest first; ``expect_by`` is a time of day in UTC."""

    now: str
    expect_by: str
    nights: tuple[NightReport, ...]

    @property
    def alarm(self) -> bool:
        """Whether any night is missing or incomplete."""
        return any(each.state is not NightState.COMPLETE for each in self.nights)


@dataclass(frozen=True)
class Expectations:
    """When a night begins and when its results must be there (UTC), and the pools that it must have."""

    expect_by: time
    begins: time = time(0, 0, tzinfo=timezone.utc)
    pools: tuple[str, ...] = ()


def watch(store: Path | str, expected: Expectations, now: datetime, nights: int = 1) -> WatchReport:
    """The last ``nights`` nights that are due at ``now``; a store that is not there holds none of them."""
    newest = due_night(now, expected.expect_by, expected.begins)
    days = [newest - timedelta(days=back) for back in range(nights)]
    there = Store.open(store) if Path(store, "store.json").is_file() else None
    seen = seen_campaigns(there, days[-1]) if there else {}
    plans = planned_nights(there) if there else []
    reports = tuple(report_of(day, seen, plans, expected.pools) for day in days)
    return WatchReport(now.isoformat(timespec="minutes"), f"{expected.expect_by:%H:%M}", reports)


def seen_campaigns(store: Store, since: date) -> dict[str, list[ShardSeen]]:
    """Campaigns with a run since the day ``since``, each with the newest attempt at every shard."""
    newest: dict[str, dict[tuple[str, int, str], ShardSeen]] = defaultdict(dict)
    for run_id in store.run_ids():
        if run_id < f"{since:%Y%m%d}":  # an id begins with its time
            continue
        said = read_provenance(store, run_id)
        if not said.get("campaign_id"):
            continue
        counts = store.info(run_id).counts
        shard = ShardSeen(
            pool=str(said["pool"]),
            shard=int(said["shard"]),
            of=int(said["of"]),
            attempt=int(said["attempt"]),
            run_id=run_id,
            rows=sum(counts.values()),
            silent=sum(counts.get(status.value, 0) for status in INCOMPLETE),
            plan=str(said.get("campaign_digest", "")),
        )
        shards = newest[str(said["campaign_id"])]
        place = shard.pool, shard.shard, shard.plan
        known = shards.get(place)
        if known is None or shard.attempt > known.attempt:
            shards[place] = shard
    return {campaign: list(shards.values()) for campaign, shards in newest.items()}


def report_of(
    night: date,
    seen: Mapping[str, Sequence[ShardSeen]],
    plans: Sequence[PlannedNight] = (),
    pools: Collection[str] = (),
) -> NightReport:
    """What ``seen`` holds of ``night``; of several campaigns the one with the fewest gaps counts.

    ``plans`` are those that the store keeps, ``pools`` those that every night must have.
    """
    begin = f"{night.isoformat()}-"
    candidates = []
    for campaign in sorted({*seen, *(plan.campaign_id for plan in plans)}):
        if campaign.startswith(begin):
            shards = seen.get(campaign, ())
            own = [plan for plan in plans if plan.campaign_id == campaign]
            gaps = tuple(gap for held in pool_gaps(shards, own, pools).values() for gap in held)
            gaps = gaps or _ended_otherwise(own)
            candidates.append((len(gaps), campaign, gaps, len(shards)))
    if not candidates:
        return NightReport(night.isoformat(), NightState.MISSING, "", 0, (NOTHING,))
    _, campaign, gaps, runs = min(candidates)
    state = (NightState.INCOMPLETE if runs else NightState.MISSING) if gaps else NightState.COMPLETE
    return NightReport(night.isoformat(), state, campaign, runs, gaps)


def is_complete(store: Path | str | None, plan: CampaignPlan) -> bool:
    """Whether ``store`` holds every shard of ``plan`` already, with rows that all say something."""
    if store is None or not Path(store, "store.json").is_file():
        return False
    opened = Store.open(store)
    shards = seen_campaigns(opened, date.fromisoformat(plan.night)).get(plan.campaign_id, [])
    plans = [each for each in planned_nights(opened) if each.campaign_id == plan.campaign_id]
    gaps = pool_gaps(shards, plans, [pool.name for pool in plan.pools])
    return bool(shards) and not any(gaps[pool.name] for pool in plan.pools)


def pool_gaps(
    shards: Sequence[ShardSeen], plans: Sequence[PlannedNight], pools: Collection[str]
) -> dict[str, list[str]]:
    """Pool to what a campaign lacks of it, in words; ``pools`` are those that it must have.

    A campaign that was planned twice has what any of its plans is whole in, pool by pool: two halves of
    different plans are no whole, since they are of different cases.
    """
    by_pool: dict[str, list[ShardSeen]] = {pool: [] for pool in pools}
    for plan in plans:
        by_pool |= {pool: [] for pool in plan.told_of}
    for shard in shards:
        by_pool.setdefault(shard.pool, []).append(shard)
    return {pool: _gaps_of(pool, held, plans) for pool, held in sorted(by_pool.items())}


def watch_lines(report: WatchReport) -> list[str]:
    """``report`` in words, for a terminal."""
    return document.terminal("workflows/watch", report=report).splitlines()


def watch_markdown(report: WatchReport) -> str:
    """``report`` as Markdown, for the summary of a step."""
    return document.markdown("workflows/watch", report=report)


def _ended_otherwise(plans: Sequence[PlannedNight]) -> tuple[str, ...]:
    """Why a night of which nothing is missing is not whole: its jobs, as a whole, did not end well."""
    if not plans or not all(plan.ended.failed for plan in plans):
        return ()
    how = plans[-1].ended.together
    return (f"the measuring jobs ended with {how}, although each submitted a result set",)


def _gaps_of(pool: str, held: Sequence[ShardSeen], plans: Sequence[PlannedNight]) -> list[str]:
    planned = [(plan, found) for plan in plans if (found := plan.pool(pool)) is not None]
    if planned:
        ways = (
            _shard_gaps(pool, [run for run in held if run.plan == plan.digest], len(at.cases), plan.ended)
            for plan, at in planned
        )
        return min(ways, key=len)
    if held:  # of a store that kept no plan yet
        return _shard_gaps(pool, held, max(shard.of for shard in held), UNASKED)
    if any(pool in plan.empty for plan in plans):
        return [no_case(pool)]
    left_out = any(pool in plan.left_out for plan in plans)
    return [f"pool {pool}: " + ("left out of the plan on request" if left_out else "no result")]


def _shard_gaps(pool: str, held: Sequence[ShardSeen], of: int, ended: EndedJobs) -> list[str]:
    there = {shard.shard for shard in held}
    gaps = []
    for number in range(1, of + 1):
        told = [] if number in there else ["no result"]
        how = ended.of(pool, number, of)
        told += [how if told else f"{how}, although a result set was submitted"] if how else []
        gaps += [f"pool {pool}, shard {number} of {of}: {', '.join(told)}"] if told else []
    return gaps + [
        f"{_name(shard, of)}: {shard.silent} of {counted(shard.rows, 'case')} were not measured"
        for shard in sorted(held, key=lambda shard: shard.shard)
        if shard.silent
    ]


def _name(shard: ShardSeen, of: int) -> str:
    return f"pool {shard.pool}, shard {shard.shard} of {of}"
