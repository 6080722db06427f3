"""No text of a store acts where a verb prints, exports or publishes it: each field of each record in it."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "dashboard"))

from hostile_records import (
    HOSTILE,
    MARK,
    csv_faults,
    html_parts,
    log_faults,
    markdown_faults,
    sample,
    spoiled,
    terminal_faults,
)
from store_builder import ACCURACY, CPU, DAY, EAGER, INDUCTOR, NOW, RunBuilder, environment, failure, timings
from store_builder import result as add_result

from torchgauge.cli.main import cli
from torchgauge.records import (
    Calibration,
    Case,
    Environment,
    Modifier,
    Realised,
    Result,
    RunSettings,
    Status,
    Workload,
)
from torchgauge.records.comparison import ComparisonPlan, MetricVerdict, Pair, SideSpec, Verdict
from torchgauge.results.comparing.comparison_store import begin_comparison, finish_comparison
from torchgauge.results.journal import End, Kind, RunState
from torchgauge.results.possible import impossible
from torchgauge.results.store import Store
from torchgauge.results.trends.trend_outcomes import TrendOutcome, TrendState, append_outcome

OLD, NEW, PAIRED = "20251230T000000Z-aaaaaaaa", "20251231T000000Z-bbbbbbbb", "20251231T010000Z-cccccccc"
STORED = (HOSTILE[0], HOSTILE[1], HOSTILE[3])
"""For a terminal and a spreadsheet, for Markdown and a page, and for a file; the others are for Markdown."""
PLAIN_NAME = re.compile(r"[A-Za-z0-9_.+-]{1,255}")


def _bases() -> Iterator[Result]:
    """Yield a pass with every doubt, and an error."""
    run = RunBuilder(NEW, NOW - DAY)
    run.environments.append(environment("cpu"))
    case = Case(Workload("toy", "model", shape=(("seq", 1), ("mask", "causal"))), INDUCTOR, CPU)
    facts = tuple((each.value, "why") for each in Modifier)
    timed = timings(random.Random(1), 0.01, 1.5, "cpu")
    numbers = [each for each in timed if each.metric in ("latency", "speedup")]
    yield add_result(
        run, case, measurements=numbers, accuracy=ACCURACY,
        realised=Realised("0" * 16, 1, 1, "float32[1]", ("a note",)), modifiers=(Modifier.FLAKY,),
        facts=(*facts, ("kernels", 41)),
    )  # fmt: skip
    case = replace(case, workload=replace(case.workload, batch=2))
    yield add_result(
        run,
        case,
        Status.ERROR,
        measurements=numbers,
        failure=failure(),
        log_excerpt="end of log",
        reason="why",
    )


def _rows(run: RunBuilder) -> None:
    """Add a row to ``run`` for each text of each base, each of a model of its own.

    A row whose metric has a hostile name or unit is not added: publication refuses its run.
    """
    for base in _bases():
        for text in STORED:
            for number, (where, spoilt) in enumerate(spoiled(Result, base, text)):
                if impossible(spoilt):
                    assert where.endswith((".metric", ".unit")), where
                    continue
                workload = spoilt.case.workload
                if ".workload.model" not in where:
                    workload = replace(workload, model=f"m{number}-{STORED.index(text)}-{base.status.value}")
                case = replace(spoilt.case, workload=workload)
                run.results.append(
                    replace(
                        spoilt,
                        run_id=run.run_id,
                        case=case,
                        case_id=spoilt.case_id if where == ".case_id" else case.id,
                        started_at=run.at + 60,
                    )
                )


def _write(path: Path) -> None:
    old, new = RunBuilder(OLD, NOW - 2 * DAY), RunBuilder(NEW, NOW - DAY)
    _rows(new)
    old.results += [replace(each, run_id=OLD, started_at=old.at + 60) for each in new.results]
    machine, speed = environment("cpu"), Calibration("cpu", "start", 1e11, 1e10, 1e-6, node="node")
    for run in (old, new):
        run.environments.append(machine)
        run.calibrations.append(speed)
    for text in STORED:
        for _, there in spoiled(Environment, machine, text):
            new.environments.append(there)
            case = Case(Workload("toy", f"e{len(new.environments)}"), EAGER, CPU)
            add_result(
                new, case, environment_id=there.id, measurements=timings(random.Random(1), 0.01, None, "cpu")
            )
        new.calibrations += [it for _, it in spoiled(Calibration, replace(speed, absent="why"), text)]
    for run in (old, new):
        run.write(path)
    store = Store.open(path)
    for text in STORED:
        for _, outcome in spoiled(TrendOutcome, sample(TrendOutcome), text):
            append_outcome(store, replace(outcome, state=TrendState.SUSPECTED))
    _compare(store)


def _compare(store: Store) -> None:
    verdicts, pairs = [], []
    for text in STORED:
        base = replace(sample(MetricVerdict), metric="latency", unit="s", verdict=Verdict.REGRESSION)
        for where, spoilt in spoiled(MetricVerdict, base, text):
            case = Case(Workload("toy", f"v{len(pairs)}"), INDUCTOR, CPU)
            pair = Pair(case, case)
            pairs.append(pair)
            told = spoilt if where == ".pair_key" else replace(spoilt, pair_key=pair.key)
            verdicts.append(replace(told, control=False))
    side = SideSpec(HOSTILE[0], HOSTILE[1], ((HOSTILE[2], HOSTILE[4]),), HOSTILE[0])
    plan = ComparisonPlan(PAIRED, NOW, HOSTILE, RunSettings(), side, side, tuple(pairs), (), 1, HOSTILE[0])
    folder = begin_comparison(store, plan)
    with folder.open_journal() as journal:
        journal.append(
            Kind.ENVIRONMENT, [it for _, it in spoiled(Environment, environment("cpu"), HOSTILE[0])]
        )
        journal.append(Kind.VERDICT, verdicts)
        journal.append(Kind.END, [End(RunState.COMPLETE, NOW)])
    finish_comparison(store, folder, plan)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store in which each text of each record is hostile somewhere."""
    path = tmp_path_factory.mktemp("hostile") / "store"
    _write(path)
    return path


