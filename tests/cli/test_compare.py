"""``torchgauge compare``: two runs, devices or configurations, with what differs and what was refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import stored_runs
from stored_runs import BEGIN, DAY, case, environment, result

from torchgauge.errors import UsageError
from torchgauge.records import Status
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
    assert "2.000 [1.99" in shown.output
    assert "no noise history" in shown.output
    assert "1.00 ms -> 2.00 ms" in shown.output
    assert "outside the common set: toy/dead" in shown.output


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
