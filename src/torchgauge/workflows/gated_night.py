"""From the files of a campaign to what its night found: the one way in for the gate and for the issues."""

from __future__ import annotations

import json
from pathlib import Path

from torchgauge.errors import DataFileError
from torchgauge.records import RecordError, from_plain
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.store import Store
from torchgauge.workflows.campaign import read_campaign
from torchgauge.workflows.collect import COLLECTION_SCHEMA, Collection
from torchgauge.workflows.night_findings import NightFindings, NightOf, night_findings


def read_collection(path: Path | str) -> Collection:
    """The collection in ``collect.json`` at ``path``; raises :class:`DataFileError`."""
    where, hint = str(path), "torchgauge ci collect writes it"
    try:
        found: Collection = from_plain(Collection, json.loads(Path(path).read_bytes()))
    except OSError as error:
        raise DataFileError(where, f"cannot be read: {error.strerror or error}", hint=hint) from error
    except (ValueError, RecursionError, RecordError) as error:
        raise DataFileError(where, f"is no collection: {error}", hint=hint) from error
    if found.schema != COLLECTION_SCHEMA:
        raise DataFileError(where, f"is no collection of schema {COLLECTION_SCHEMA}", hint=hint)
    return found


def gated_night(
    store: Store, campaign_file: Path | str, collect_file: Path | str, policy: Policy | None = None
) -> NightFindings:
    """What the campaign in ``campaign_file`` found, of which ``collect_file`` says what came.

    Raises :class:`DataFileError` where the two are of different campaigns.
    """
    campaign, collected = read_campaign(campaign_file), read_collection(collect_file)
    if collected.campaign_digest != campaign.digest:
        raise DataFileError(
            str(collect_file), "is of another campaign", hint=f"collect {campaign.campaign_id}"
        )
    gaps = list(collected.gaps)
    if not collected.complete and not gaps:
        gaps.append(f"the campaign is {collected.state}")
    if collected.planned > collected.recorded and not gaps:
        gaps.append(f"{collected.planned - collected.recorded} planned cases have no row")
    planned = {
        pool.name: frozenset(case for shard in pool.shards for case in shard.cases) for pool in campaign.pools
    }
    return night_findings(
        store,
        [run.run_id for run in collected.runs],
        NightOf(campaign.campaign_id, campaign.night, campaign.created_at, planned, campaign.left_out),
        gaps,
        policy,
    )