VERBS = {
    "ops blockers": ("", "--markdown", "--csv", "--json"),
    "results claim": ("--list", "compiled-speedup --device cpu", "compiled-speedup --device cpu --markdown"),
    "compare": (f"{OLD} {NEW}", f"{OLD} {NEW} --json"),
    "results compat": ("", "--format markdown", "--format csv", "--format json", "--expand"),
    "dashboard build": (),
    "suites expect": ("--dry-run --suite toy",),
    "results export": (
        f"{NEW} --format dynamo-csv --out OUT/a", f"{NEW} --format dynamo-expected --out OUT/b",
        f"{NEW} --format hud-v3 --out OUT/c.json", "--csv OUT/e", "--parquet OUT/f", "--csv OUT/rows.csv",
    ),
    "gate": (PAIRED, f"{OLD} {NEW}", f"{PAIRED} --json"),
    "results noise suggest": ("",),
    "results noise": ("",),
    "report": (f"{NEW}", f"{PAIRED}", f"{NEW} --format junit", f"{PAIRED} --format junit --chart OUT/d.svg",
               f"{NEW} --format json", f"{PAIRED} --format json"),
    "results compact": ("--dry-run",),
    "results fsck": ("",),
    "results list": ("", "--json"),
    "results publish": (NEW,),
    "results query": ("", "--json", "--table summaries", "--columns case_id,reproduce,log_excerpt,failure"),
    "results show": (NEW, f"{NEW} --json", "toy/m1-*", "toy/m20-*", "toy/m40-*"),
    "results scorecard": ("", "--markdown", "--json"),
    "results trend": ("--no-keep", "--no-keep --all", "--no-keep --json"),
    "results triage": ("", "--markdown", "--csv", "--json"),
}  # fmt: skip
"""Verbs that show a store, with the words after each of them; OUT is a folder."""

