"""Result sets of a small campaign, made by the package's own API, and tools that spoil them."""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import stored_runs
from stored_runs import BEGIN, TOLERANCE, case, environment, result

from torchgauge.clock import SYSTEM_CLOCK, Clock
from torchgauge.records import Accuracy, Case, PlannedCase, Result, Status, digest
from torchgauge.results.journal import RunState
from torchgauge.results.journal_record import split_line
from torchgauge.results.store import Store
from torchgauge.workflows.campaign import CampaignPlan, PoolPlan, ShardPlan, terms_of
from torchgauge.workflows.ingest.counted_once import whole_pools
from torchgauge.workflows.ingest.intake import (
    Candidate,
    Reception,
    Refused,
    Taken,
    examine,
    only_intake,
    record_refusals,
    retire_superseded,
    take,
)
from torchgauge.workflows.ingest.refusal import RefusedSetError
from torchgauge.workflows.ingest.validator import Expected
from torchgauge.workflows.result_set import MANIFEST, Job, Manifest, pack

SHA = "a" * 40
HOUR = 3600.0
MODELS = ("linear", "conv", "norm", "attention")
Files = dict[str, bytes]
ACCURACY = Accuracy("float64 on the host", 1e-6, 2e-7, 1e-7, 2.0, 0.0)


def terms(cases: Sequence[Case]) -> str:
    """What the suites hold ``cases`` to, by the tolerance of every plan here."""
    return terms_of({each.id: PlannedCase(each, TOLERANCE) for each in cases})


def shard_plan(index: int, of: int, cases: Sequence[Case]) -> ShardPlan:
    """The shard ``index`` of ``of`` with ``cases``, held to the tolerance of every plan here."""
    return ShardPlan(index, of, tuple(each.id for each in cases), 2.0, terms(cases))


class FixedClock:
    """A clock that stands at one moment."""

    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    def steady(self) -> float:
        return self.at


class Night:
    """A campaign on ``pools`` with ``shards`` shards of two cases each, and the sets of its jobs."""

    def __init__(
        self,
        tmp_path: Path,
        *,
        shards: int = 2,
        begin: float = BEGIN,
        pools: Sequence[str | PoolPlan] = ("pool",),
        **changes: Any,
    ) -> None:
        self.path, self.begin, self.made = tmp_path, begin, 0
        self.cases = [case(name) for name in MODELS]
        planned = tuple(
            shard_plan(number, shards, self.cases[2 * number - 2 : 2 * number])
            for number in range(1, shards + 1)
        )
        fields: dict[str, Any] = {
            "campaign_id": "2026-05-28-torch-2.9.0-aabbccdd",
            "created_at": begin - 60,
            "night": "2026-05-28",
            "repository": "owner/name",
            "sha": SHA,
            "torch": "2.9.0",
            "suite_digest": "aabbccdd00112233",
            "pools": tuple(
                PoolPlan(pool, "fake", ("x",), "", 4.0, planned) if isinstance(pool, str) else pool
                for pool in pools
            ),
        }
        self.campaign = CampaignPlan(**{**fields, **changes})
        tmp_path.mkdir(exist_ok=True)
        self.work = Store.open(tmp_path / "work", create=True)
        self.store = Store.open(tmp_path / "store", create=True)

    @property
    def expected(self) -> Expected:
        """What sets are held against, an hour after the night began."""
        return Expected(self.campaign, self.begin + HOUR)

    @property
    def clock(self) -> FixedClock:
        """An hour after the night began."""
        return FixedClock(self.begin + HOUR)

    def job(self, shard: int = 1, attempt: int = 1, pool: str = "") -> Job:
        """One job of the campaign, on its first pool where none is named."""
        found = self.campaign.pool(pool or self.campaign.pools[0].name)
        return Job(self.campaign, found, found.shard(shard), attempt)

    def run_id(self, shard: int = 1, attempt: int = 1, pool: str = "") -> str:
        """What the run of that job is called in a store."""
        return self.job(shard, attempt, pool).run_id

    def results(self, shard: int = 1, **changes: Any) -> list[Result]:
        """A result of each case of ``shard``."""
        wanted = self.cases[2 * shard - 2 : 2 * shard]
        return [self.result(each, **changes) for each in wanted]

    def result(self, of: Case, **changes: Any) -> Result:
        """A result with the command that a run writes, and what a pass was compared with."""
        if changes.get("status", Status.PASS) is Status.PASS:
            changes = {"accuracy": ACCURACY, **changes}
        return result(of, started_at=self.begin + 1, reproduce=f"torchgauge repro {of.id}", **changes)

    def pack(
        self,
        shard: int = 1,
        attempt: int = 1,
        *,
        results: Sequence[Result] | None = None,
        state: RunState = RunState.COMPLETE,
        torch: str = "2.9.0",
        run_id: str = "",
        folder: Path | None = None,
        pool: str = "",
    ) -> Path:
        """The set of one job, under its artifact's name in ``folder``; ``run_id`` is the machine's own."""
        self.made += 1
        run_id = run_id or f"20260528T201000Z-{self.made:08x}"
        found = self.results(shard) if results is None else results
        stored_runs.run(
            self.work, run_id, found, environment(torch=torch), at=self.begin, state=state, publish=False
        )
        run = self.work.run(run_id)
        with run.open_journal() as journal:
            from torchgauge.results.journal import End, Kind

            journal.append(Kind.END, [End(state, self.begin + 60)])
        job = self.job(shard, attempt, pool)
        out = (folder or self.path / "artifacts") / job.artifact
        out.parent.mkdir(exist_ok=True)
        pack(run, job, out, clock=self.clock)
        return out


