"""Series that are not of the wall times beside them: every rate and ratio is made again at the door."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign_sets import Files, Line, Night, files_of, relined, rerowed, shard_plan
from stored_runs import case
from submitted_sets import STEADY, Edit, Row, failed, kept, measured, refused

from torchgauge.harness.planning.configurations import configuration
from torchgauge.records import METRICS
from torchgauge.workflows.ingest.refusal import Reason
from torchgauge.workflows.ingest.series_check import FOLLOWS
from torchgauge.workflows.ingest.series_check import RATIOS as OVER_OTHERS


def series(facts: dict[str, Any] | None = None, **found: Any) -> Edit:
    """Samples of some metrics, with their summaries, and facts beside them."""

    def change(row: Row) -> None:
        measured(row, **found)
        row["facts"] = [list(pair) for pair in sorted((facts or {}).items())]

    return change


def renumbered(metric: str, blocks: Sequence[int], edit: Edit) -> Edit:
    """``edit``, and the samples of ``metric`` in other blocks."""

    def change(row: Row) -> None:
        edit(row)
        (found,) = [each for each in row["measurements"] if each["metric"] == metric]
        found["blocks"] = list(blocks)

    return change


def orphan(metric: str) -> Edit:
    """A row that ended in an error, and has a series that nothing is left of to make it from."""

    def change(row: Row) -> None:
        failed("error")(row)
        measured(row, **{metric: STEADY})

    return change


RATE = [1.0 / wall for wall in STEADY]
LATER = range(1, 21)
LEFT_OUT = {"latency": STEADY[:10], "contention": [0.0] * 10 + [0.5] * 10, "latency_contended": STEADY[10:]}
SERIES: dict[str, tuple[Reason, Edit]] = {
    "a higher throughput": (
        Reason.RECOMPUTED, series(latency=STEADY, throughput=[2.0 * rate for rate in RATE])
    ),
    "one block of a higher throughput": (
        Reason.RECOMPUTED, series(latency=STEADY, throughput=[RATE[0] * 1.001, *RATE[1:]])
    ),
    "a throughput of fewer blocks": (Reason.RECOMPUTED, series(latency=STEADY, throughput=RATE[:10])),
    "a throughput of other blocks": (
        Reason.RECOMPUTED, renumbered("throughput", LATER, series(latency=STEADY, throughput=RATE))
    ),
    "a throughput of items unsaid": (
        Reason.RECOMPUTED, series(latency=STEADY, throughput=[7.0 * rate for rate in RATE])
    ),
    "a throughput of other items than it says": (
        Reason.RECOMPUTED, series({"items_per_step": 7}, latency=STEADY, throughput=RATE)
    ),
    "a throughput of no items": (
        Reason.RECOMPUTED, series({"items_per_step": 0}, latency=STEADY, throughput=[0.0] * 20)
    ),
    "a throughput of half an item": (
        Reason.RECOMPUTED,
        series({"items_per_step": 0.5}, latency=STEADY, throughput=[0.5 * rate for rate in RATE]),
    ),
    "a throughput in no time": (Reason.RECOMPUTED, series(latency=[0.0] * 20, throughput=RATE)),
    "a floating-point rate of more operations": (
        Reason.RECOMPUTED, series(latency=STEADY, flops=[1e6], flops_rate=[2e6 * rate for rate in RATE])
    ),
    "a share of the peak that is twice its own": (
        Reason.RECOMPUTED, series(latency=STEADY, attainable=[1e-6], peak_share=[2e-6 * r for r in RATE])
    ),
    "a floating-point rate of operations that nobody counted": (
        Reason.RECOMPUTED, series(latency=STEADY, flops_rate=[1e6 * rate for rate in RATE])
    ),
    "half an operation": (Reason.NUMBER, series(latency=STEADY, flops=[0.5])),
    "a smaller launch overhead": (
        Reason.RECOMPUTED,
        series(latency=STEADY, latency_device=[1e-4] * 20, launch_overhead=[1e-5] * 20),
    ),
    "a launch overhead without the device's clock": (
        Reason.RECOMPUTED, series(latency=STEADY, launch_overhead=[1e-5] * 20)
    ),
    "a device's clock of fewer blocks": (
        Reason.ROW, series(latency=STEADY, latency_device=[1e-4] * 10)
    ),
    "CPU time of other blocks": (
        Reason.ROW, renumbered("latency_cpu", LATER, series(latency=STEADY, latency_cpu=STEADY))
    ),
    "a throughput without a latency": (Reason.UNFOUNDED, orphan("throughput")),
    "a speed-up without a latency": (Reason.UNFOUNDED, orphan("speedup")),
    "CPU time without a latency": (Reason.UNFOUNDED, orphan("latency_cpu")),
    "slow blocks left out that nobody disturbed": (
        Reason.ROW,
        renumbered(
            "latency_contended", range(10, 20), series(**{**LEFT_OUT, "contention": [0.0] * 20})
        ),
    ),
    "slow blocks left out, and nothing of what others took": (
        Reason.ROW, series(latency=STEADY, latency_contended=STEADY)
    ),
    "blocks left out that count": (Reason.ROW, series(**{**LEFT_OUT, "contention": [0.5] * 20})),
    "more contention than time": (Reason.NUMBER, series(latency=STEADY, contention=[1.5] * 20)),
    "half a graph": (Reason.NUMBER, series(latency=STEADY, graph_breaks=[0.5])),
    "half a byte": (Reason.NUMBER, series(latency=STEADY, peak_memory=[1000.5])),
    "a speed-up over nobody": (Reason.RECOMPUTED, series(latency=STEADY, speedup=[2.0] * 20)),
    "a speed-up over itself": (Reason.RECOMPUTED, series(latency=STEADY, speedup=[1.0] * 20)),
}  # fmt: skip


@pytest.mark.parametrize("name", SERIES)
def test_a_series_that_is_not_of_its_latency_is_refused(
    name: str, night: Night, good: Files, tmp_path: Path
) -> None:
    """Rates and ratios are made again of the wall times that came along, by the worker's own functions."""
    word, edit = SERIES[name]
    assert refused(night, rerowed(good, edit), tmp_path)[0] is word


