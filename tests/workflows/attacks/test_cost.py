"""Sets made to be dear: each costs at most linear time and ten times its size in memory, or has its word."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign_sets import (
    Files,
    Line,
    Night,
    files_of,
    import_sets,
    relined,
    replanned,
    rerowed,
    sealed,
    write_folder,
)

from torchgauge import autocorrelation
from torchgauge.records import environment as environment_module
from torchgauge.results.journal import results
from torchgauge.results.stats import all_lags, series_interval
from torchgauge.results.store import Store
from torchgauge.workflows import plain_text, result_set
from torchgauge.workflows.collect import MOST_REFUSALS, collect
from torchgauge.workflows.ingest import journal_check
from torchgauge.workflows.ingest.container import SIZES
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.ingest.validator import validate

ROW_OF_FACTS = sorted([f"fact{number}", "x" * 4000] for number in range(200))
GIT_HOST_BYTES = 100_000_000
"""GitHub refuses a file of more."""


def facts(count: int) -> Callable[[list[Line]], list[Line]]:
    """The environment with ``count`` conditions more."""

    def change(lines: list[Line]) -> list[Line]:
        at = next(i for i, (kind, _) in enumerate(lines) if kind == b"environment")
        record = json.loads(lines[at][1])
        record["conditions"] = [[f"{i:05}", 0] for i in range(count)]
        lines[at] = (b"environment", json.dumps(record).encode())
        return lines

    return change


def test_an_environment_has_its_id_once_and_not_for_each_fact(
    night: Night, good: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The id is a hash of all facts: for each of them it would take the square of their number."""
    hashed: list[int] = []
    digest = environment_module.digest
    monkeypatch.setattr(environment_module, "digest", lambda value: hashed.append(1) or digest(value))
    counts = []
    for number in (10, 5000):
        hashed.clear()
        store = Store.open(tmp_path / f"store-{number}", create=True)
        path = write_folder(tmp_path / f"set-{number}", relined(dict(good), facts(number)))
        taken, refused = import_sets(store, [path], night.expected, clock=night.clock)
        assert (len(taken), refused) == (1, [])
        counts.append(len(hashed))
    assert counts[0] == counts[1]


def recipe(text: bytes) -> Callable[[Files], Files]:
    def change(files: Files) -> Files:
        old, new = b'"recipe": {}', b'"recipe": {"a": ' + text + b"}"
        return sealed({**files, "plan.json": files["plan.json"].replace(old, new, 1)})

    return change


def reason(text: str) -> Callable[[Files], Files]:
    return lambda files: rerowed(files, lambda row: row.update(reason=text))


def first_line(kind: bytes, body: bytes, times: int = 1) -> Callable[[Files], Files]:
    return lambda files: relined(files, lambda lines: [lines[0], *[(kind, body)] * times, *lines[1:]])


def command(words: list[str]) -> Callable[[Files], Files]:
    def edit(plan: dict[str, Any]) -> None:
        plan["command"] = words

    return lambda files: replanned(files, edit)


DEAR: dict[str, tuple[Reason, Callable[[Files], Files]]] = {
    "lists in a recipe": (Reason.TOO_LARGE, recipe(b"[" + b"[]," * 400_000 + b"0]")),
    "words in a recipe": (Reason.TOO_LARGE, recipe(b'"' + b"a" * 2_000_000 + b'"')),
    "nesting in a recipe": (Reason.DEPTH, recipe(b"[" * 50_000 + b"]" * 50_000)),
    "a command of marks": (Reason.TEXT, command(["a" + "\u0301" * 31])),
    "marks upon one letter": (Reason.TEXT, reason("a" + "\u0301" * 31)),
    "marks out of order": (Reason.TEXT, reason("a" + "\u0301\u0316" * 30_000)),
    "a line without end": (Reason.TOO_LARGE, reason("a" * (1 << 20))),
    "nesting in a line": (Reason.SCHEMA, first_line(b"result", b"[" * 200_000 + b"]" * 200_000)),
    "nesting behind a backslash": (
        Reason.DEPTH, first_line(b"result", b'["\\n",' + b"[" * 200_000 + b"]" * 200_000 + b"]")
    ),
    "lines without end": (Reason.TOO_LARGE, first_line(b"note", b'{"text":"","at":1780000001.0}', 20_010)),
    "a journal of notes of another time": (Reason.TIME, first_line(b"note", b'{"text":"","at":0.0}', 20)),
    "samples without end": (
        Reason.TOO_LARGE,
        lambda f: rerowed(f, lambda row: row["measurements"][0].update(samples=[1e-3] * 2001, blocks=[])),
    ),
    "facts of a row without end": (
        Reason.TOO_LARGE, lambda f: rerowed(f, lambda row: row.update(facts=ROW_OF_FACTS))
    ),
    "facts without end": (Reason.TOO_LARGE, lambda f: relined(f, facts(30_000))),
}  # fmt: skip


