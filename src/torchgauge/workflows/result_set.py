"""What one job submits: a folder with a manifest, the plan and the journal of its run, and nothing else.

::

    manifest.json     whose it is, and the hash and size of the other files
    plan.json         as the run wrote it
    journal.jsonl     the run's journal with a row for every planned case and one end

The journal is written anew: texts are made printable, cases that were never reached get their ``not_run``
row, and what a kill or a resumption left is taken out. The run gets the id that follows from its place in the
campaign, as whoever takes the set computes it too. So a set that was packed here is always accepted.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torchgauge.clock import SYSTEM_CLOCK, Clock
from torchgauge.errors import UsageError
from torchgauge.harness.run.rows import reproduce_command
from torchgauge.records import Case, Environment, Plan, from_plain, to_plain
from torchgauge.results.atomic_file import aside_of, fsync_path, storage_errors
from torchgauge.results.hostile_text import tail
from torchgauge.results.journal import Kind, RunState, read
from torchgauge.results.journal_record import End, JournalRecord, PlanStamp, encode_line
from torchgauge.results.publication import CUT_SHORT, unreached_row
from torchgauge.results.rows import torch_version
from torchgauge.results.run_id import ShardAttempt
from torchgauge.results.store import RunFolder
from torchgauge.workflows.campaign import CampaignPlan, PoolPlan, ShardPlan
from torchgauge.workflows.plain_text import is_plain_command, plain_values

RESULT_SET_SCHEMA = 2
"""Version of ``manifest.json``."""
MANIFEST, PLAN_FILE, JOURNAL_FILE = "manifest.json", "plan.json", "journal.jsonl"
RUN_FILES = frozenset({MANIFEST, PLAN_FILE, JOURNAL_FILE})
"""The files of the result set of a run."""
JOURNAL_BYTES = 80 << 20
"""Most bytes of a journal: Git hosts take no file of more than 100 MB into a branch, where it is kept."""
SHORT_TEXT_BYTES = 512
"""What is kept of each log and traceback of a journal that would be longer."""


@dataclass(frozen=True)
class FileStamp:
    """One file of a set: its SHA-256 in hexadecimal digits and its size in bytes."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """Whose results a set holds; ``attempt`` counts from 1, ``differs`` where the campaign was not kept.

    ``made_as`` is what the store of the machine calls the run, whose logs stayed there.
    """

    campaign_id: str
    campaign_digest: str
    sha: str
    pool: str
    shard: int
    of: int
    attempt: int
    run_id: str
    state: RunState
    files: tuple[FileStamp, ...]
    made_as: str
    differs: tuple[str, ...] = ()
    schema: int = RESULT_SET_SCHEMA

    @property
    def artifact(self) -> str:
        """The name of the artifact that holds the set."""
        return artifact_name(self.campaign_id, self.pool, self.shard, self.attempt)


@dataclass(frozen=True)
class Job:
    """One job of a campaign: which shard of which pool, in which attempt."""

    campaign: CampaignPlan
    pool: PoolPlan
    shard: ShardPlan
    attempt: int = 1

    @property
    def artifact(self) -> str:
        """The name of the artifact that the job uploads."""
        return artifact_name(self.campaign.campaign_id, self.pool.name, self.shard.index, self.attempt)

    @property
    def run_id(self) -> str:
        """What the run of this job is called in every store that takes it."""
        return campaign_run_id(self.campaign, self.pool.name, self.shard.index, self.attempt)


def campaign_run_id(campaign: CampaignPlan, pool: str, shard: int, attempt: int) -> str:
    """The id of the run that is this attempt at this shard; raises ``ValueError`` for impossible numbers."""
    return ShardAttempt(campaign.created_at, pool, shard, attempt, campaign.digest).run_id


def artifact_name(campaign_id: str, pool: str, shard: int, attempt: int) -> str:
    """The name of the artifact of one attempt at one shard."""
    return f"results-{campaign_id}-{pool}-{shard}-{attempt}"


def manifest_digest(folder: Path) -> str:
    """SHA-256 of the manifest in ``folder``, which holds those of the other files, in hexadecimal digits."""
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()


def pack(folder: RunFolder, job: Job, out: Path, *, clock: Clock = SYSTEM_CLOCK) -> Manifest:
    """Write the result set of the run in ``folder`` to the new folder ``out``; all of it or nothing.

    Raises :class:`UsageError` where ``out`` exists, and what reading the run raises.
    """
    made = folder.plan()
    plan = replace(made, run_id=job.run_id)
    with new_folder(out) as aside:
        with storage_errors(aside):
            text = json.dumps(plain_values(to_plain(plan)), allow_nan=False)
            (aside / PLAN_FILE).write_text(text, encoding="ascii")
            lines = _write_journal(aside / JOURNAL_FILE, folder, plan, clock)
        stamps = tuple(stamp_of(aside / name) for name in (JOURNAL_FILE, PLAN_FILE))
        manifest = Manifest(
            campaign_id=job.campaign.campaign_id,
            campaign_digest=job.campaign.digest,
            sha=job.campaign.sha,
            pool=job.pool.name,
            shard=job.shard.index,
            of=job.shard.of,
            attempt=job.attempt,
            run_id=plan.run_id,
            state=lines.state,
            files=stamps,
            made_as=made.run_id,
            differs=differences(job.campaign, lines.environments),
        )
        seal(aside, out, manifest)
    return manifest


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder to write a set in, for :func:`seal` to put it at ``out``; :class:`UsageError` if it exists."""
    if out.exists():
        raise UsageError(f"{out} exists", hint="pass a new folder: a result set is not overwritten")
    aside = aside_of(out)
    try:
        with storage_errors(out):
            aside.mkdir(parents=True)
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_journal(file: Path, folder: RunFolder, plan: Plan, clock: Clock) -> _Lines:
    """Write the journal, with the ends of its logs and tracebacks alone where it would be too long."""
    for text_bytes in (None, SHORT_TEXT_BYTES):
        lines = _Lines(plan, clock, text_bytes)
        with file.open("wb") as stream:
            stream.writelines(lines.of(read(folder.journal_path)))
        if file.stat().st_size <= JOURNAL_BYTES:
            break
    return lines


