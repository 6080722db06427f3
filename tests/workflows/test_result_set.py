"""Result sets: what a job submits of a run that ended, was cut short, or said strange things."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from campaign_sets import SHA, Night, files_of, import_sets

from torchgauge.errors import UsageError
from torchgauge.results.journal import RunState, results
from torchgauge.workflows.ingest.validator import validate

CUT = "20260528T201000Z-0000000c"


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path)


def test_a_set_says_whose_it_is(night: Night) -> None:
    """The manifest names campaign, commit, pool, shard, attempt and run, and the artifact follows from it."""
    folder = night.pack(2, 3)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert sorted(file.name for file in folder.iterdir()) == ["journal.jsonl", "manifest.json", "plan.json"]
    assert (manifest["sha"], manifest["pool"], manifest["shard"], manifest["attempt"]) == (SHA, "pool", 2, 3)
    assert manifest["campaign_digest"] == night.campaign.digest
    assert folder.name == "results-2026-05-28-torch-2.9.0-aabbccdd-pool-2-3"


@pytest.mark.parametrize(
    ("state", "cause"), [(RunState.INTERRUPTED, "cancelled"), (RunState.OUT_OF_BUDGET, "budget")]
)
def test_a_run_that_was_cut_short_gives_a_valid_set(night: Night, state: RunState, cause: str) -> None:
    """Cases that were never reached have their not_run row in the set, with the cause."""
    from stored_runs import TOLERANCE, environment

    from torchgauge.records import Group, Plan, PlannedCase, RunSettings
    from torchgauge.results.journal import End, Kind
    from torchgauge.workflows.result_set import pack

    found = night.results(1)
    groups = tuple(Group(str(i), (PlannedCase(r.case, TOLERANCE),)) for i, r in enumerate(found))
    folder = night.work.begin(Plan(CUT, night.begin, ("torchgauge",), RunSettings(), groups))
    with folder.open_journal() as journal:
        journal.append(Kind.ENVIRONMENT, [environment()])
        journal.append(Kind.RESULT, [replace(found[0], run_id=CUT, environment_id=environment().id)])
        journal.append(Kind.END, [End(state, night.begin + 60)])
    out = night.path / "set"
    manifest = pack(folder, night.job(1), out, clock=night.clock)
    assert manifest.state is state
    valid = validate(files_of(out), night.expected)
    assert valid.counts == {"not_run": 1, "pass": 1}
    assert [row.cause.value for row in results(out / "journal.jsonl") if row.cause] == [cause]


def test_a_killed_run_without_an_end_gives_a_valid_set(night: Night) -> None:
    """A journal that just stops, torn in its last line, becomes an interrupted set."""
    from torchgauge.workflows.result_set import pack

    night.pack(1, run_id=CUT)
    folder = night.work.run(CUT)
    data = folder.journal_path.read_bytes()
    lines = data.splitlines(keepends=True)
    folder.journal_path.write_bytes(b"".join(lines[:-1]) + lines[-1][:9])
    folder.journal_path.write_bytes(b"".join(lines[:3]) + lines[3][:50])  # stamp, environment, one row
    manifest = pack(folder, night.job(1), night.path / "set", clock=night.clock)
    assert manifest.state is RunState.INTERRUPTED
    assert validate(files_of(night.path / "set"), night.expected).counts == {"not_run": 1, "pass": 1}


def test_strange_text_of_a_run_is_written_plainly(night: Night) -> None:
    """A log with colours, control characters and reversed text gives a set that is taken."""
    log = "\x1b[31mred\x1b[0m \x00 \u202egpj \ud800 caf\u0065\u0301 \ue0a0\r\nnext\tcolumn"
    rows = night.results(1)
    rows[0] = night.result(night.cases[0], log_excerpt=log, reason="line\nbreak")
    folder = night.pack(1, results=rows)
    taken, refused = import_sets(night.store, [folder], night.expected, clock=night.clock)
    assert not refused
    assert len(taken) == 1
    row = next(results(folder / "journal.jsonl"))
    assert row.log_excerpt == "red  [U+202E]gpj [U+D800] café [U+E0A0]\nnext\tcolumn"
    assert row.reason == "line\nbreak"


def test_another_torch_than_the_campaign_says_is_marked(night: Night) -> None:
    """A set of another build is taken, and it and the store say so; a local version is no other build."""
    folder = night.pack(1, torch="2.8.0+cpu")
    assert json.loads((folder / "manifest.json").read_text())["differs"] == [
        "measured with torch 2.8.0, but the campaign requires 2.9.0"
    ]
    taken, _ = import_sets(night.store, [folder, night.pack(2, torch="2.9.0+other")], night.expected)
    assert [run.differs for run in taken] == [
        ("measured with torch 2.8.0, but the campaign requires 2.9.0",),
        (),
    ]
    said = json.loads((night.store.path / "runs" / night.run_id(1, 1) / "provenance.json").read_text())
    assert said["differs"] == ["measured with torch 2.8.0, but the campaign requires 2.9.0"]


def test_a_command_that_names_files_of_the_machine_is_shortened(night: Night) -> None:
    """A reader who pastes it has none of them, or others; the settings stay."""
    rows = night.results(1)
    command = f"torchgauge repro {rows[0].case_id} --python '/opt/my torch/bin/python' --store /srv/history"
    rows[0] = replace(rows[0], reproduce=command)
    rows[1] = replace(rows[1], reproduce=f"torchgauge repro {rows[1].case_id} --threads 2")
    folder = night.pack(1, results=rows)
    assert validate(files_of(folder), night.expected).rows == 2
    first, second = results(folder / "journal.jsonl")
    assert first.reproduce == f"torchgauge repro {first.case_id}"
    assert second.reproduce == rows[1].reproduce


def test_text_that_looks_like_keys_is_taken(night: Night) -> None:
    """Colons at the ends of texts, and quotes within, are no second keys."""
    rows = night.results(1)
    rows[0] = replace(rows[0], reason=': "a": 1, "b" : 2', exit=":", teardown=" :")
    assert validate(files_of(night.pack(1, results=rows)), night.expected).rows == 2


def test_a_set_is_written_once(night: Night) -> None:
    """A folder that exists is never written into."""
    from torchgauge.workflows.result_set import pack

    folder = night.pack(1)
    before = files_of(folder)
    with pytest.raises(UsageError, match="exists"):
        pack(night.work.run(night.work.run_ids()[0]), night.job(1), folder)
    assert files_of(folder) == before
