"""One row for each planned case and night: which runs a set replaces, and beside which it may not come in.

Two jobs of one plan share no case, so of each shard the newest attempt counts. A night that was planned twice
may be cut differently: there a pool of the newer plan replaces that of the older one, but only as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from torchgauge.counted import counted
from torchgauge.results.dataset import read_run
from torchgauge.results.store import Store
from torchgauge.workflows.campaign import CampaignPlan
from torchgauge.workflows.ingest.provenance import HeldRun
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.ingest.validator import ValidSet


def replaced_by(store: Store, held: Iterable[HeldRun], valid: ValidSet, whole: Collection[str]) -> list[str]:
    """The runs of ``held`` whose place in the tables ``valid`` takes.

    ``whole`` are the pools of its plan of which every shard is there. Raises :class:`RefusedSetError` where a
    run that stays has its cases.
    """
    found, manifest = [], valid.manifest
    for each in held:
        if (each.campaign_id, each.pool) != (manifest.campaign_id, manifest.pool):
            continue
        if each.run_id == manifest.run_id:
            continue
        if each.digest == manifest.campaign_digest:
            if each.shard == manifest.shard:
                _check_attempt(each, manifest.attempt)
                found.append(each.run_id)
        elif each.planned_at < valid.planned_at and manifest.pool in whole:
            found.append(each.run_id)
        elif shared := len(_cases(store, each.run_id) & set(valid.shard.cases)):
            told = counted(shared, "case has", "cases have")
            words = f"{told} results from another plan of this campaign: run {each.run_id}"
            raise RefusedSetError(Reason.COUNTED, words)
    return found


def whole_pools(campaign: CampaignPlan, sets: Iterable[ValidSet], held: Iterable[HeldRun]) -> frozenset[str]:
    """The pools of ``campaign`` of which every shard is in ``sets`` or, by the same plan, in ``held``."""
    there = {(each.manifest.pool, each.manifest.shard) for each in sets}
    there |= {(each.pool, each.shard) for each in held if each.digest == campaign.digest}
    return frozenset(
        pool.name
        for pool in campaign.pools
        if all((pool.name, shard.index) in there for shard in pool.shards)
    )


def _check_attempt(there: HeldRun, attempt: int) -> None:
    if there.attempt > attempt:
        words = f"the store already contains the later attempt {there.attempt} at this shard: {there.run_id}"
        raise RefusedSetError(Reason.SUPERSEDED, words)
    if there.attempt == attempt:
        raise RefusedSetError(Reason.RUN_EXISTS, f"the store already contains this attempt as {there.run_id}")


def _cases(store: Store, run_id: str) -> set[str]:
    return set(read_run(store, "results", run_id, ["case_id"]).column("case_id").to_pylist())
