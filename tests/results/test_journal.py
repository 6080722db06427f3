"""The journal: durable, recoverable, and honest about damage."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import torchgauge
from torchgauge.errors import DamagedJournalError, InfrastructureError, UsageError
from torchgauge.records import Measurement
from torchgauge.results import journal as journal_module
from torchgauge.results.journal import End, Journal, Kind, RunState, is_being_written, read

CHILD = Path(__file__).with_name("writer_child.py")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


def child(path: Path, first: int = 0, count: int = 100_000, batch: int = 1) -> subprocess.Popen[bytes]:
    source = str(Path(torchgauge.__file__).parents[1])
    arguments = [sys.executable, "-S", str(CHILD), str(path), str(first), str(count), str(batch)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": source})


def models(path: Path) -> list[str]:
    return [result.case.workload.model for result in journal_module.results(path)]


def fill(path: Path, build, count: int = 4, **changes) -> list[str]:
    names = [f"m{i}" for i in range(count)]
    with Journal.open(path) as journal:
        for name in names:
            journal.append(Kind.RESULT, [build.result(model=name, **changes)])
    return names


def test_a_second_result_of_a_case_is_refused(path, build):
    """No row is doubled: not in one batch, not in a later one, not after reopening."""
    with Journal.open(path) as journal:
        with pytest.raises(ValueError, match="already has a result"):
            journal.append(Kind.RESULT, [build.result(), build.result()])
        journal.append(Kind.RESULT, [build.result()])
    with Journal.open(path) as journal:
        with pytest.raises(ValueError, match="already has a result"):
            journal.append(Kind.RESULT, [build.result()])
        assert journal.done == (build.case().key,)
    assert models(path) == ["linear"]


def test_a_non_finite_number_is_refused_before_anything_is_written(path, build):
    """A NaN in a summary names the case and leaves the journal as it was."""
    result = build.result()
    broken = replace(result.summaries[0], median=float("nan"))
    with Journal.open(path) as journal:
        with pytest.raises(ValueError, match=r"toy/linear.*non-finite"):
            journal.append(Kind.RESULT, [build.crashed(), replace(result, summaries=(broken,))])
        assert path.stat().st_size == 0
        journal.append(Kind.RESULT, [build.crashed(), result])
    with pytest.raises(ValueError, match="not finite"):
        Measurement("latency", "s", (float("inf"),))


def test_a_second_writer_is_refused(path, build):
    """Two writers of one journal would interleave, so the second one is told who is in the way."""
    with Journal.open(path), pytest.raises(UsageError, match="being written by another process"):
        Journal.open(path)
    assert not is_being_written(path)


def test_rows_are_read_while_another_process_writes(path):
    """A reader needs no lock and sees whole rows only."""
    process = child(path, count=5)
    try:
        assert process.stdout.readline() == b"open\n"
        assert process.stdout.readline() == b"0\n"
        assert "m0" in models(path)
        process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert models(path) == [f"m{i}" for i in range(5)]


def test_every_acknowledged_row_survives_fifty_kills(path):
    """A writer is killed fifty times at random points; what it acknowledged is there exactly once."""
    chance = random.Random(20_251)
    acknowledged: set[str] = set()
    for kill in range(50):
        first = 1_000_000 * kill
        process = child(path, first, count=999_999, batch=chance.choice((1, 1, 3)))
        try:
            assert process.stdout.readline() == b"open\n"
            seen = b"".join(process.stdout.readline() for _ in range(chance.randrange(4)))
            time.sleep(chance.random() * 0.03)
        finally:
            process.send_signal(signal.SIGKILL)
            with process.stdout:
                output = process.stdout.read()  # what is buffered too, which communicate would leave out
            process.wait(120)
        whole = (seen + output).rpartition(b"\n")[0].split()
        acknowledged |= {f"m{int(number)}" for number in whole}
    found = models(path)
    assert len(found) == len(set(found))
    assert acknowledged <= set(found)
    assert len(acknowledged) > 50
    with Journal.open(path) as journal:
        assert set(found) == {result.case.workload.model for result in journal.results()}


def test_a_journal_cut_anywhere_in_its_last_two_rows_recovers(path, build, monkeypatch):
    """Whatever byte the cut falls on, whole rows stay, torn bytes are kept aside and writing goes on."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # thousands of recoveries, none of them of a disk
    lean = {"measurements": (), "summaries": (), "realised": None, "accuracy": None}
    names = fill(path, build, 3, **lean)
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    torn = path.with_suffix(".torn")
    fresh = build.result(model="after", **lean)
    for cut in range(ends[0], len(whole)):
        path.write_bytes(whole[:cut])
        torn.unlink(missing_ok=True)
        kept = sum(end <= cut for end in ends)
        with Journal.open(path) as journal:
            journal.append(Kind.RESULT, [fresh])
            remainder = whole[ends[kept - 1] : cut]
            assert journal.set_aside == len(remainder)
        assert (torn.read_bytes() if torn.exists() else b"") == (remainder and remainder + b"\n")
        data = path.read_bytes()
        assert data.startswith(whole[: ends[kept - 1]])
        assert data.count(b"\n") == kept + 1
    assert models(path) == [*names[:2], "after"]