def seal(aside: Path, out: Path, manifest: Any) -> None:
    """Write ``manifest`` beside the other files of a set and put the whole folder in its place, durably."""
    with storage_errors(out):
        (aside / MANIFEST).write_text(json.dumps(to_plain(manifest), indent=1) + "\n", encoding="ascii")
        for file in aside.iterdir():
            fsync_path(file)
        aside.rename(out)
        fsync_path(out.parent)


def differences(campaign: CampaignPlan, environments: Iterable[Environment]) -> tuple[str, ...]:
    """Where the machines of a run were not what ``campaign`` planned for, in words; empty where they were.

    Builds of one version for several devices count as one torch: ``2.13.0+a`` and ``2.13.0+b``.
    """
    wanted = campaign.torch.partition("+")[0]
    found = {version.partition("+")[0] for each in environments if (version := torch_version(each))}
    others = sorted(found - {wanted}) if wanted else []
    return tuple(f"measured with torch {version}, but the campaign requires {wanted}" for version in others)


class _Lines:
    """The lines of the packed journal, and what they say as a whole."""

    def __init__(self, plan: Plan, clock: Clock, text_bytes: int | None) -> None:
        """Of logs and tracebacks the last ``text_bytes`` are kept; None: all."""
        self.state = RunState.INTERRUPTED
        self.environments: list[Environment] = []
        self._plan, self._clock, self._text_bytes = plan, clock, text_bytes
        self._renamed: dict[str, str] = {}
        self._count = 0

    def of(self, records: Iterable[JournalRecord]) -> Iterator[bytes]:
        """Every line in order, cleaned, the unreached cases and the one end last."""
        done: set[str] = set()
        ended: dict[str, Any] | None = None
        yield self._line(Kind.PLAN, PlanStamp(self._plan.run_id, self._plan.digest))
        for record in records:
            ended = record.data if record.kind is Kind.END else None
            if record.kind in (Kind.PLAN, Kind.END, Kind.ATTEMPT):  # a row tells of its attempts itself
                continue
            if record.kind is Kind.RESULT:
                if record.case_key in done:
                    continue
                done.add(record.case_key)
            yield self._line(record.kind, self._cleaned(record))
        end = from_plain(End, ended) if ended else End(RunState.INTERRUPTED, self._clock.now())
        missing = len(done) < len(self._plan.cases)
        self.state = RunState.INTERRUPTED if missing and end.state is RunState.COMPLETE else end.state
        cause, reason = CUT_SHORT.get(self.state, CUT_SHORT[RunState.INTERRUPTED])
        for planned in self._plan.cases:
            if planned.case.key not in done:
                yield self._line(Kind.RESULT, unreached_row(self._plan, planned, cause, reason))
        yield self._line(Kind.END, End(self.state, end.at))

    def _cleaned(self, record: JournalRecord) -> dict[str, Any]:
        data: dict[str, Any] = plain_values(record.data)
        if record.kind is Kind.ENVIRONMENT:
            data["identity"].sort(key=lambda pair: pair[0])  # cleaned names may be in another order
            self.environments.append(from_plain(Environment, data))
            self._renamed[from_plain(Environment, record.data).id] = self.environments[-1].id
        elif record.kind is Kind.RESULT:
            there = data["environment_id"]
            data["environment_id"] = self._renamed.get(there, there)
            data["run_id"] = self._plan.run_id
            if not is_plain_command(data["reproduce"], data["case_id"]):
                data["reproduce"] = self._command(data)
            if self._text_bytes is not None:
                self._shorten(data, self._text_bytes)
        return data

    @staticmethod
    def _shorten(data: dict[str, Any], most: int) -> None:
        data["log_excerpt"] = tail(data["log_excerpt"], most)
        for name in ("traceback", "message") if data["failure"] else ():
            data["failure"][name] = tail(data["failure"][name], most)

    def _command(self, data: dict[str, Any]) -> str:
        """The command without what names a file of the machine: interpreter, checkout, configurations."""
        settings = replace(self._plan.settings, configuration_file=None, torchbench=None)
        return reproduce_command(from_plain(Case, data["case"]), settings)

    def _line(self, kind: Kind, record: Any) -> bytes:
        self._count += 1
        return encode_line(self._count, kind, record)


def stamp_of(file: Path) -> FileStamp:
    """Hash and size of ``file``, as a manifest has them."""
    with file.open("rb") as stream:
        return FileStamp(file.name, hashlib.file_digest(stream, "sha256").hexdigest(), file.stat().st_size)
