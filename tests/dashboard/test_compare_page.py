"""Two sides compared: what counts as a difference, what is not comparable, and nothing left out."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from site_files import generator, small_shape
from store_builder import NOW

from torchgauge.dashboard import build_site
from torchgauge.dashboard.contrast import ASSUMED, FLOOR, Contrast, Side, Word, contrast
from torchgauge.dashboard.history import NOTHING_PLANNED, STATUSES, History
from torchgauge.dashboard.names import CaseName, Column
from torchgauge.dashboard.pages.noise import series_thresholds
from torchgauge.dashboard.site_data import read_site_data
from torchgauge.dashboard.snapshots import Snapshot, TorchBuild
from torchgauge.records import Status, Workload
from torchgauge.results.log_ratio import ratio_interval
from torchgauge.results.store import Store

PASS, OOM, CRASH, INFRA, SKIPPED = (
    STATUSES.index(s) for s in (Status.PASS, Status.OOM, Status.CRASH, Status.INFRA, Status.SKIPPED)
)
Three = tuple[float, float, float]


def history(values: list[tuple[Three, Three]], status: list[tuple[int, int]] | None = None) -> History:
    """Cases with a median, low and high at each of two snapshots."""
    workload = Workload("timm", "m", "inference", "float32", 1, "small", (), 1234)
    cases = tuple(
        CaseName(str(i), replace(workload, batch=i + 1), Column("dev", "eager", compiled=False), i)
        for i in range(len(values))
    )
    shape = len(values), 2
    return History(
        cases=cases,
        snapshots=tuple(Snapshot(f"s{i}", i, "2026-01-01", TorchBuild(), ()) for i in range(2)),
        status=np.array(status or [(PASS, PASS)] * len(values), np.uint8),
        values={"latency": np.array(values, np.float64).transpose(2, 0, 1)},
        marks={},
        when=np.zeros(shape, np.int64),
    )


def compared(found: History, threshold: float, *, lower: bool = True, alike: bool = True) -> Contrast:
    rows = np.arange(len(found.cases))
    return contrast(
        found, Side(rows, 0), Side(rows, 1), metric="latency", lower_is_better=lower,
        thresholds=np.full(len(rows), threshold), alike=np.full(len(rows), alike),
    )  # fmt: skip


def banded(median: float, percent: float) -> Three:
    return median, median * (1 - percent / 100), median * (1 + percent / 100)


ONE = math.nan


@pytest.mark.parametrize(
    ("a", "b", "threshold", "word"),
    [
        (banded(1, 1), banded(1.10, 1), 0.03, Word.WORSE),
        (banded(1, 1), banded(0.90, 1), 0.03, Word.BETTER),
        (banded(1, 1), banded(1.001, 1), 0.03, Word.UNCHANGED),
        # both intervals are tight, but the series moves that far by itself
        (banded(1, 0.1), banded(1.02, 0.1), 0.03, Word.UNCHANGED),
        # the intervals do not overlap, and the change is within the noise, but not surely
        (banded(1, 0.4), banded(1.027, 0.4), 0.03, Word.UNDECIDED),
        # the intervals overlap, and the ratio excludes 1
        (banded(1, 2), banded(1.035, 2), 0.03, Word.WORSE),
        (banded(1, 8), banded(1.06, 8), 0.03, Word.UNDECIDED),
        (banded(1, 8), banded(1.0, 8), 0.03, Word.UNDECIDED),
        # single samples: only the threshold speaks
        ((1, ONE, ONE), (1.10, ONE, ONE), 0.03, Word.WORSE),
        ((1, ONE, ONE), (1.01, ONE, ONE), 0.03, Word.UNCHANGED),
        # without history nothing is unchanged, and single samples say nothing
        (banded(1, 1), banded(1.001, 1), math.nan, Word.UNDECIDED),
        (banded(1, 1), banded(1.3, 1), math.nan, Word.WORSE),
        (banded(1, 1), banded(1.07, 1), math.nan, Word.UNDECIDED),
        ((1, ONE, ONE), (9, ONE, ONE), math.nan, Word.UNDECIDED),
        # what repeats to the last digit
        (banded(1, 0), banded(1, 0), 0.0, Word.UNCHANGED),
        (banded(1, 0), banded(1 + FLOOR / 2, 0), 0.0, Word.UNCHANGED),
    ],
)
def test_what_counts_as_a_difference(a: Three, b: Three, threshold: float, word: Word) -> None:
    found = compared(history([(a, b)]), threshold)
    assert Word(int(found.words[0])) is word


def test_higher_is_better_where_it_is() -> None:
    found = compared(history([(banded(1, 1), banded(1.2, 1))]), 0.03, lower=False)
    assert Word(int(found.words[0])) is Word.BETTER


def test_the_interval_of_a_ratio_covers_as_often_as_it_says() -> None:
    """Two means of noisy samples with 95 % intervals: that of the ratio holds 1 in 95 % of tries."""
    rng = np.random.default_rng(5)
    samples = rng.normal(0, 0.05, (2, 4000, 40))
    means, halves = samples.mean(axis=2), 1.96 * samples.std(axis=2, ddof=1) / math.sqrt(40)
    a, b = (np.exp(np.stack([means[i], means[i] - halves[i], means[i] + halves[i]])) for i in range(2))
    _, low, high = ratio_interval(a, b)
    assert np.mean((low <= 0) & (high >= 0)) == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(
    ("status", "word", "why"),
    [
        ((PASS, OOM), Word.ONLY_A, ""),
        ((CRASH, PASS), Word.ONLY_B, ""),
        ((CRASH, OOM), Word.INCOMPARABLE, "crash on A, OOM on B"),
        ((OOM, OOM), Word.INCOMPARABLE, "OOM on both"),
        ((PASS, INFRA), Word.INCOMPARABLE, "infra on B"),
        ((SKIPPED, PASS), Word.INCOMPARABLE, "skip on A"),
        ((PASS, NOTHING_PLANNED), Word.INCOMPARABLE, "not planned on B"),
    ],
)
def test_a_side_without_a_number_is_never_a_change(status: tuple[int, int], word: Word, why: str) -> None:
    nothing = (math.nan, math.nan, math.nan)
    found = compared(history([(banded(1, 1), nothing)], [status]), 0.03)
    assert Word(int(found.words[0])) is word
    assert list(found.reasons) == ([why] if why else [])
    assert found.n == 0


def test_a_degraded_pass_and_another_build_are_not_compared() -> None:
    values = [(banded(1, 1), banded(2, 1))]
    degraded = replace(history(values), marks={"degraded": np.array([[False, True]])})
    assert compared(degraded, 0.03).reasons == {"degraded on B": 1}
    assert compared(history(values), 0.03, alike=False).reasons == {"built differently": 1}


def test_the_mean_is_over_what_has_a_number_on_both_sides() -> None:
    values = [(banded(1, 1), banded(2, 1)), (banded(1, 1), banded(0.5, 1)), (banded(1, 1), (ONE, ONE, ONE))]
    found = compared(history(values), 0.03)
    assert found.n == 2
    assert found.mean[0] == pytest.approx(1)
    assert found.reasons == {"no number on B": 1}


def test_rows_stand_in_order_of_their_factor() -> None:
    values = [(banded(1, 1), banded(1 + step, 1)) for step in (0.1, 0.5, 0.2)]
    found = compared(history(values), 0.03)
    assert [row.case.number for row in found.rows(9, Word.WORSE)] == [1, 2, 0]
    assert found.rows(1, Word.WORSE)[0].factor == pytest.approx(math.log(1.5) / 0.03)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve nights of two devices, with latencies that step up by 8 %."""
    folder = tmp_path_factory.mktemp("compare")
    generator().generate(folder, small_shape(nights=12, models=8, steps=3, silent=0))
    build_site(folder / "store", folder / "site", now=NOW)
    return folder