TRUE_SERIES: dict[str, Edit] = {
    "throughput": series(latency=STEADY, throughput=RATE),
    "throughput of items that it says": series(
        {"items_per_step": 7}, latency=STEADY, throughput=[7 / wall for wall in STEADY]
    ),
    "share of the peak": series(
        latency=STEADY, attainable=[1e-6], peak_share=[1e-6 / wall for wall in STEADY]
    ),
    "floating-point rate": series(latency=STEADY, flops=[1e6], flops_rate=[1e6 / wall for wall in STEADY]),
    "launch overhead": series(
        latency=STEADY,
        latency_device=[1e-4] * 20,
        launch_overhead=[wall - 1e-4 for wall in STEADY],
    ),
    "blocks that others disturbed": renumbered("latency_contended", range(10, 20), series(**LEFT_OUT)),
}


@pytest.mark.parametrize("name", TRUE_SERIES)
def test_a_series_of_its_latency_is_kept(name: str, night: Night, good: Files, tmp_path: Path) -> None:
    """To the last digit: JSON carries floats without loss, and a division rounds alike everywhere."""
    files = rerowed(good, TRUE_SERIES[name])
    kept(night, files, tmp_path)
    assert (tmp_path / "store" / "runs" / night.run_id() / "journal.jsonl").read_bytes() == files[
        "journal.jsonl"
    ]


def side_by_side(folder: Path) -> Night:
    """A night whose first shard times two models, each by eager and by inductor."""
    night = Night(folder)
    models = [each.workload.model for each in night.cases[:2]]
    cases = [case(model, configuration) for model in models for configuration in ("eager", "inductor")]
    pool, shard = night.campaign.pools[0], shard_plan(1, 2, cases)
    night.campaign = replace(night.campaign, pools=(replace(pool, shards=(shard, *pool.shards[1:])),))
    night.cases = [*cases, *night.cases[2:]]
    return night


FAST = [wall / 2.0 for wall in STEADY]
RATIOS = [wall / fast for wall, fast in zip(STEADY, FAST, strict=True)]


def paired(
    rows: dict[str, Row], *, ratios: Sequence[float] = RATIOS, blocks: Sequence[int] = range(20)
) -> None:
    """Both models' rows with speed-ups, that of the first one as said."""
    for number, (eager, compiled) in enumerate((("a", "b"), ("c", "d"))):
        measured(rows[eager], latency=[wall * (1 + number) for wall in STEADY])
        measured(
            rows[compiled],
            latency=[wall * (1 + number) for wall in FAST],
            graph_count=[1.0],
            speedup=RATIOS if number else list(ratios),
        )
        rows[compiled]["measurements"][-1]["blocks"] = list(range(20) if number else blocks)


def swapped(rows: dict[str, Row]) -> None:
    """The compiled rows' latencies of each other's model, with their own speed-ups."""
    paired(rows)
    for part in ("measurements", "summaries"):
        rows["b"][part][0], rows["d"][part][0] = rows["d"][part][0], rows["b"][part][0]


def beside_others(rows: dict[str, Row], rounds: int) -> None:
    """The first speed-up of so many rounds, of which eager alone lost its cores in all but ten."""
    paired(rows, ratios=RATIOS[:rounds], blocks=range(rounds))
    measured(rows["a"], latency=STEADY, contention=[0.0] * 10 + [0.5] * 10)


def without_eager(rows: dict[str, Row]) -> None:
    paired(rows)
    failed("error")(rows["a"])


