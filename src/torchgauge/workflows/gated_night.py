"""From the files of a campaign to what its night found: the one way in for the gate and for the issues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from torchgauge.counted import counted
from torchgauge.errors import DataFileError
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.dataset import row_count
from torchgauge.results.journal import Kind, read
from torchgauge.results.json_file import read_record
from torchgauge.results.store import Store
from torchgauge.workflows.campaign import CampaignPlan, no_case
from torchgauge.workflows.collect import COLLECTION_SCHEMA, Collection
from torchgauge.workflows.night_findings import AbsentPool, NightFindings, NightOf, night_findings

UNPLANNED = (
    "torchgauge.yml lists this pool but the plan does not, and nobody excluded it; "
    "plan the nightly campaign again"
)


def read_collection(path: Path | str) -> Collection:
    """The collection in ``collect.json`` at ``path``; raises :class:`DataFileError`."""
    hint = "torchgauge ci collect writes this file"
    found = read_record(Collection, path, hint)
    if found.schema != COLLECTION_SCHEMA:
        raise DataFileError(str(path), f"does not have schema version {COLLECTION_SCHEMA}", hint=hint)
    return found


def gated_night(
    store: Store,
    campaign: CampaignPlan,
    collect_file: Path | str,
    policy: Policy | None = None,
    configured: Iterable[str] = (),
) -> NightFindings:
    """What ``campaign`` found, of which ``collect_file`` says what came.

    ``configured`` are the pools of torchgauge.yml, of each of which the plan must say what becomes. Raises
    :class:`DataFileError` where the two files are of different campaigns.
    """
    collected = read_collection(collect_file)
    if collected.campaign_digest != campaign.digest:
        raise DataFileError(
            str(collect_file), "is from another campaign", hint=f"collect the sets of {campaign.campaign_id}"
        )
    gaps = [*collected.gaps, *_fewer(store, collected)]
    if not collected.complete and not gaps:
        gaps.append(f"the campaign is {collected.state}")
    if collected.planned > collected.recorded and not gaps:
        gaps.append(
            f"{counted(collected.planned - collected.recorded, 'planned case has', 'planned cases have')} "
            "no result"
        )
    unplanned = [pool for pool in configured if pool not in campaign.told_of]
    gaps += [f"pool {pool}: {UNPLANNED}" for pool in unplanned]
    of = NightOf(
        campaign.campaign_id,
        campaign.night,
        campaign.created_at,
        planned={
            pool.name: frozenset(case for shard in pool.shards for case in shard.cases)
            for pool in campaign.pools
        },
        left_out=campaign.left_out,
        absent=(*_absent(campaign, collected), *(AbsentPool(pool, UNPLANNED) for pool in unplanned)),
        skipped=frozenset(case for pool in campaign.pools for shard in pool.shards for case in shard.skipped),
        rejected=tuple(f"{each.artifact}: {each.reason.value}" for each in collected.rejected),
    )
    return night_findings(store, [run.run_id for run in collected.runs], of, gaps, policy)


def _fewer(store: Store, collected: Collection) -> Iterator[str]:
    """The runs that have fewer rows in ``store`` than the collection counted: something was lost since."""
    for run in collected.runs:
        recorded = sum(run.counts.values())
        found = min(_rows_of_table(store, run.run_id), _rows_of_journal(store, run.run_id))
        if found < recorded:
            results = counted(recorded, "result")
            yield f"the store has only {found} of {results} collected from run {run.run_id}"


def _rows_of_table(store: Store, run_id: str) -> int:
    return row_count(store, "results", run_id) if store.has_tables(run_id) else 0


def _rows_of_journal(store: Store, run_id: str) -> int:
    journal = store.path / "runs" / run_id / "journal.jsonl"
    if not journal.is_file():
        return 0
    return len({record.case_key for record in read(journal) if record.kind is Kind.RESULT})


def _absent(campaign: CampaignPlan, collected: Collection) -> Iterator[AbsentPool]:
    """The pools of which a shard, or every case, is missing."""
    for pool in campaign.pools:
        gone = [each for each in collected.missing if each.pool == pool.name]
        if gone:
            which = ", ".join(str(each.shard) for each in gone)
            cases = sum(each.cases for each in gone)
            told = f"no valid result set for {len(gone)} of {counted(len(pool.shards), 'shard')} ({which})"
            yield AbsentPool(
                pool.name, f"{told}, so {counted(cases, 'planned case has', 'planned cases have')} no result"
            )
    for name in campaign.empty:
        yield AbsentPool(name, no_case(name))
