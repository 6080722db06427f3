"""One display for campaigns and comparisons: plain lines in a log, a live line below them on a terminal."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from torchgauge.harness.run.progress import Progress
from torchgauge.harness.run.run_report import RunReport
from torchgauge.records import Better, Configuration, Modifier, Result, Status, Summary
from torchgauge.records.status import BESIDE_A_NUMBER
from torchgauge.results.store import Store
from torchgauge.testing import make_case, make_plan, make_result


class TurnedClock:
    """A clock that goes by hand."""

    at = 100.0

    def now(self) -> float:
        return self.at

    def steady(self) -> float:
        return self.at


class Terminal(io.StringIO):
    """A stream that is one."""

    def isatty(self) -> bool:
        return True


def test_a_display_that_fails_is_said_once_and_ends_no_case(tmp_path: Path) -> None:
    """It is called between rows: what it raised had ended all 149 cases of a run by a division by zero."""
    code = (
        "from torchgauge.harness.run import progress;"
        "progress.case_line = lambda *_, **__: 1 / 0;"
        "from torchgauge.cli.main import main; main()"
    )
    words = ("run", "toy", "--models", "noop,sum", "--device", "fake", "--store", str(tmp_path / "store"))
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stderr.count("note: progress cannot be shown (ZeroDivisionError: division by zero)") == 1
    (run,) = Store.open(tmp_path / "store").runs()
    assert (run.state.value, run.planned) == ("complete", 4)
    assert "infra" not in done.stderr
    assert "/4 pass" in done.stderr  # the summary is no part of it


def _lines(*results: Result) -> list[str]:
    stream = io.StringIO()
    plan = make_plan(*(each.case for each in results))
    progress, report = Progress(stream), RunReport(plan.run_id, len(results))
    progress.start(plan, report)
    for each in results:
        report.counts[each.status] += 1
    progress.results(results, report)
    assert [line for line in stream.getvalue().splitlines() if len(line) > 100] == []
    lines = (line.partition(" | ")[0] for line in stream.getvalue().splitlines())
    return [line for line in lines if line.startswith("[")]


def test_many_configurations_that_cannot_run_are_counted() -> None:
    """Thirty that a library refuses would hide the four that ran; a few keep lines of their own."""
    ran = make_result(make_case())
    refused = [
        make_result(make_case(configuration=f"config-{number}"), Status.UNSUPPORTED, reason=reason)
        for number, reason in enumerate(["no kernel", "no kernel", "another device", "no kernel"])
    ]
    assert _lines(ran, *refused[:3]) == [
        "[1/4] noop eager: pass",
        "[2/4] noop config-0: unsupported (no kernel)",
        "[3/4] noop config-1: unsupported (no kernel)",
        "[4/4] noop config-2: unsupported (another device)",
    ]
    assert _lines(ran, *refused) == [
        "[1/5] noop eager: pass",
        "[5/5] noop: 4 unsupported (no kernel and 1 other reason)",
    ]


def test_no_line_of_a_case_is_longer_than_100_characters() -> None:
    """Long names, reasons and configurations, in a grid of modes; the summary has them in full."""
    long, reason = "a_model_of_mine_with_a_long_name" * 3, "other processes used one of its cores " * 9
    doubt = {"modifiers": (Modifier.UNSTEADY, Modifier.LEAKS), "facts": (("unsteady", reason),)}
    rows = [
        replace(_timed("inductor-max-autotune-no-cudagraphs-channels-last", 0.0301, 1.13), **doubt),
        make_result(make_case(long), Status.CRASH, reason=reason),
        make_result(make_case(long, mode="training"), summaries=_timed("eager", 1.0).summaries, **doubt),
        *(
            make_result(make_case(f"{long}{i}", f"config-{j}"), Status.UNSUPPORTED, reason=reason)
            for i in range(2)
            for j in range(3 + i)
        ),
    ]
    lines = _lines(*rows)
    assert re.match(r"\[1/10\] noop.* inductor-max-autotune-.*: pass about 30 ms, about 1\.1x \[", lines[0])
    assert re.match(r"\[3/10\] a_model_.*\.\.\. training eager: pass about 1\.0 s", lines[2])


def test_a_mark_is_explained_once_where_it_appears() -> None:
    """In at most ten words, of the number beside it."""
    stream = io.StringIO()
    rows = [
        replace(_timed("eager", 1.0), case=make_case(name), modifiers=(Modifier.UNSTEADY,))
        for name in ("noop", "sum")
    ]
    plan = make_plan(*(each.case for each in rows))
    progress, report = Progress(stream), RunReport(plan.run_id, 2)
    progress.start(plan, report)
    for row in rows:
        progress.results([row], report)
    meaning = "  unsteady: inexact time; excluded from means, claims, trends and comparisons"
    assert stream.getvalue().splitlines().count(meaning) == 1
    assert all(len(each.split()) <= 10 for each in BESIDE_A_NUMBER.values())


def test_a_batch_of_several_groups_is_told_group_by_group() -> None:
    """A job of a cluster brings models and checks at once: none is called by another's name."""
    rows = [make_result(make_case("noop")), make_result(make_case("sum"), Status.INFRA, reason="lost")]
    for suite, status in (("ops", Status.PASS), ("conformance", Status.PASS), ("ops", Status.ERROR)):
        rows += [
            make_result(make_case(f"{suite}-{status.value}-{number}", mode="check", suite=suite), status)
            for number in range(2)
        ]
    assert _lines(*rows) == [
        "[1/8] toy/noop inference eager: pass",
        "[2/8] toy/sum inference eager: infra (lost)",
        "[6/8] ops @fake: 2 pass, 2 error",
        "[8/8] conformance @fake: 2 pass",
    ]


