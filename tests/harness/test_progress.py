"""One display for campaigns and comparisons: plain lines in a log, a live line below them on a terminal."""

from __future__ import annotations

import io

import pytest

from torchgauge.harness.ab.progress import AbProgress
from torchgauge.harness.run.progress import LiveLines, Progress, describe_rows
from torchgauge.harness.run.run_report import RunReport
from torchgauge.records import Status
from torchgauge.records.comparison import Pair, Side
from torchgauge.testing import make_case, make_plan, make_result

PHASE = {"ev": "phase", "phase": "measure"}


class Terminal(io.StringIO):
    """A stream that is one."""

    def isatty(self) -> bool:
        return True


def _campaign(stream: io.StringIO) -> None:
    case = make_case()
    plan = make_plan(case)
    progress, report = Progress(stream), RunReport(plan.run_id, 1)
    progress.start(plan, report)
    progress.event(plan.groups[0], PHASE)
    progress.note("[bold]it is warm[/bold]")
    report.counts[Status.PASS] += 1
    progress.results([make_result(case)], report)
    progress.stop()


def _comparison(stream: io.StringIO) -> None:
    case = make_case()
    progress = AbProgress(stream)
    progress.begin()
    progress.launch(3, [Pair(case, case)])
    progress.event(Pair(case, case), Side.HEAD, PHASE)
    progress.stop()


def test_a_log_has_lines_and_no_phases() -> None:
    """No control sequence, and no more lines than there is news."""
    stream = io.StringIO()
    _campaign(stream)
    _comparison(stream)
    lines = stream.getvalue().splitlines()
    assert lines[:2] == ["run run: 1 case in 1 group, 0 done before", "note: [bold]it is warm[/bold]"]
    assert lines[2].startswith("[1/1] toy/noop inference float32 @fake: eager pass | took ")
    assert lines[3].startswith("launch 3: 1 pair, after ")
    assert len(lines) == 4
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize(
    ("told", "phase", "line"),
    [
        (_campaign, "toy/noop @fake: measure", "note: [bold]it is warm[/bold]"),
        (_comparison, "toy/noop, head: measure", "launch 3: 1 pair, after"),
    ],
)
def test_a_terminal_shows_the_phase_in_flight(told, phase: str, line: str) -> None:  # type: ignore[no-untyped-def]
    """The same lines stand above it, the cursor is shown again, and nothing is markup."""
    stream = Terminal()
    told(stream)
    shown = stream.getvalue()
    assert phase in shown
    assert line in shown
    assert shown.index("\x1b[?25l") < shown.rindex("\x1b[?25h")


def test_what_never_began_stops_quietly() -> None:
    """A run that is refused before it starts leaves the terminal alone."""
    stream = Terminal()
    LiveLines(stream).stop()
    assert stream.getvalue() == ""


def test_many_configurations_that_cannot_run_are_counted() -> None:
    """Thirty that a library refuses would hide the four that ran; a few keep their own words."""
    ran = make_result(make_case())
    refused = [
        make_result(make_case(configuration=f"config-{number}"), Status.UNSUPPORTED, reason=reason)
        for number, reason in enumerate(["no kernel", "no kernel", "another device", "no kernel"])
    ]
    assert describe_rows([ran, *refused[:3]]) == (
        "eager pass, config-0 unsupported (no kernel), config-1 unsupported (no kernel), "
        "config-2 unsupported (another device)"
    )
    assert describe_rows([ran, *refused]) == "eager pass, 4 unsupported (no kernel and 1 other reason)"
