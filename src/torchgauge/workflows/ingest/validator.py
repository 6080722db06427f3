"""The one validator of result sets: nightly, pull request and contribution pass through the same checks.

Nothing that a set says of itself is believed: it is compared with the campaign, which we wrote.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from torchgauge.errors import UsageError
from torchgauge.harness.planning.configurations import known_configurations
from torchgauge.results.journal_record import RunState
from torchgauge.workflows.campaign import CampaignPlan, PoolPlan, ShardPlan
from torchgauge.workflows.ingest.journal_check import check_journal
from torchgauge.workflows.ingest.plan_check import check_plan
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.ingest.row_check import DAY_S, Window
from torchgauge.workflows.ingest.strict_records import decode
from torchgauge.workflows.result_set import (
    JOURNAL_FILE,
    MANIFEST,
    PLAN_FILE,
    RESULT_SET_SCHEMA,
    FileStamp,
    Manifest,
    differences,
)

SKEW_S = 600.0
"""How far the clock of a machine may be wrong."""
LONGEST_S = 7 * DAY_S
"""From the plan to the last row: a day in GitHub's queue, five days of a job on an own runner, one more."""
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Expected:
    """What a set is held against; ``pools`` are those that its contributor may write (None: all).

    ``sha`` is the commit that the forge says it was made of, and ``now`` the moment of the check in seconds
    since the epoch (UTC). ``configurations`` is a file of configurations beside torchgauge's own.
    """

    campaign: CampaignPlan
    now: float
    sha: str = ""
    pools: frozenset[str] | None = None
    configurations: str | None = None

    @property
    def window(self) -> Window:
        """When its numbers may have been measured."""
        begin = self.campaign.created_at
        return Window(begin - SKEW_S, min(self.now, begin + LONGEST_S) + SKEW_S)


@dataclass(frozen=True)
class ValidSet:
    """A set that passed every check, with what it says in total; ``differs`` is ours, not the set's.

    ``recomputed`` rows said something else of their own samples than we do, and are kept as we say it.

    ``digest`` is that of its manifest, which has those of the files: they are read again when the set is
    imported, since the sets of a whole night may not fit into memory.
    """

    manifest: Manifest
    pool: PoolPlan
    shard: ShardPlan
    digest: str
    created_at: float
    counts: dict[str, int]
    differs: tuple[str, ...]
    recomputed: int = 0

    @property
    def rows(self) -> int:
        """Number of rows, which is the number of planned cases."""
        return sum(self.counts.values())


def set_digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 of the manifest, which holds those of the other files, in hexadecimal digits."""
    return hashlib.sha256(files[MANIFEST]).hexdigest()


def validate(files: Mapping[str, bytes], expected: Expected, artifact: str = "") -> ValidSet:
    """The set in ``files``, once everything in it was checked; raises :class:`RefusedSetError`.

    ``artifact`` is the name under which it was uploaded; empty where nobody said one.
    """
    manifest = check_manifest(files, expected)
    if artifact and artifact != manifest.artifact:
        raise RefusedSetError(Reason.ARTIFACT_NAME, f"the set is {manifest.artifact}, its artifact is not")
    pool, shard = _place(manifest, expected)
    known = {name: each.configuration for name, each in known_configurations(expected.configurations).items()}
    plan = check_plan(files[PLAN_FILE], pool, shard, known, expected.window)
    if plan.run_id != manifest.run_id:
        raise RefusedSetError(Reason.PLAN_DIGEST, "the plan is of another run than the manifest")
    journal = check_journal(files[JOURNAL_FILE], plan, pool.device, expected.window)
    if journal.state is not manifest.state:
        raise RefusedSetError(Reason.SCHEMA, "manifest and journal do not say the same of the run's end")
    differs = differences(expected.campaign, journal.environments)
    return ValidSet(
        manifest=manifest,
        pool=pool,
        shard=shard,
        digest=set_digest(files),
        created_at=plan.created_at,
        counts=journal.counts,
        differs=differs,
        recomputed=journal.recomputed,
    )


def check_manifest(files: Mapping[str, bytes], expected: Expected) -> Manifest:
    """The manifest, which is of the campaign and says what the other files are."""
    found = decode(files[MANIFEST], Manifest, "the manifest")
    campaign = expected.campaign
    if found.schema != RESULT_SET_SCHEMA:
        raise RefusedSetError(
            Reason.SCHEMA, f"the manifest is of schema {found.schema}, not {RESULT_SET_SCHEMA}"
        )
    if found.campaign_id != campaign.campaign_id:
        raise RefusedSetError(
            Reason.FOREIGN_CAMPAIGN, f"it is of another campaign than {campaign.campaign_id}"
        )
    if found.sha != campaign.sha or (expected.sha and found.sha != expected.sha):
        raise RefusedSetError(Reason.FOREIGN_SHA, f"it is of another commit than {campaign.sha}")
    if found.campaign_digest != campaign.digest:
        raise RefusedSetError(Reason.PLAN_DIGEST, "it was made with another plan of the campaign")
    if not _RUN_ID.fullmatch(found.run_id) or found.state is RunState.RUNNING or found.attempt < 1:
        raise RefusedSetError(Reason.SCHEMA, "the manifest has no true run id, state or attempt")
    check_stamps(files, found.files)
    return msgspec.convert(found, Manifest, from_attributes=True)


def check_stamps(files: Mapping[str, bytes], stamps: Sequence[FileStamp]) -> None:
    """Raise :class:`RefusedSetError` where ``stamps`` do not describe the files beside the manifest."""
    others = {name: data for name, data in files.items() if name != MANIFEST}
    if sorted(stamp.name for stamp in stamps) != sorted(others):
        raise RefusedSetError(Reason.SCHEMA, "the manifest lists other files")
    for stamp in stamps:
        data = others[stamp.name]
        if (stamp.size, stamp.sha256) != (len(data), hashlib.sha256(data).hexdigest()):
            raise RefusedSetError(Reason.HASH, f"{stamp.name} is not the file that the manifest describes")


def _place(manifest: Manifest, expected: Expected) -> tuple[PoolPlan, ShardPlan]:
    try:
        pool = expected.campaign.pool(manifest.pool)
        shard = pool.shard(manifest.shard)
    except UsageError as error:
        raise RefusedSetError(Reason.FOREIGN_SHARD, "the campaign has no such pool or shard") from error
    if shard.of != manifest.of:
        raise RefusedSetError(Reason.FOREIGN_SHARD, f"shard {shard.index} is one of {shard.of}")
    if expected.pools is not None and pool.name not in expected.pools:
        raise RefusedSetError(Reason.NOT_YOUR_POOL, f"the contributor may not write pool {pool.name}")
    return pool, shard