SPEEDUPS: dict[str, tuple[str, Callable[[dict[str, Row]], object], str]] = {
    "true": ("", paired, "abcd"),
    "true, eager behind": ("", paired, "badc"),
    "twice as high": ("its speed-up", lambda rows: paired(rows, ratios=[4.0] * 20), "abcd"),
    "one round higher": ("its speed-up", lambda rows: paired(rows, ratios=[*RATIOS[:-1], 2.1]), "abcd"),
    "of other rounds": ("its speed-up", lambda rows: paired(rows, blocks=range(1, 21)), "abcd"),
    "of the last row": ("its speed-up", lambda rows: paired(rows, ratios=[4.0] * 20), "cdab"),
    "true, of rounds that both had alone": ("", lambda rows: beside_others(rows, 10), "abcd"),
    "of rounds that eager alone lost": ("its speed-up", lambda rows: beside_others(rows, 20), "abcd"),
    "over the eager of another model": ("its speed-up", swapped, "abcd"),
    "over an eager that measured nothing": ("its speed-up", without_eager, "abcd"),
    "over an eager of another process": ("its speed-up", paired, "acbd"),
}


@pytest.mark.parametrize("name", SPEEDUPS)
def test_a_speed_up_is_that_over_the_eager_row_beside_it(name: str, tmp_path: Path) -> None:
    """Paired by round, of the same workload, wherever in its group the eager row stands."""
    problem, edit, order = SPEEDUPS[name]
    night = side_by_side(tmp_path / "night")
    files = files_of(night.pack(1, results=[night.result(each) for each in night.cases[:4]]))

    def change(lines: list[Line]) -> list[Line]:
        places = [i for i, (kind, _) in enumerate(lines) if kind == b"result"]
        rows = dict(zip("abcd", (json.loads(lines[i][1]) for i in places), strict=True))
        edit(rows)
        for place, letter in zip(places, order, strict=True):
            lines[place] = (b"result", json.dumps(rows[letter], separators=(",", ":")).encode())
        return lines

    files = relined(files, change)
    if problem:
        word, detail = refused(night, files, tmp_path)
        assert (word, problem in detail) == (Reason.RECOMPUTED, True)
    else:
        kept(night, files, tmp_path)


def over(walls: Sequence[float]) -> list[float]:
    """What is faster than ``FAST`` by two, over ``walls``."""
    return [wall / (fast / 2.0) for wall, fast in zip(walls, FAST, strict=True)]


OVER_COMPILED: dict[str, tuple[str, Sequence[float]]] = {
    "true": ("", over(FAST)),
    "one round higher": ("its speed-up (speedup_compiled)", [*over(FAST)[:-1], 2.1]),
    "over eager's": ("its speed-up (speedup_compiled)", over(STEADY)),
    "over its own": ("its speed-up (speedup_compiled)", [1.0] * 20),
}


@pytest.mark.parametrize("name", OVER_COMPILED)
def test_a_speed_up_over_the_compiled_model_is_that_over_what_is_planned_beside(
    name: str, tmp_path: Path
) -> None:
    """A quantised model is over ``inductor``, which its backend says; ``inductor`` itself is over nothing."""
    problem, ratios = OVER_COMPILED[name]
    night = Night(tmp_path / "night")
    model = night.cases[0].workload.model
    quantised = replace(case(model), configuration=configuration("torchao-int8-weight-only"))
    cases = [case(model), case(model, "inductor"), quantised]
    pool, shard = night.campaign.pools[0], shard_plan(1, 2, cases)
    night.campaign = replace(night.campaign, pools=(replace(pool, shards=(shard, *pool.shards[1:])),))
    night.cases = [*cases, *night.cases[2:]]
    good = files_of(night.pack(1, results=[night.result(each) for each in cases]))

    def told(ratios: Sequence[float], backend: str) -> Files:
        def edit(row: Row) -> None:
            own = row["case"]["configuration"]["backend"]
            walls = {"eager": STEADY, "inductor": FAST, "torchao": [fast / 2.0 for fast in FAST]}[own]
            graphs = {} if own == "eager" else {"graph_count": [1.0]}
            claim = {"speedup_compiled": list(ratios)} if own == backend else {}
            measured(row, latency=walls, **graphs, **claim)

        return relined(good, lambda lines: [_edited(*line, edit) for line in lines])

    if problem:
        word, detail = refused(night, told(ratios, "torchao"), tmp_path)
        assert (word, problem in detail) == (Reason.RECOMPUTED, True)
    else:
        assert refused(night, told([1.0] * 20, "inductor"), tmp_path / "other")[0] is Reason.RECOMPUTED
        kept(night, told(ratios, "torchao"), tmp_path)


def _edited(kind: bytes, body: bytes, edit: Edit) -> Line:
    if kind != b"result":
        return kind, body
    row = json.loads(body)
    edit(row)
    return kind, json.dumps(row, separators=(",", ":")).encode()


def test_the_guide_says_of_each_metric_what_is_known_of_it() -> None:
    """Each stands in one row of the table, and the word *divided* or *less* where it is made again."""
    guide = Path(__file__).parents[3] / "docs/how-to/contribute-results.md"
    rows = [line.split("|")[1:4] for line in guide.read_text().splitlines() if line.startswith("| `")]
    told = {name: again for names, again, *_ in rows for name in re.findall(r"`(\w+)`", names)}
    made = {name for name in METRICS if re.search("divided by|less", told[name])}
    assert made == {*FOLLOWS, *OVER_OTHERS}