def test_a_damaged_last_line_is_torn_and_not_read(path, build):
    """A kill may leave garbage at the tail, also with a newline; readers stop before it."""
    names = fill(path, build)
    with path.open("ab") as stream:
        stream.write(b"\0" * 100 + b"\n" + b'{"n":6,')
    assert models(path) == names
    with Journal.open(path) as journal:
        assert journal.set_aside == 108
        journal.append(Kind.RESULT, [build.result(model="after")])
    assert models(path) == [*names, "after"]


@pytest.mark.parametrize("line", [1, 2, 3])
def test_damage_in_the_middle_names_the_line(path, build, line):
    """A flipped byte before good lines is no torn tail: nobody may go on as if nothing was lost."""
    fill(path, build)
    lines = path.read_bytes().splitlines(keepends=True)
    flipped = bytearray(lines[line - 1])
    flipped[len(flipped) // 2] ^= 1
    lines[line - 1] = bytes(flipped)
    path.write_bytes(b"".join(lines))
    before = path.read_bytes()
    for attempt in (lambda: Journal.open(path), lambda: list(read(path))):
        with pytest.raises(DamagedJournalError, match=rf"journal\.jsonl:{line}: ") as caught:
            attempt()
        assert f"head -n {line - 1}" in caught.value.hint
    assert path.read_bytes() == before


def test_a_missing_line_is_damage(path, build):
    """Numbers in the lines show that one was taken out, although all the others are whole."""
    fill(path, build)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:1] + lines[2:]))
    with pytest.raises(DamagedJournalError, match=r":2: .*field n is 3 instead of 2"):
        Journal.open(path)


def test_short_writes_are_continued(path, build, monkeypatch):
    """The operating system may take a few bytes at a time."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
    names = fill(path, build)
    monkeypatch.undo()
    assert models(path) == names


@pytest.mark.parametrize("failure", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_failing_write_leaves_the_journal_as_it_was(path, build, monkeypatch, call, failure):
    """A full disk, half-way through a row or at its fsync, costs that row only; later appends work."""
    names = fill(path, build)
    with Journal.open(path) as journal:
        length = path.stat().st_size
        write, fsync, calls = os.write, os.fsync, []

        def failing_write(fd, data):
            calls.append(data)
            if len(calls) > 1:
                raise OSError(failure, os.strerror(failure))
            return write(fd, data[:50])

        def failing_fsync(fd):
            calls.append(fd)
            if len(calls) == 1:
                raise OSError(failure, os.strerror(failure))
            fsync(fd)

        monkeypatch.setattr(os, call, failing_write if call == "write" else failing_fsync)
        with pytest.raises(InfrastructureError, match="cannot be written"):
            journal.append(Kind.RESULT, [build.result(model="lost")])
        assert path.stat().st_size == length
        monkeypatch.undo()
        journal.append(Kind.RESULT, [build.result(model="lost")])
    assert models(path) == [*names, "lost"]


def test_an_interrupt_between_write_and_fsync_leaves_no_half_row(path, build, monkeypatch):
    """Ctrl-C in the middle of an append is undone by the next one, so that no damage is left."""
    names = fill(path, build)
    with Journal.open(path) as journal:
        write = os.write

        def interrupted(fd, data):
            write(fd, data[:50])
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            journal.append(Kind.RESULT, [build.result(model="cut")])
        monkeypatch.undo()
        journal.append(Kind.END, [End(RunState.INTERRUPTED, 1.0)])
    assert models(path) == names


def test_a_missing_folder_or_journal_says_what_to_do(tmp_path):
    """What cannot be opened is named, with what to check."""
    with pytest.raises(InfrastructureError, match="cannot be opened"):
        Journal.open(tmp_path / "absent" / "journal.jsonl")
    with pytest.raises(UsageError, match="does not exist"):
        list(read(tmp_path / "journal.jsonl"))


def test_an_unknown_kind_is_a_newer_torchgauge(path):
    """A line of tomorrow, with the right checksum, is not called damage."""
    import zlib

    crc = zlib.crc32(b"{}", zlib.crc32(b"1:prophecy:"))
    path.write_bytes(b'{"n":1,"kind":"prophecy","crc":"%08x","data":{}}\n' % crc)
    with pytest.raises(UsageError, match="newer torchgauge"):
        Journal.open(path)
