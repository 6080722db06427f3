"""Where the runs of a store came from: ``provenance.json`` beside each run, and what follows from all."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from torchgauge.results.origin import read_provenance
from torchgauge.results.store import Store

REJECTED, SUPERSEDED, TOMBSTONES = "rejected", "superseded", "tombstones"


@dataclass(frozen=True)
class HeldRun:
    """A run that a campaign brought: its attempt at a shard, by the plan with ``digest``.

    ``planned_at`` is in seconds since the epoch (UTC); 0 where an older torchgauge took the run.
    """

    run_id: str
    campaign_id: str
    digest: str
    planned_at: float
    pool: str
    shard: int
    attempt: int
    supersedes: tuple[str, ...] = ()


def held_runs(store: Store) -> list[HeldRun]:
    """Return every run of ``store`` that a campaign brought, in order of their ids."""
    found = []
    for run_id in store.run_ids():
        with suppress(ValueError, TypeError, LookupError, OverflowError):  # not written by a collection
            found.append(held_run(run_id, read_provenance(store, run_id)))
    return found


def held_run(run_id: str, said: Mapping[str, Any]) -> HeldRun:
    """What ``said``, the provenance of ``run_id``, says of its place in a campaign."""
    return HeldRun(
        run_id=run_id,
        campaign_id=str(said.get("campaign_id", "")),
        digest=str(said.get("campaign_digest", "")),
        planned_at=float(said.get("planned_at", 0.0)),
        pool=str(said.get("pool", "")),
        shard=int(said.get("shard", 0)),
        attempt=int(said["attempt"]),
        supersedes=tuple(map(str, said.get("supersedes", ()))),
    )
