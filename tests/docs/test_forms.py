"""The drawing of the way from a timing sample to a cell, held to what a sample becomes on that way."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.pages import performance, views
from torchgauge.dashboard.site_data import read_site_data
from torchgauge.harness.pool.derived_status import derive_statuses
from torchgauge.harness.pool.watch import Ending
from torchgauge.harness.run.rows import RowContext, row
from torchgauge.harness.worker.case_measurements import timings
from torchgauge.harness.worker.case_state import CaseState
from torchgauge.harness.worker.series import Block, Series
from torchgauge.records import Accuracy, Outcome, Phase, Status, Summary, to_plain
from torchgauge.results.journal import End, Kind, RunState
from torchgauge.results.store import Store
from torchgauge.testing import make_case, make_plan

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
MOST = 8
SECONDS = 0.0123


def _drawn() -> list[str]:
    """The forms of the drawing, in order: what each arrow leads from and to, once."""
    section = PAGE.read_text().partition("## From a timing sample to a cell")[2]
    drawing = re.search(r"```text\n(.*?)```", section, re.DOTALL)
    assert drawing is not None
    found: list[str] = []
    for line in drawing[1].splitlines():
        way = line.partition(" ")[2].partition("[")[0]
        found += [part.split(",")[0].split(" of a ")[0].strip() for part in way.split("->")]
    return list(dict.fromkeys(found))


def test_a_sample_takes_the_forms_that_are_drawn_and_no_other(tmp_path: Path) -> None:
    """From the clock of the worker to the text of a cell, through the files between the processes."""
    plan = make_plan(make_case())
    planned = plan.groups[0].cases[0]
    block = Block(SECONDS, SECONDS, None)
    series = Series(planned.case.key, lambda: None)
    for number in range(15):
        series.add(block, number)
    measurement = timings(series, None, "budget")[0]
    state = CaseState(planned, 0, measurements=[measurement], accuracy=Accuracy("eager"))
    outcome = state.told(Outcome(planned.case.key, Status.PASS, Phase.DONE))
    event = {"ev": "outcome", "outcome": to_plain(outcome)}
    ending = Ending([event], status=0, phase=Phase.DONE)
    assert derive_statuses([planned], ending, lambda: False).outcomes == {planned.case.key: outcome}
    result = row(plan, planned, outcome, RowContext(started_at=1.0))
    assert [type(each) for each in result.summaries] == [Summary]
    store = Store.open(tmp_path, create=True)
    with store.begin(plan).open_journal() as journal:
        journal.append(Kind.RESULT, [result])
        journal.append(Kind.END, [End(RunState.COMPLETE, 2.0)])
    store.finish(plan.run_id)
    latest = read_site_data(store, 3.0).latest
    (entry,) = latest.entries.values()
    assert type(entry) is Entry
    number = entry.numbers["latency"]
    view = next(each for each in views.views(latest) if each.file == "performance.html")
    readers = views.Readers(latest, {})
    reading = readers.of(view)(entry)
    page = performance.performance_page(latest, view, (view,), readers, {})
    text = page.rows[0].cells
    assert "12.30" in text
    assert _drawn() == [
        *(type(form).__name__ for form in (block, series, measurement, outcome, result)),
        "row of summaries", type(reading).__name__, "text of the cell",
    ]  # fmt: skip
    assert number["median"] == measurement.samples[7] == series.wall[7] == block.wall == reading.value
    assert number.keys() - {"run_id", "case_key"} < set(replace(result.summaries[0]).__dict__)
    assert len(_drawn()) <= MOST
