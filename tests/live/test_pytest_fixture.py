"""A test of a project measures its own model, and a session is a run in a store."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest
import torch

import torchgauge as tg
from torchgauge.errors import UsageError
from torchgauge.live.pytest_fixture import LiveTest, LiveTests, devices_of
from torchgauge.live.result import keep
from torchgauge.records import METRICS
from torchgauge.results.stats import summarise

SOURCE = Path(tg.__file__).resolve().parent.parent
PROJECT = """
import torch

def test_sine(torchgauge):
    row = torchgauge.measure(torch.sin, torch.ones(4), configs=["eager"], seconds=0.1)
    assert row.passed
    assert row["eager"].case.device.name == (torchgauge.device or "cpu")

def test_other():
    pass
"""


def with_latency(result: tg.LiveResult, seconds: float) -> tg.LiveResult:
    """The result with that latency in 24 samples that hardly differ, and nothing in doubt."""
    rows = []
    for row in result.rows:
        samples = tuple(seconds * (1 + 1e-4 * ((7 * n) % 5)) for n in range(24))
        own = [one for one in row.measurements if one.metric == "latency"]
        own = [replace(one, samples=samples, blocks=tuple(range(24)), absent="") for one in own]
        summaries = tuple(summarise(one, METRICS["latency"]) for one in own)
        rows.append(replace(row, measurements=tuple(own), summaries=summaries, modifiers=()))
    return replace(result, rows=tuple(rows))


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run pytest over a project of one file; the plugin is named where it is not installed."""
    (tmp_path / "test_project.py").write_text(PROJECT)
    (tmp_path / "empty.ini").write_text("[pytest]\njunit_family = xunit2\n")
    known = any(each.value == "torchgauge.pytest_plugin" for each in metadata.entry_points(group="pytest11"))
    plugin = () if known else ("-p", "torchgauge.pytest_plugin")
    words = ("-m", "pytest", *plugin, "-p", "no:cacheprovider", "-c", "empty.ini", "-rs", "-q")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words, *arguments],
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
                "PYTHONPATH": str(SOURCE),
                "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    return run


@pytest.mark.torch
def test_rows_are_in_the_store_and_in_the_properties(start, tmp_path: Path) -> None:
    """A session is one run; a test is run once on each named device."""
    done = start("--torchgauge-store", "store", "--torchgauge-device", "cpu", "--junitxml", "junit.xml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert "in store" in done.stdout
    rows = tg.open(tmp_path / "store").results()
    assert rows["model"].tolist() == ["test_project.py-test_sine-cpu"]
    junit = (tmp_path / "junit.xml").read_text()
    assert '<property name="torchgauge.eager.status" value="pass"' in junit
    assert '<property name="torchgauge.eager.latency_s" value="' in junit


@pytest.mark.torch
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--torchgauge-compare", "latest"), "--torchgauge-compare needs a store"),
        (("--torchgauge-compare", "latest", "--torchgauge-store", "nowhere"), "nowhere"),
    ],
)
def test_a_mistake_ends_the_session(start, arguments: tuple[str, ...], said: str) -> None:
    """With pytest's code of a usage error, and what to try."""
    done = start(*arguments)
    assert done.returncode == 4, done.stdout + done.stderr
    assert said in done.stdout + done.stderr


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="pytest-xdist is not installed")
def test_a_store_is_refused_where_several_processes_would_write_it(start) -> None:
    """Each would write a run of some of the tests."""
    done = start("--torchgauge-store", "store", "-n", "2")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "try: pytest -n 0" in done.stdout + done.stderr


def test_a_regression_fails_and_an_undecided_test_is_skipped(tmp_path: Path, request) -> None:
    """Against earlier runs of the test, by the rule of ``torchgauge compare``."""
    first = LiveTest(LiveTests("", ""), request.node, None)
    found = first.measure(torch.sin, torch.ones(4), configs=["eager"], seconds=0.1)
    first.judge()  # nothing to compare with
    for number in range(5):
        keep(tmp_path / "store", [with_latency(found, 1e-3 * (1 + 1e-4 * number))])
    tests = LiveTests(str(tmp_path / "store"), "latest")
    for seconds, ending in ((1.5e-3, pytest.fail.Exception), (1e-3, None)):
        test = LiveTest(tests, request.node, None)
        test._own.append(with_latency(found, seconds))  # what is measured here would be as noisy as here
        if ending is None:
            test.judge()
        else:
            with pytest.raises(ending, match=r"latency regression speed-up 0\.\d+x"):
                test.judge()
    other = LiveTest(tests, request.node, None)
    other._own.append(with_latency(first.measure(torch.cos, torch.ones(4), name="other"), 1e-3))
    with pytest.raises(pytest.skip.Exception, match=r"has no row of this test|not comparable"):
        other.judge()


def test_devices_are_listed_or_all_that_are_present() -> None:
    """Without the option a test runs once, on the device of its model."""
    assert devices_of(None) == [None]
    assert devices_of("cpu, npu.1") == ["cpu", "npu.1"]
    assert devices_of("all")[0] == "cpu"


def test_comparing_needs_a_store() -> None:
    """The message names the option."""
    with pytest.raises(UsageError, match="needs a store"):
        LiveTests("", "latest")
