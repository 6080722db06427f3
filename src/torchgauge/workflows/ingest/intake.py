"""From artifacts to runs of a store: each is validated, published aside, and moved in whole or not at all.

::

    runs/<run_id>/provenance.json    whose the run is and through which door it came
    rejected/<id>.json               what was refused and why; nothing of its content
    superseded/<run_id>/             runs that another one replaced: evidence, in no table
    tombstones/<run_id>.json         runs that left the tables, with the reason

A set is published in a store of its own beside the real one first. What cannot become tables is refused
there, and a kill leaves a folder that no reader looks at.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torchgauge.clock import SYSTEM_CLOCK, Clock, utc
from torchgauge.records import Expectation, Modifier, Status
from torchgauge.results.atomic_file import TEMPORARY_SUFFIX, fsync_path, storage_errors, write_atomically
from torchgauge.results.fsck import UNMADE
from torchgauge.results.held import held
from torchgauge.results.journal_record import Kind, encode_line, split_line
from torchgauge.results.origin import PROVENANCE
from torchgauge.results.store import Store
from torchgauge.results.tables import TABLES
from torchgauge.workflows.ingest.container import Caps, read_container
from torchgauge.workflows.ingest.counted_once import replaced_by
from torchgauge.workflows.ingest.provenance import (
    REJECTED,
    SUPERSEDED,
    HeldRun,
    held_run,
    held_runs,
)
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.ingest.removal import json_bytes, retire_earlier, retire_replaced, tombstone
from torchgauge.workflows.ingest.validator import Expected, ValidSet, check_stamps, set_digest, validate
from torchgauge.workflows.plain_text import one_line
from torchgauge.workflows.result_set import JOURNAL_FILE, PLAN_FILE, RUN_FILES

STAGING = ".staging-"
_OF_AN_EXPECTATION = (Modifier.EXPECTED.value, Modifier.OTHER_CAUSE.value)


@dataclass
class Reception:
    """What a set meets at the door; ``held`` grows with every run that is taken.

    ``whole`` are the pools of the campaign of which every shard came.
    """

    held: list[HeldRun]
    whole: frozenset[str] = frozenset()

    def note(self, taken: HeldRun) -> None:
        """Remember ``taken`` and forget what it replaces."""
        self.held = [each for each in self.held if each.run_id not in taken.supersedes] + [taken]


@dataclass(frozen=True)
class Refused:
    """An artifact that was not taken: its name, made plain, the reason and our words on it."""

    artifact: str
    reason: Reason
    detail: str
    sha256: str = ""


@dataclass(frozen=True)
class Taken:
    """A run that is in the store; ``new`` is false where it was there already with the same content."""

    run_id: str
    artifact: str
    pool: str
    shard: int
    attempt: int
    state: str
    counts: dict[str, int]
    differs: tuple[str, ...]
    new: bool = True
    supersedes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """An artifact that passed every check and waits for its import."""

    artifact: str
    path: Path
    valid: ValidSet

    def files(self) -> dict[str, bytes]:
        """Return the files that were checked, with the campaign's expectations in every row.

        Raises :class:`RefusedSetError` where they changed since.
        """
        files = read_container(self.path)
        check_stamps(files, self.valid.manifest.files)
        if set_digest(files) != self.valid.digest:
            raise RefusedSetError(Reason.HASH, "the artifact changed while it was read")
        if self.valid.excused:
            files[JOURNAL_FILE] = _as_planned(files[JOURNAL_FILE], dict(self.valid.shard.expected))
        return files


def examine(path: Path, expected: Expected, *, named: bool) -> Candidate | Refused:
    """Read and validate the artifact at ``path``; ``named`` says that its name must be that of the set."""
    shown = artifact_of(path)
    try:
        files = read_container(path)
        return Candidate(shown, path, validate(files, expected, shown if named else ""))
    except RefusedSetError as error:
        return Refused(shown, error.reason, error.detail, fingerprint(path))


def _as_planned(journal: bytes, expected: Mapping[str, Expectation]) -> bytes:
    """Return ``journal`` with what the campaign expects of each case: no row excuses itself."""
    written = io.BytesIO()
    for line in io.BytesIO(journal):
        parts = split_line(line)
        assert parts is not None
        if parts[1] == Kind.RESULT.value.encode():
            row = json.loads(parts[2])
            ours = expected.get(row["case_id"])
            row["expected"] = ours.status.value if ours else None
            met = row["expected"] == row["status"] != Status.PASS.value
            others = (name for name in row["modifiers"] if name not in _OF_AN_EXPECTATION)
            row["modifiers"] = [*others, *([Modifier.EXPECTED.value] if met else [])]
            line = encode_line(parts[0], Kind.RESULT, row)  # noqa: PLW2901
        written.write(line)
    return written.getvalue()


def artifact_of(path: Path) -> str:
    """The name under which the artifact at ``path`` was uploaded, as far as it can be shown."""
    name = path.name if path.is_dir() else path.name.removesuffix(".zip")  # a folder is called so itself
    return one_line(name.encode(errors="replace").decode(errors="replace"))[:200]


def take(
    store: Store,
    candidate: Candidate,
    reception: Reception | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Taken:
    """Move a valid set into ``store`` and its tables; what it supersedes is the caller's to retire.

    Raises :class:`RefusedSetError` where the run was removed before, exists with other content, is counted
    already or cannot be published, with the store as it was, and :class:`InfrastructureError` for a failing
    disk.
    """
    reception = reception or Reception(held_runs(store))
    valid = candidate.valid
    run_id = valid.manifest.run_id
    _check_never_removed(store, run_id)
    if (store.path / "comparisons" / run_id).exists():
        raise RefusedSetError(Reason.RUN_EXISTS, f"the store contains a comparison with the id {run_id}")
    target = store.path / "runs" / run_id
    supersedes = tuple(replaced_by(store, reception.held, valid, reception.whole))
    taken = Taken(
        run_id=run_id,
        artifact=candidate.artifact,
        pool=valid.pool.name,
        shard=valid.shard.index,
        attempt=valid.manifest.attempt,
        state=valid.manifest.state.value,
        counts=valid.counts,
        differs=valid.differs,
        supersedes=supersedes,
    )
    if target.exists():
        _check_same(target, candidate.files())
        if not store.is_published(run_id):
            store.finish(run_id)  # a kill between the folder and its tables is made good
        return replace(taken, new=False)
    staging = _staging(store)
    try:
        said = provenance(candidate, supersedes, clock)
        _stage(staging, run_id, candidate, said)
        _move(staging, store, run_id)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    reception.note(held_run(run_id, said))
    return taken


def _check_never_removed(store: Store, run_id: str) -> None:
    stone = tombstone(store, run_id)
    if stone is None:
        return
    if by := stone.get("superseded_by"):
        raise RefusedSetError(Reason.SUPERSEDED, f"run {run_id} was replaced by {by}")
    raise RefusedSetError(Reason.REMOVED, f"run {run_id} was removed from this store")


@contextmanager
def only_intake(store: Store) -> Iterator[list[HeldRun]]:
    """One process imports at a time, the others wait; what a killed one left half done is cleared away.

    Gives the runs of campaigns that the store holds.
    """
    with held(store.path / "store.json"):
        for stale in store.path.glob(f"{STAGING}*{TEMPORARY_SUFFIX}"):
            shutil.rmtree(stale, ignore_errors=True)
        yield retire_replaced(store)


def _staging(store: Store) -> Path:
    return store.path / f"{STAGING}{secrets.token_hex(4)}{TEMPORARY_SUFFIX}"


def keep_superseded(store: Store, candidate: Candidate, by: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """Keep an attempt that a later one replaced, as files and in no table."""
    run_id = candidate.valid.manifest.run_id
    target = store.path / SUPERSEDED / run_id
    if target.exists() or (store.path / "runs" / run_id).exists():
        return
    staging = _staging(store)
    try:
        with storage_errors(store.path):
            said = {**provenance(candidate, (), clock), "superseded_by": by}
            _write_run(staging, candidate.files(), said)
            target.parent.mkdir(exist_ok=True)
            staging.rename(target)
            fsync_path(target.parent)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def retire_superseded(store: Store, taken: Iterable[Taken], clock: Clock = SYSTEM_CLOCK) -> None:
    """Take what ``taken`` replaces out of the tables, once everything is in that replaces it."""
    for run in taken:
        if run.new:
            retire_earlier(store, run.supersedes, run.run_id, clock)


def record_refusals(store: Store, refused: Sequence[Refused], clock: Clock = SYSTEM_CLOCK) -> None:
    """Write one file for each refusal, under a name that its content decides: repeating it adds nothing."""
    if not refused:
        return
    folder = store.path / REJECTED
    with storage_errors(folder):
        folder.mkdir(exist_ok=True)
    for each in refused:
        said = {**vars(each), "reason": each.reason.value}
        name = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]
        file = folder / f"{name}.json"
        if not file.exists():
            write_atomically(file, json_bytes({**said, "at": utc(clock.now()).isoformat(timespec="seconds")}))


def provenance(candidate: Candidate, supersedes: Iterable[str], clock: Clock) -> dict[str, Any]:
    """Whose a run is and how it came, as JSON values."""
    valid, manifest = candidate.valid, candidate.valid.manifest
    of_manifest = ("campaign_id", "campaign_digest", "sha", "pool", "shard", "of", "attempt", "made_as")
    return {
        "schema": 2,
        **{name: getattr(manifest, name) for name in of_manifest},
        "planned_at": valid.planned_at,
        "manifest_sha256": valid.digest,
        "differs": list(valid.differs),
        "rows": valid.rows,
        "supersedes": list(supersedes),
        "received_at": utc(clock.now()).isoformat(timespec="seconds"),
    }


def fingerprint(path: Path) -> str:
    """SHA-256 of the artifact in hexadecimal digits where it is one file of a bearable size; else empty."""
    try:
        if not path.is_file() or path.is_symlink() or path.stat().st_size > Caps().packed:
            return ""
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def _check_same(target: Path, files: Mapping[str, bytes]) -> None:
    for name in (PLAN_FILE, JOURNAL_FILE):
        try:
            same = (target / name).read_bytes() == files[name]
        except OSError:
            same = False
        if not same:
            raise RefusedSetError(
                Reason.RUN_EXISTS, f"the store has a different run with the id {target.name}"
            )


def _write_run(folder: Path, files: Mapping[str, bytes], said: dict[str, Any]) -> None:
    (folder / "logs").mkdir(parents=True)
    for name in sorted(RUN_FILES):
        (folder / name).write_bytes(files[name])
    (folder / PROVENANCE).write_bytes(json_bytes(said))
    for file in folder.iterdir():
        fsync_path(file)


def _stage(staging: Path, run_id: str, candidate: Candidate, said: dict[str, Any]) -> None:
    with storage_errors(staging):
        aside = Store.open(staging, create=True)
        _write_run(staging / "runs" / run_id, candidate.files(), said)  # and its bytes are gone
    try:
        aside.finish(run_id)
    except UNMADE as error:
        if isinstance(error.__cause__, OSError):
            raise
        raise RefusedSetError(Reason.UNPUBLISHABLE, f"making tables fails: {type(error).__name__}") from error


def _move(staging: Path, store: Store, run_id: str) -> None:
    """The folder first and ``results`` last, as a run that ended here would appear."""
    with storage_errors(store.path):
        (store.path / "runs").mkdir(exist_ok=True)
        (staging / "runs" / run_id).rename(store.path / "runs" / run_id)
        fsync_path(store.path / "runs")
        for table in sorted(TABLES, key=lambda name: name == "results"):
            there = store.table_path(table, run_id)
            there.parent.mkdir(parents=True, exist_ok=True)
            (staging / "tables" / table / there.name).rename(there)
            fsync_path(there.parent)