OTHERS = {
    "measure": ("ab", "bisect", "check", "doctor", "matrix", "ops judge", "plan", "repro", "run"),
    "read no store": ("ops census", "results import", "results merge", "results push"),
    "show records that test_hostile_records.py has": (
        "ci collect", "ci gate", "ci plan", "ci report issues", "ci report upstream", "ci run",
        "ci suspects list", "ci suspects measure", "ci suspects settle", "ci watch", "dashboard publish",
        "results remove",
    ),
}  # fmt: skip
"""Other verbs with a store, by why they are not typed here."""


def _commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the words of each command that takes a store."""
    if any("--store" in option.opts or option.name == "stores" for option in command.params):
        yield " ".join(words)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from _commands(command.get_command(context, name), (*words, name))


def test_every_verb_that_takes_a_store_is_tried_or_has_its_reason() -> None:
    """A new one cannot be forgotten."""
    assert {*_commands(cli)} == {*VERBS, *(name for names in OTHERS.values() for name in names)}


def _typed(store: Path, out: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchgauge.cli.main", *words]
    if words[0] != "dashboard":
        command += ["--store", str(store)]
    given = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, check=False, cwd=out, env=given)
    return subprocess.CompletedProcess(
        command, done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    )


def _faults(words: str, text: str) -> list[str]:
    if "--json" in words or "json" in words.split():
        json.loads(text or "{}")
        return [] if text.isascii() else ["not ASCII"]
    if "markdown" in words or (words.startswith("report") and "--format" not in words):
        return markdown_faults(text)
    if "junit" in words:
        ET.fromstring(text)
    return csv_faults(text) if "csv" in words and "export" not in words else terminal_faults(text)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "dashboard build"])
def test_no_text_of_a_store_acts_where_a_verb_prints_it(verb: str, store: Path, tmp_path: Path) -> None:
    """Not on a terminal, in a job's log, on a page or in a spreadsheet; and no file leaves its folder."""
    out = tmp_path / "deep" / "folder"
    out.mkdir(parents=True)
    for number, more in enumerate(VERBS[verb]):
        words = f"{verb} {more}"
        ci = {"GITHUB_ACTIONS": "true"} if number == 0 else {}
        done = _typed(store, out, *words.replace("OUT", str(out)).split(), **ci)
        assert "Traceback" not in done.stderr, (words, done.stderr[-2000:])
        assert (words, _faults(words, done.stdout)) == (words, [])
        assert (words, terminal_faults(done.stderr)) == (words, [])
        assert (words, log_faults(done.stdout + done.stderr) if ci else []) == (words, [])
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["folder"]
    _check_files(out)


def _check_files(folder: Path) -> None:
    """Assert that each file in ``folder`` has a plain name and nothing that acts."""
    for path in folder.rglob("*"):  # may be empty: most verbs write none
        assert PLAIN_NAME.fullmatch(path.name), path
        text = path.read_text(encoding="utf-8") if path.suffix in (".csv", ".html", ".svg", ".xml") else ""
        if path.suffix == ".csv":
            assert (path.name, csv_faults(text)) == (path.name, [])
        elif text:
            assert (path.name, html_parts(text)[1]) == (path.name, [])


def test_the_pages_of_a_store_hold_its_texts_and_none_of_them_acts(store: Path, tmp_path: Path) -> None:
    """Elements, links and names of files are those of torchgauge."""
    site = tmp_path / "site"
    done = _typed(
        store, tmp_path, "dashboard", "build", str(store), "--out", str(site), "--now", "2026-01-01T12:00"
    )
    assert done.returncode == 0, done.stderr
    assert terminal_faults(done.stdout + done.stderr) == []
    _check_files(site)
    assert MARK in (site / "compatibility.html").read_text(encoding="utf-8")
