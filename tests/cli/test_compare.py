"""``torchgauge compare``: two runs, devices or configurations, with what differs and what was refused."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import stored_runs
from stored_runs import BEGIN, DAY, case, environment, result

from torchgauge import registry
from torchgauge.errors import UsageError
from torchgauge.records import METRICS, Better, Compared, Measurement, Metric, Status
from torchgauge.results.store import Store


@pytest.fixture
def runs(tmp_path) -> str:
    """A store with two runs of two configurations, the second on another torch and half as fast."""
    store = Store.open(tmp_path / "store", create=True)
    for number, (name, torch, factor) in enumerate((("old-1111", "2.9.0", 1.0), ("new-2222", "2.10.0", 2.0))):
        results = [
            result(case(), 1e-3 * factor, metrics={"peak_memory": 1e9}),
            result(case(configuration="fast"), 2.5e-4 * factor),
            result(case("dead"), status=Status.ERROR if number else Status.PASS),
        ]
        stored_runs.run(store, name, results, environment(torch=torch), at=BEGIN + number * DAY)
    return str(tmp_path / "store")


def test_two_runs(invoke, runs) -> None:
    """The counts first, what differs, and every case with ratio, interval and reason."""
    shown = invoke("compare", "latest~1", "latest", "--store", runs)
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert lines[0].startswith("old-1111 -> new-2222: 1 broken, 1 not_comparable, 2 undecided")
    assert "differs: torch.version: 2.9.0 -> 2.10.0" in shown.output
    assert re.search(r"0\.50+x \[0\.49", shown.output)
    assert "no noise history" in shown.output
    assert "1.00 ms -> 2.00 ms" in shown.output
    assert "outside the common set: toy/dead" in shown.output


def test_each_metric_is_named(invoke, runs, monkeypatch, tmp_path) -> None:
    """That of a package has a row, as step times have; others are counted by name."""
    shown = invoke("compare", "latest~1", "latest", "--store", runs).output
    assert "\nunchanged (metric and cases): status 2, peak_memory 1\n" in shown
    rate = Metric("acme_rate", "1/s", Better.HIGHER, "for tests", compared=Compared.RATIO, tolerance=0.1)
    monkeypatch.setattr(registry, "metrics", lambda: {**METRICS, rate.name: rate})
    store = Store.open(tmp_path / "acme", create=True)
    for number, value in enumerate((10.0, 5.0)):
        sampled = Measurement("acme_rate", "1/s", (value,) * 3)
        summaries = (stored_runs.summarise(sampled, rate),)
        measured = replace(result(case()), measurements=(sampled,), summaries=summaries)
        stored_runs.run(store, f"{number}", [measured], at=BEGIN + number * DAY)
    shown = invoke("compare", "latest~1", "latest", "--store", str(tmp_path / "acme")).output
    (row,) = [line for line in shown.splitlines() if "acme_rate" in line]
    assert re.search(r"undecided +acme_rate +10\.0 1/s -> 5\.00 1/s +0\.500x +toy/linear", row), row


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("old-1112", "latest"), "did you mean old-1111"),
        (("latest", "latest"), "compared with itself"),
        (("latest",), "compared with itself"),
        (("latest~1", "latest~7"), "there are 2 finished runs"),
        (("latest", "--config-a", "eager"), "--config-b is missing"),
        (("latest", "--config-a", "eager", "--config-b", "fats"), "did you mean fast"),
        (("old-1111", "latest", "--policy", "none.yaml"), "cannot be read"),
        (("old-1111", "latest", "--metric", "speed"), "is not a step time"),
    ],
)
def test_mistakes_are_told(invoke, runs, words, message) -> None:
    """What, where and what to try."""
    done = invoke("compare", *words, "--store", runs)
    assert isinstance(done.exception, UsageError)
    assert message in str(done.exception)