@pytest.mark.parametrize("name", DEAR)
def test_what_is_dear_has_its_word(name: str, night: Night, good: Files) -> None:
    """Limits stand before what would be slow or large."""
    word, change = DEAR[name]
    with pytest.raises(RefusedSetError) as refused:
        validate(change(dict(good)), night.expected)
    assert refused.value.reason is word


def test_facts_of_many_rows_have_a_limit_together(
    night: Night, good: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each row may have is too much where thousands have it: they are in memory together."""
    told = {"facts": [["a", "x" * 900]]}
    assert validate(rerowed(good, lambda row: row.update(told)), night.expected).rows > 1
    monkeypatch.setattr(journal_check, "FACT_BYTES", 800)
    with pytest.raises(RefusedSetError, match="characters of facts") as refused:
        validate(rerowed(good, lambda row: row.update(told)), night.expected)
    assert refused.value.reason is Reason.TOO_LARGE


def test_every_file_of_a_set_fits_into_a_branch() -> None:
    """What is taken is kept on the history branch, and no Git host takes more than 100 million bytes."""
    assert SIZES
    assert max(SIZES.values()) < GIT_HOST_BYTES


def test_a_journal_that_would_not_fit_loses_the_beginnings_of_its_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job of many failures submits all rows with the ends of their logs, and no set that is refused."""
    night = Night(tmp_path / "night")
    log = "first line\n" + "noise\n" * 2000 + "the last words"
    monkeypatch.setattr(result_set, "JOURNAL_BYTES", 10_000)
    folder = night.pack(1, results=[night.result(each, log_excerpt=log) for each in night.cases[:2]])
    rows = list(results(folder / "journal.jsonl"))
    assert len(rows) == 2
    assert all(row.log_excerpt.endswith("the last words") for row in rows)
    assert all("left out" in row.log_excerpt and "first line" not in row.log_excerpt for row in rows)
    assert (folder / "journal.jsonl").stat().st_size < 10_000
    assert validate(files_of(folder), night.expected).rows == 2


@pytest.mark.parametrize("count", [256, 257, 500])
@pytest.mark.parametrize("step", [0, 1, 37])
def test_one_transform_says_what_every_lag_says(count: int, step: int) -> None:
    """The fast way of the parent gives the interval of the worker's, to the last bit."""
    samples = [1.0 + i // (step + 1) + (i * 7919 % 101) / 50 for i in range(count)]
    ranks = autocorrelation._ranks(samples)
    whole = sum(rank * rank for rank in ranks)
    found = all_lags(ranks)
    assert found == [autocorrelation._correlation(ranks, lag, whole) for lag in range(count // 2)]
    assert autocorrelation.interval_inflation(samples, all_lags) == autocorrelation.interval_inflation(
        samples
    )
    assert series_interval(samples).n == count


@pytest.mark.parametrize("text", ["a" + "\u0301" * 31, "\u0316\u0301" * 200])
def test_marks_upon_marks_are_written_out(text: str) -> None:
    """What a model prints is cleaned in linear time, and the cleaned text passes."""
    cleaned = plain_text.plain(text)
    assert plain_text.is_plain(cleaned)
    assert not plain_text.is_plain(text)
    assert "[U+0301]" in cleaned


def test_refusals_without_end_are_counted_and_a_jobs_own_is_kept(tmp_path: Path) -> None:
    """A job can upload thousands of artifacts, each a file of the history and a line of the log."""
    night = Night(tmp_path)
    mine = night.pack(1)
    (mine / "plan.json").write_bytes(b"{")
    for number in range(MOST_REFUSALS + 4):
        (mine.parent / f"a-{number}").mkdir()
    found = collect(mine.parent, night.expected, night.store, clock=night.clock)
    assert len(found.rejected) == MOST_REFUSALS + 1
    assert found.rejected[0].artifact == mine.name
    assert found.rejected[-1].detail == "5 artifacts were refused in addition to the 300 listed"
    assert len(list((night.store.path / "rejected").iterdir())) == MOST_REFUSALS + 1