def test_a_planted_step_is_found_and_its_neighbours_are_not(tmp_path: Path) -> None:
    """A step's night against the one before: most are worse, none is better, and little else differs."""
    generator().generate(tmp_path, small_shape(nights=40, models=12, steps=6, silent=0))
    planted = json.loads((tmp_path / "planted.json").read_text())["steps"]
    recent = read_site_data(Store.open(tmp_path / "store"), NOW).recent
    thresholds = series_thresholds(recent, "latency")
    found_steps, judged, others, all_others = 0, 0, 0, 0
    for step in planted:
        rows = np.flatnonzero(
            (recent.status[:, [step["night"] - 1, step["night"]]] != NOTHING_PLANNED).all(axis=1)
        )
        found = contrast(
            recent, Side(rows, step["night"] - 1), Side(rows, step["night"]), metric="latency",
            lower_is_better=True, thresholds=thresholds, alike=np.ones(len(rows), np.bool_),
        )  # fmt: skip
        for i, row in enumerate(rows.tolist()):
            case, word = recent.cases[row], found.words[i]
            names = case.device, case.workload.model, case.column.configuration
            if names != (step["device"], step["model"], step["configuration"]):
                others += int(word in (Word.BETTER, Word.WORSE))
                all_others += 1
            elif word not in (Word.INCOMPARABLE, Word.ONLY_A, Word.ONLY_B):
                judged += 1
                found_steps += int(word == Word.WORSE)
                assert word != Word.BETTER
    assert judged >= 3
    assert found_steps / judged >= 0.6
    assert others / all_others <= 0.03


def test_every_row_of_a_prepared_comparison_is_counted_once(made: Path) -> None:
    """Counts sum to the cases of the device, and what is not comparable is listed with its reason."""
    html = (made / "site" / "compare.html").read_text()
    sections = html.split('<section class="card comparison"')[1:]
    assert len(sections) == 3
    for section in sections:
        counts = [int(n) for n in re.findall(r'<li class="v-[a-z ]+"><b>(\d+)</b>', section)]
        assert len(counts) == 7
        assert sum(counts) == 16
        listed = re.findall(r"<li><b>(\d+)</b> [^<]+</li>", section)
        assert sum(int(n) for n in listed) == counts[-1]
        n, out = re.findall(r"n (\d+), (\d+) excluded", section)[0]
        assert int(n) + int(out) == 16
    assert "For a verdict use" in html


def test_the_noise_of_every_case_and_who_reported_are_files(made: Path) -> None:
    site = made / "site"
    for device in json.loads((site / "manifest.json").read_text())["devices"]:
        cases = json.loads((site / f"cases/{device['id']}.json").read_text())["cases"]
        noise = json.loads((site / f"latest/noise-{device['id']}.json").read_text())
        assert len(noise["subject"]) == len(noise["realised"]) == len(cases)
        assert all(len(values) == len(cases) for values in noise["thresholds"].values())
        assert any(value for value in noise["thresholds"]["latency"])
        assert noise["assumed"] == pytest.approx(ASSUMED, abs=1e-5)
    for folder in (site / "snapshots").iterdir():
        said = json.loads((folder / "environments.json").read_text())
        assert {f"{name}.core.json" for name in said["devices"]} == {
            p.name for p in folder.glob("*.core.json")
        }
        assert said["environments"]