def _timed(name: str, seconds: float, speedup: float | None = None, layout: str = "") -> Result:
    """A pass of ``seconds`` in the process of ``layout``; without ``speedup`` its process has no eager."""
    configuration = Configuration(name, name.partition("-")[0], memory_format=layout)
    found = [Summary("latency", "s", Better.LOWER, 12, seconds, seconds, seconds, 0.95, "x")]
    if configuration.compiled:
        absent = "" if speedup else "eager was not measured in this process"
        found.append(
            Summary(
                "speedup", "ratio", Better.HIGHER, 12, speedup, speedup, speedup, 0.95, "x", absent=absent
            )
        )
    return make_result(replace(make_case(), configuration=configuration), summaries=tuple(found))


def test_a_ratio_is_judged_by_the_eager_of_its_own_process() -> None:
    """Channels-last eager takes half again as long as eager; where it was not run, the line says so."""
    layout = "channels_last"
    rows = [
        _timed("eager", 102e-6),
        _timed("eager-channels-last", 154e-6, layout=layout),
        _timed("inductor", 51e-6, 2.0),
    ]
    beside = _lines(*rows, _timed("inductor-channels-last", 180e-6, 0.8556, layout))
    assert [re.sub(r" \[[^]]*\]$", "", line) for line in beside[2:]] == [
        "[3/4] noop inductor: pass 51.0 µs, 2.00x",
        "[4/4] noop inductor-channels-last: pass 180 µs, 0.856x",
    ]
    alone = _lines(rows[0], _timed("inductor-channels-last", 180e-6, layout=layout))
    assert alone[1].endswith("pass 180 µs, no ratio: eager was not measured in this process")


def test_the_live_line_moves_each_second_unless_something_is_timed() -> None:
    """A minute in which a model compiles shows a clock that goes; a step that is timed has no neighbour."""
    case, clock, stream = make_case(), TurnedClock(), Terminal()
    plan = make_plan(case)
    progress = Progress(stream, clock)
    progress.tick()  # before it began there is nothing to draw
    progress.start(plan, RunReport(plan.run_id, 1))
    grown = []
    for phase, seconds in [("compile", 1.5), ("compile", 0.2), ("measure", 5.0), ("check", 5.0)]:
        progress.event(plan.groups[0], {"ev": "phase", "phase": phase})
        clock.at += seconds
        before = len(stream.getvalue())
        progress.tick()
        grown.append(len(stream.getvalue()) > before)
    progress.stop()
    assert grown == [True, False, False, True]