def files_of(folder: Path) -> Files:
    """Name to bytes of every file in ``folder``."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def sealed(files: Files, **changes: Any) -> Files:
    """``files`` with a manifest that fits them again; keywords replace its fields."""
    manifest = json.loads(files[MANIFEST])
    manifest["files"] = [
        {"name": name, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
        for name, data in sorted(files.items())
        if name != MANIFEST
    ]
    return {**files, MANIFEST: json.dumps({**manifest, **changes}).encode()}


Line = tuple[bytes, bytes]


def lines_of(journal: bytes) -> list[Line]:
    """Kind and payload of every line."""
    found = [split_line(line) for line in journal.splitlines(keepends=True)]
    return [(parts[1], parts[2]) for parts in found if parts]


def journal_of(lines: Sequence[Line]) -> bytes:
    """A journal of ``lines`` with right numbers and checksums."""
    written = []
    for number, (kind, body) in enumerate(lines, start=1):
        crc = zlib.crc32(body, zlib.crc32(b"%d:%s:" % (number, kind)))
        written.append(b'{"n":%d,"kind":"%s","crc":"%08x","data":%s}\n' % (number, kind, crc, body))
    return b"".join(written)


def relined(files: Files, edit: Callable[[list[Line]], list[Line]]) -> Files:
    """``files`` with the journal's lines as ``edit`` leaves them, sealed again."""
    lines = edit(lines_of(files["journal.jsonl"]))
    return sealed({**files, "journal.jsonl": journal_of(lines)})


def in_row(files: Files, old: bytes, new: bytes) -> Files:
    """``files`` with ``old`` in the first row written as ``new``; fails where ``old`` is not there."""

    def edit(lines: list[Line]) -> list[Line]:
        at = next(i for i, (kind, _) in enumerate(lines) if kind == b"result")
        assert old in lines[at][1], old
        lines[at] = (b"result", lines[at][1].replace(old, new, 1))
        return lines

    return relined(files, edit)


def in_plan(files: Files, old: bytes, new: bytes) -> Files:
    """``files`` with ``old`` in the plan written as ``new``."""
    assert old in files["plan.json"], old
    return sealed({**files, "plan.json": files["plan.json"].replace(old, new, 1)})


def rerowed(files: Files, edit: Callable[[dict[str, Any]], object]) -> Files:
    """``files`` with the first row as ``edit`` leaves it."""

    def change(lines: list[Line]) -> list[Line]:
        at = next(i for i, (kind, _) in enumerate(lines) if kind == b"result")
        row = json.loads(lines[at][1])
        edit(row)
        lines[at] = (b"result", json.dumps(row, separators=(",", ":")).encode())
        return lines

    return relined(files, change)


def replanned(files: Files, edit: Callable[[dict[str, Any]], object]) -> Files:
    """``files`` with the plan as ``edit`` leaves it, and a journal that belongs to it."""
    plan = json.loads(files["plan.json"])
    edit(plan)

    def stamp(lines: list[Line]) -> list[Line]:
        said = {**json.loads(lines[0][1]), "digest": digest(plan["groups"])}
        return [(b"plan", json.dumps(said).encode()), *lines[1:]]

    return relined({**files, "plan.json": json.dumps(plan).encode()}, stamp)


def with_run_id(files: Files, run_id: str) -> Files:
    """``files`` as a whole set of the run ``run_id``: plan, journal and manifest agree.

    ``{stamp}`` and ``{digest}`` in it are those of the true id.
    """
    ours = json.loads(files["manifest.json"])["run_id"]
    run_id = run_id.format(stamp=ours.partition("-")[0], digest=ours.rpartition("-")[2])

    def edit(lines: list[Line]) -> list[Line]:
        return [(kind, body.replace(ours.encode(), run_id.encode())) for kind, body in lines]

    return sealed(in_plan(relined(files, edit), ours.encode(), run_id.encode()), run_id=run_id)


def write_folder(path: Path, files: Files) -> Path:
    """``files`` as a folder."""
    path.mkdir(parents=True)
    for name, data in files.items():
        (path / name).write_bytes(data)
    return path


def write_zip(path: Path, entries: Sequence[tuple[str | zipfile.ZipInfo, bytes]]) -> Path:
    """``entries`` as a zip file, whatever their names."""
    import warnings

    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # of duplicate names, which are the point
        for name, data in entries:
            archive.writestr(name, data, zipfile.ZIP_DEFLATED)
    return path


def import_sets(
    store: Store,
    paths: Sequence[Path],
    expected: Expected,
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[list[Taken], list[Refused]]:
    """Take the sets at ``paths`` as a collection does, without the names of artifacts."""
    found = [examine(path, expected, named=False) for path in paths]
    taken: list[Taken] = []
    refused = [each for each in found if isinstance(each, Refused)]
    with only_intake(store) as held:
        valid = [each.valid for each in found if isinstance(each, Candidate)]
        reception = Reception(held, whole_pools(expected.campaign, valid, held))
        for candidate in found:
            if isinstance(candidate, Candidate):
                try:
                    taken.append(take(store, candidate, reception, clock))
                except RefusedSetError as error:
                    refused.append(Refused(candidate.artifact, error.reason, error.detail))
        retire_superseded(store, taken, clock)
        record_refusals(store, refused, clock)
    return taken, refused


def bytes_of(folder: Path, without: Sequence[str] = ("rejected",)) -> dict[str, bytes]:
    """Every file below ``folder`` with its bytes, but what stands in the folders ``without``."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if name.parts[0] not in without:
            found[str(name)] = path.read_bytes() if path.is_file() else b"(folder)"
    return found


__all__ = ["Manifest", "Night"]
