"""A device whose clocks contradict each other gets no number: from `torchgauge run` to row and page."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchgauge.records import STEP_TIMES, Cause, Status

sys.path.insert(0, str(Path(__file__).parent))
from simulated_run import Command, command, deviation, measure

pytestmark = pytest.mark.torch
SLOW = "kernel_us=8000"
"""What each operator takes on the device: far more than on the host that gives it out, busy or not."""
LYING = f"{SLOW},synchronize_does_not_wait"
WAITING = "synchronize does not wait: it returned"
EVENTS = "events contradict the host's clock: "


@pytest.fixture(scope="module")
def lying(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """A run, calibrations included, on a device that says that it is done when it has only begun."""
    return measure(tmp_path_factory.mktemp("lying"), LYING, "toy/mlp")


def test_a_device_that_does_not_wait_has_no_latency(lying: Command) -> None:
    """The row says what was seen; no step time of it is in any table, and nothing of the calibrations."""
    row = lying.row()
    assert (row.status, row.cause) == (Status.INFRA, Cause.CLOCK_CONTRADICTION), lying.text
    assert row.reason.startswith(WAITING)
    assert lying.exit_code == 3, "nothing was measured, and the run says so"
    assert "infra" in lying.text
    kept = {str(each["metric"]) for each in lying.table("summaries")}
    assert "flops" in kept, "what no clock was asked for is kept"
    assert not kept & STEP_TIMES
    assert not {str(each["metric"]) for each in lying.table("samples")} & STEP_TIMES
    calibrations = lying.table("calibrations")
    assert [each["at"] for each in calibrations] == ["start", "end"]
    assert [each["launch_s"] for each in calibrations] == [None, None]
    assert all(str(each["absent"]).startswith(WAITING) for each in calibrations)


def test_the_page_says_so(lying: Command, tmp_path: Path) -> None:
    """The site has no number of the case, and the reason where the number would be."""
    site = tmp_path / "site"
    built = command(tmp_path, "", "dashboard", "build", str(lying.store), "--out", str(site))
    assert built.exit_code == 0, built.text
    (page,) = (site / "models").glob("toy-mlp*.html")
    assert WAITING in page.read_text(encoding="utf-8")
    (cells,) = (site / "latest").glob("cells-npusim*.json")
    assert WAITING in cells.read_text(encoding="utf-8")
    assert "0/1 cases of models pass" in built.text


def test_both_clocks_that_lie_alike_are_found(tmp_path: Path) -> None:
    """Events that agree with a host that was told too early do not acquit it."""
    row = measure(tmp_path, f"{LYING},events=submission", "toy/mlp", "--no-calibration").row()
    assert (row.status, row.cause) == (Status.INFRA, Cause.CLOCK_CONTRADICTION)
    assert row.reason.startswith(WAITING)


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        ("microseconds", "elapsed_time seems to return microseconds instead of milliseconds"),
        pytest.param("nanoseconds", "elapsed_time seems to return nanoseconds", marks=pytest.mark.full),
        pytest.param("seconds", "elapsed_time seems to return seconds", marks=pytest.mark.full),
        ("zero", "events gave 0.0 s for work that took"),
        pytest.param("backwards", "events gave -0.", marks=pytest.mark.full),
        pytest.param("fast", "events gave 0.", marks=pytest.mark.full),
    ],
)
def test_events_that_cannot_be_are_named(tmp_path: Path, clock: str, words: str) -> None:
    """A clock that is no clock takes the whole case: nobody publishes the half of what contradicts itself."""
    row = measure(tmp_path, f"{SLOW},events={clock}", "toy/mlp", "--no-calibration").row()
    assert (row.status, row.cause) == (Status.INFRA, Cause.CLOCK_CONTRADICTION)
    assert row.reason.startswith(EVENTS)
    assert words in row.reason


def test_a_slow_device_that_is_waited_for_is_not_accused(tmp_path: Path) -> None:
    """The same device without the lies passes, and both clocks have the time that its operators take.

    A busy host adds to one of them, but far less than any lie.
    """
    done = measure(tmp_path, f"{SLOW},events=right", "toy/mlp", "--no-calibration")
    row = done.row()
    assert row.status is Status.PASS, done.text
    found = {each.metric: each.median for each in row.summaries}
    assert found["latency"] is not None
    assert found["latency_device"] is not None
    operators = found["latency"] / 8e-3
    assert operators > 1.9, "a step has at least two operators that compute"
    assert found["latency_device"] == pytest.approx(found["latency"], rel=0.4)


@pytest.mark.parametrize(
    ("fault", "status", "words"),
    [
        (LYING, "error", WAITING),
        (f"{SLOW},events=microseconds", "error", EVENTS),
        (f"{SLOW},events=right", "pass", ""),
    ],
)
def test_the_check_of_a_device_names_it(tmp_path: Path, fault: str, status: str, words: str) -> None:
    """`torchgauge check` asks the clocks, too, and leaves those alone that agree."""
    found, reason = deviation(tmp_path, fault, "device.clocks")
    assert found == status, reason
    assert words in reason


@pytest.mark.full
def test_the_doctor_calls_the_machine_unfit(tmp_path: Path) -> None:
    """Its calibration has no number of such a device, and the reason for it."""
    words = ("doctor", "--quick", "--device", "npusim", "--store", str(tmp_path / "store"))
    done = command(tmp_path, LYING, *words)
    assert WAITING in done.text
    assert "unfit" in done.text
