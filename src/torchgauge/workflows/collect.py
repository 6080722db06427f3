"""A night's artifacts as a whole: what came, what did not, what was refused, and whether that is complete."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchgauge.clock import SYSTEM_CLOCK, Clock
from torchgauge.counted import counted
from torchgauge.errors import UsageError
from torchgauge.records import INCOMPLETE
from torchgauge.results.store import Store
from torchgauge.workflows.campaign import CampaignPlan, no_case
from torchgauge.workflows.ingest.counted_once import whole_pools
from torchgauge.workflows.ingest.intake import (
    Candidate,
    Reception,
    Refused,
    Taken,
    examine,
    keep_superseded,
    only_intake,
    record_refusals,
    retire_superseded,
    take,
)
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.ingest.validator import Expected
from torchgauge.workflows.planned_nights import UNASKED, EndedJobs, keep_plan
from torchgauge.workflows.result_set import MANIFEST, artifact_name

COLLECTION_SCHEMA = 1
"""Version of ``collect.json``."""
MOST_REFUSALS = 300
"""Refusals of one collection that are listed and kept: more than a night has jobs."""


@dataclass(frozen=True)
class MissingShard:
    """A shard of the campaign of which nothing valid came, and how many cases that leaves without a row."""

    pool: str
    shard: int
    of: int
    cases: int


@dataclass(frozen=True)
class Replaced:
    """An attempt that a later one replaced, or a second copy of one."""

    artifact: str
    run_id: str
    pool: str
    shard: int
    attempt: int
    by: str
    why: str


@dataclass(frozen=True)
class Collection:
    """What became of a campaign; ``planned`` and ``recorded`` count cases, ``counts`` rows by status."""

    campaign_id: str
    campaign_digest: str
    state: str
    planned: int
    recorded: int
    counts: dict[str, int]
    runs: tuple[Taken, ...]
    missing: tuple[MissingShard, ...]
    rejected: tuple[Refused, ...]
    duplicates: tuple[Replaced, ...]
    gaps: tuple[str, ...]
    schema: int = COLLECTION_SCHEMA

    @property
    def complete(self) -> bool:
        """Whether every planned case has a row that says something."""
        return self.state == "complete"


def artifacts_in(folder: Path) -> list[Path]:
    """Everything in ``folder``, in order of names; raises :class:`UsageError` where it is no folder.

    Where a single artifact came, GitHub's own action unpacks it into ``folder`` itself.
    """
    if not folder.is_dir():
        raise UsageError(
            f"{folder} is not a folder", hint="download the artifacts of the run into this folder"
        )
    if (folder / MANIFEST).is_file():
        return [folder]
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def collect(
    folder: Path,
    expected: Expected,
    store: Store,
    *,
    ended: EndedJobs = UNASKED,
    clock: Clock = SYSTEM_CLOCK,
) -> Collection:
    """Import all valid artifacts in ``folder`` and say what the campaign lacks.

    Every artifact is looked at before any is imported. Of several attempts at a shard the newest valid one
    is imported, the others are kept as superseded. How its jobs ``ended`` is kept for the watch.
    """
    refused: list[Refused] = []
    attempts: dict[tuple[str, int], list[Candidate]] = defaultdict(list)
    for path in artifacts_in(folder):
        found = examine(path, expected, named=path != folder)
        if isinstance(found, Refused):
            refused.append(found)
        else:
            attempts[found.valid.pool.name, found.valid.shard.index].append(found)
    taken: list[Taken] = []
    replaced: list[Replaced] = []
    with only_intake(store) as held:
        keep_plan(store, expected.campaign, ended)
        valid = [each.valid for candidates in attempts.values() for each in candidates]
        reception = Reception(held, whole_pools(expected.campaign, valid, held))
        for candidates in attempts.values():
            run = _newest(candidates, store, reception, refused, replaced, clock=clock)
            if run is not None:
                taken.append(run)
        retire_superseded(store, taken, clock)
        refused = _listed(refused, expected.campaign)
        record_refusals(store, refused, clock)
    whole = _summary(expected, taken, refused, replaced)
    gaps = tuple(_unlike(whole, expected, ended))
    return replace(whole, state="incomplete", gaps=(*whole.gaps, *gaps)) if gaps else whole


def _listed(refused: list[Refused], campaign: CampaignPlan) -> list[Refused]:
    """``refused`` without end cut to what is listed: artifacts with the name of a job before any others."""
    if len(refused) <= MOST_REFUSALS:
        return refused
    names = tuple(
        artifact_name(campaign.campaign_id, pool.name, shard.index, 0).removesuffix("0")
        for pool in campaign.pools
        for shard in pool.shards
    )
    ours = sorted(refused, key=lambda each: not each.artifact.startswith(names))
    left = len(refused) - MOST_REFUSALS
    more = counted(left, "artifact was", "artifacts were")
    words = f"{more} refused in addition to the {MOST_REFUSALS} listed"
    return [*ours[:MOST_REFUSALS], Refused(f"{left} others", Reason.TOO_MANY_FILES, words)]


def _unlike(whole: Collection, expected: Expected, ended: EndedJobs) -> Iterable[str]:
    """Where the jobs ended in another way than what they submitted says."""
    there = {(run.pool, run.shard) for run in whole.runs}
    told = [
        (f"pool {pool.name}, shard {shard.index} of {shard.of}: {how}", (pool.name, shard.index) in there)
        for pool in expected.campaign.pools
        for shard in pool.shards
        if (how := ended.of(pool.name, shard.index, shard.of))
    ]
    yield from (f"{words}, although a result set was submitted" if came else words for words, came in told)
    if ended.failed and not (told or whole.missing):
        how = ended.together
        yield f"the measuring jobs ended with {how}, although each submitted a result set: check the run"


def _newest(
    candidates: Sequence[Candidate],
    store: Store,
    reception: Reception,
    refused: list[Refused],
    replaced: list[Replaced],
    *,
    clock: Clock,
) -> Taken | None:
    """Import the newest attempt that can be; what is refused and replaced on the way is noted."""
    by_attempt: dict[int, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_attempt[candidate.valid.manifest.attempt].append(candidate)
    chosen: Taken | None = None
    for attempt in sorted(by_attempt, reverse=True):
        same = by_attempt[attempt]
        if len({each.valid.digest for each in same}) > 1:
            words = f"{counted(len(same), 'set', 'different sets')} have the attempt number {attempt}"
            refused += [Refused(each.artifact, Reason.AMBIGUOUS, words) for each in same]
            continue
        replaced += [_replaced(each, same[0].artifact, "an equal copy") for each in same[1:]]
        if chosen is not None:
            replaced.append(_replaced(same[0], chosen.artifact, "a later attempt"))
            keep_superseded(store, same[0], chosen.run_id, clock)
            continue
        try:
            chosen = take(store, same[0], reception, clock)
        except RefusedSetError as error:
            refused.append(Refused(same[0].artifact, error.reason, error.detail))
    return chosen


def _replaced(candidate: Candidate, by: str, why: str) -> Replaced:
    manifest = candidate.valid.manifest
    return Replaced(
        candidate.artifact, manifest.run_id, manifest.pool, manifest.shard, manifest.attempt, by, why
    )


def _summary(
    expected: Expected, taken: Iterable[Taken], refused: Sequence[Refused], replaced: Sequence[Replaced]
) -> Collection:
    campaign = expected.campaign
    runs = tuple(sorted(taken, key=lambda run: (run.pool, run.shard)))
    there = {(run.pool, run.shard) for run in runs}
    missing = tuple(
        MissingShard(pool.name, shard.index, shard.of, len(shard.cases))
        for pool in campaign.pools
        for shard in pool.shards
        if (pool.name, shard.index) not in there
    )
    counts: Counter[str] = Counter()
    for run in runs:
        counts.update(run.counts)
    gaps = (*_gaps(missing, runs), *map(no_case, campaign.empty))
    return Collection(
        campaign_id=campaign.campaign_id,
        campaign_digest=campaign.digest,
        state="incomplete" if gaps else "complete",
        planned=sum(len(shard.cases) for pool in campaign.pools for shard in pool.shards),
        recorded=sum(counts.values()),
        counts=dict(sorted(counts.items())),
        runs=runs,
        missing=missing,
        rejected=tuple(refused),
        duplicates=tuple(replaced),
        gaps=gaps,
    )


def _gaps(missing: Iterable[MissingShard], runs: Iterable[Taken]) -> Iterable[str]:
    """Why a campaign is incomplete, in words: shards that did not come, and cases that say nothing."""
    for each in missing:
        yield (
            f"pool {each.pool}, shard {each.shard} of {each.of}: "
            f"no valid result set ({counted(each.cases, 'case')})"
        )
    for run in runs:
        silent = {status.value: run.counts.get(status.value, 0) for status in INCOMPLETE}
        said = ", ".join(f"{count} {name}" for name, count in sorted(silent.items()) if count)
        if said:
            yield f"pool {run.pool}, shard {run.shard}: {said} ({run.state})"
