"""What ``torchgauge results fsck`` finds in a store, and that what it advises mends it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import torchgauge
from torchgauge.results.fsck import Fault, check_store
from torchgauge.results.journal import Kind
from torchgauge.results.publication import publish_again
from torchgauge.results.store import Store

CHILD = Path(__file__).with_name("store_child.py")
TORCHGAUGE = (sys.executable, "-c", "from torchgauge.cli.main import main; main()")


def flip(path: Path, place: int = -100) -> None:
    """Change one bit of a file, ``place`` bytes from its end."""
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    """Leave the first half of a file."""
    os.truncate(path, path.stat().st_size // 2)


def found(store: Store) -> list[tuple[str, str]]:
    """Kind and path of each finding."""
    return [(each.fault.value, each.path) for each in check_store(store).findings]


@pytest.fixture
def two(store: Store, build) -> Store:
    """A store of two published runs."""
    build.published(store)
    build.published(store, "run-2")
    return store


@pytest.mark.parametrize("harm", [flip, cut, Path.unlink])
@pytest.mark.parametrize("table", ["results", "summaries", "samples", "environments", "calibrations"])
def test_a_harmed_table_is_found_and_the_advice_mends_it(
    two: Store, table: str, harm: Callable[[Path], None]
) -> None:
    """Every byte counts; raw samples alone may be removed. The command is run as it is advised."""
    path = two.table_path(table, "run-2")
    harm(path)
    if harm is Path.unlink and table == "samples":
        assert found(two) == []
        return
    (finding,) = check_store(two).findings
    assert finding.path == f"tables/{table}/run-2.parquet"
    assert finding.fault is (Fault.DAMAGED if path.exists() else Fault.MISSING)
    assert finding.remedy == f"torchgauge results publish run-2 --store {two.path}"
    environment = os.environ | {"PYTHONPATH": str(Path(torchgauge.__file__).parents[1])}
    subprocess.run([*TORCHGAUGE, *shlex.split(finding.remedy)[1:]], env=environment, check=True)
    assert found(two) == []


def test_a_damaged_journal_is_no_source_of_tables(two: Store) -> None:
    """A line in the middle that its checksum does not fit: what it is not made of stays as it is."""
    flip(two.run("run-1").journal_path, 200)
    flip(two.table_path("results", "run-1"))
    journal, table, sealed = check_store(two).findings
    assert (journal.fault, journal.path) == (Fault.DAMAGED, "runs/run-1/journal.jsonl")
    assert "head -n" in journal.remedy
    assert {table.path, sealed.path} == {"runs/run-1/journal.jsonl", "tables/results/run-1.parquet"}
    assert [each.remedy for each in (table, sealed)] == ["restore it from a copy"] * 2


def test_rows_that_were_lost_and_rows_of_others_are_told(two: Store, build) -> None:
    """A journal of another plan, a plan of another run, and tables of no run."""
    shutil.copy(two.run("run-2").journal_path, two.run("run-1").journal_path)
    assert ("foreign", "runs/run-1/journal.jsonl") in found(two)
    shutil.copytree(two.run("run-2").path, two.path / "runs" / "run-3")
    assert ("foreign", "runs/run-3/plan.json") in found(two)
    shutil.rmtree(two.path / "runs" / "run-2")
    assert ("foreign", "tables/results/run-2.parquet") in found(two)
    (two.path / "tables" / "notes").mkdir()
    assert ("foreign", "tables/notes") in found(two)


def test_what_a_kill_left_of_a_publication_is_torn(store: Store, build) -> None:
    """Half written tables have no name that a reader believes; publishing the run again takes them away."""
    folder = store.begin(build.plan())
    with folder.open_journal() as journal:
        journal.append(Kind.RESULT, [build.result(), build.crashed()])
    environment = os.environ | {"PYTHONPATH": str(Path(torchgauge.__file__).parents[1])}
    command = [sys.executable, str(CHILD), "close", str(store.path), "run-1"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"reached\n"
        assert check_store(store).busy == ("run-1",)
        process.send_signal(signal.SIGKILL)
    torn = found(store)
    assert {fault for fault, _ in torn} == {"torn"}
    assert len(torn) == 5
    publish_again(store, "run-1")
    assert found(store) == []


def test_a_torn_line_is_found_until_the_run_goes_on(store: Store, build) -> None:
    """A kill in the middle of a line: whoever resumes the run sets it aside."""
    folder = store.begin(build.plan())
    with folder.open_journal() as journal:
        journal.append(Kind.RESULT, [build.result()])
        assert check_store(store).busy == ("run-1",)
    with folder.journal_path.open("ab") as stream:
        stream.write(b'{"n":3,"kind":"res')
    (finding,) = check_store(store).findings
    assert (finding.fault, finding.path) == (Fault.TORN, "runs/run-1/journal.jsonl")
    assert finding.remedy == f"torchgauge run --resume {folder.path}"
    folder.open_journal().close()
    assert found(store) == []


def test_a_run_without_a_seal_is_read_whole(two: Store) -> None:
    """As a kill before the seal leaves it: sound, until a page of a table fails its checksum."""
    (two.run("run-1").path / "seal.json").unlink()
    assert found(two) == []
    assert check_store(two).sealed == ("run-2",)
    cut(two.table_path("summaries", "run-1"))
    assert found(two) == [("damaged", "tables/summaries/run-1.parquet")]


def test_the_command_ends_with_three_where_anything_is_wrong(two: Store) -> None:
    """Text and JSON say the same."""
    environment = os.environ | {"PYTHONPATH": str(Path(torchgauge.__file__).parents[1])}
    two.table_path("summaries", "run-1").unlink()
    words = [*TORCHGAUGE, "results", "fsck", "--store", str(two.path)]
    text = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert text.returncode == 3
    assert text.stdout.startswith("missing  tables/summaries/run-1.parquet: ")
    assert "2 runs: 2 sealed with checksums, 0 not sealed, 0 skipped (in use); 1 finding" in text.stderr
    plain = subprocess.run([*words, "--json"], env=environment, capture_output=True, text=True, check=False)
    said = json.loads(plain.stdout)
    assert (plain.returncode, said["exit_code"]) == (3, 3)
    assert [each["path"] for each in said["findings"]] == ["tables/summaries/run-1.parquet"]
