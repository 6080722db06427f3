"""The one validator of result sets: those of a night and those of a pull request pass the same checks.

Nothing that a set says of itself is believed: it is compared with the campaign, which we wrote, and with what
the Git host says of its artifact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torchgauge.counted import counted
from torchgauge.errors import UsageError
from torchgauge.harness.planning.configurations import known_configurations
from torchgauge.results.journal_record import RunState
from torchgauge.results.possible import LONGEST_S
from torchgauge.results.run_id import MOST_ATTEMPTS, is_run_id
from torchgauge.workflows.campaign import CampaignPlan, PoolPlan, ShardPlan
from torchgauge.workflows.ingest.journal_check import check_journal
from torchgauge.workflows.ingest.plan_check import check_plan
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.ingest.row_check import Window
from torchgauge.workflows.ingest.strict_records import decode
from torchgauge.workflows.job_statements import Stated, job_name
from torchgauge.workflows.result_set import (
    JOURNAL_FILE,
    MANIFEST,
    PLAN_FILE,
    RESULT_SET_SCHEMA,
    FileStamp,
    Manifest,
    campaign_run_id,
    differences,
)

SKEW_S = 600.0
"""How far the clock of a machine may be wrong."""


@dataclass(frozen=True)
class Expected:
    """The campaign that a set is compared with, and the statements of the Git host about its job.

    ``sha`` is the commit of the job, and ``now`` the moment of the check in seconds since the epoch (UTC).
    ``attempts`` is the newest attempt of the workflow, and ``stated`` lists the digests that its jobs stated
    (None: without the Git host). ``configurations`` is a file of configurations beside torchgauge's own.
    """

    campaign: CampaignPlan
    now: float
    sha: str = ""
    configurations: str | None = None
    attempts: int = MOST_ATTEMPTS
    stated: Stated | None = None

    @property
    def window(self) -> Window:
        """When its numbers may have been measured."""
        begin = self.campaign.created_at
        return Window(begin - SKEW_S, min(self.now, begin + LONGEST_S) + SKEW_S)


@dataclass(frozen=True)
class ValidSet:
    """A set that passed every check, with what it says in total; ``differs`` is ours, not the set's.

    ``excused`` rows expect another end than the campaign does.

    ``planned_at`` is when its campaign was planned, in seconds since the epoch (UTC). ``digest`` is that of
    its manifest, which has those of the files: they are read again when the set is imported, since the sets
    of a whole night may not fit into memory.
    """

    manifest: Manifest
    pool: PoolPlan
    shard: ShardPlan
    digest: str
    planned_at: float
    counts: dict[str, int]
    differs: tuple[str, ...]
    excused: int = 0

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
    pool, shard = _place(manifest, expected)
    _check_identity(manifest, expected, artifact)
    _check_stated(manifest, set_digest(files), expected)
    known = {name: each.configuration for name, each in known_configurations(expected.configurations).items()}
    plan = check_plan(files[PLAN_FILE], pool, shard, known, expected.window)
    if plan.run_id != manifest.run_id:
        raise RefusedSetError(Reason.PLAN_DIGEST, "plan and manifest have different ids of the run")
    journal = check_journal(files[JOURNAL_FILE], plan, pool.device, expected.window)
    if journal.state is not manifest.state:
        raise RefusedSetError(Reason.SCHEMA, "manifest and journal have different final states of the run")
    differs = differences(expected.campaign, journal.environments)
    return ValidSet(
        manifest=manifest,
        pool=pool,
        shard=shard,
        digest=set_digest(files),
        planned_at=expected.campaign.created_at,
        counts=journal.counts,
        differs=differs,
        excused=journal.excused,
    )


def check_manifest(files: Mapping[str, bytes], expected: Expected) -> Manifest:
    """The manifest, which is of the campaign and says what the other files are."""
    found = decode(files[MANIFEST], Manifest, "the manifest")
    campaign = expected.campaign
    if found.schema != RESULT_SET_SCHEMA:
        raise RefusedSetError(
            Reason.SCHEMA, f"the manifest has schema version {found.schema}, not {RESULT_SET_SCHEMA}"
        )
    if found.campaign_id != campaign.campaign_id:
        raise RefusedSetError(Reason.FOREIGN_CAMPAIGN, f"the set is not from campaign {campaign.campaign_id}")
    if found.sha != campaign.sha or (expected.sha and found.sha != expected.sha):
        raise RefusedSetError(Reason.FOREIGN_SHA, f"the set is not from commit {campaign.sha}")
    if found.campaign_digest != campaign.digest:
        raise RefusedSetError(Reason.PLAN_DIGEST, "the set was measured with another plan of the campaign")
    if found.state is RunState.RUNNING:
        raise RefusedSetError(Reason.SCHEMA, "the manifest's run has not ended")
    check_stamps(files, found.files)
    return found


def check_stamps(files: Mapping[str, bytes], stamps: Sequence[FileStamp]) -> None:
    """Raise :class:`RefusedSetError` where ``stamps`` do not describe the files beside the manifest."""
    others = {name: data for name, data in files.items() if name != MANIFEST}
    if sorted(stamp.name for stamp in stamps) != sorted(others):
        raise RefusedSetError(Reason.SCHEMA, "the files listed in the manifest differ from those in the set")
    for stamp in stamps:
        data = others[stamp.name]
        if (stamp.size, stamp.sha256) != (len(data), hashlib.sha256(data).hexdigest()):
            raise RefusedSetError(Reason.HASH, f"{stamp.name} is not the file that the manifest describes")


def _check_identity(manifest: Manifest, expected: Expected, artifact: str) -> None:
    """Raise where ``manifest`` is not of the job whose artifact it is: the Git host says who that is."""
    if not 1 <= manifest.attempt <= MOST_ATTEMPTS:
        raise RefusedSetError(Reason.ATTEMPT, f"attempts are numbered from 1 to {MOST_ATTEMPTS}")
    if artifact and artifact != manifest.artifact:
        raise RefusedSetError(Reason.FOREIGN_IDENTITY, "the artifact's name is that of another job")
    if manifest.attempt > expected.attempts:
        made = expected.attempts
        raise RefusedSetError(
            Reason.FOREIGN_IDENTITY,
            f"attempt {manifest.attempt} of a workflow run with {counted(made, 'attempt')}",
        )
    if not (is_run_id(manifest.run_id, expected.now) and is_run_id(manifest.made_as, expected.now)):
        raise RefusedSetError(Reason.RUN_ID, "the manifest contains an invalid id of a run")
    ours = campaign_run_id(expected.campaign, manifest.pool, manifest.shard, manifest.attempt)
    if manifest.run_id != ours:
        raise RefusedSetError(Reason.FOREIGN_IDENTITY, f"the id of the run must be {ours}")


def _check_stated(manifest: Manifest, digest: str, expected: Expected) -> None:
    """Raise where the job of ``manifest`` did not state that it made this very set."""
    if expected.stated is None:
        return
    job = job_name(manifest.pool, manifest.shard, manifest.of)
    if digest not in expected.stated.get((job, manifest.attempt), frozenset()):
        raise RefusedSetError(
            Reason.FOREIGN_IDENTITY,
            f"the job {job}, attempt {manifest.attempt}, has no annotation with the digest of this set",
        )


def _place(manifest: Manifest, expected: Expected) -> tuple[PoolPlan, ShardPlan]:
    try:
        pool = expected.campaign.pool(manifest.pool)
        shard = pool.shard(manifest.shard)
    except UsageError as error:
        raise RefusedSetError(Reason.FOREIGN_SHARD, "the campaign has no such pool or shard") from error
    if shard.of != manifest.of:
        raise RefusedSetError(Reason.FOREIGN_SHARD, f"the pool has {shard.of} shards, not {manifest.of}")
    return pool, shard
