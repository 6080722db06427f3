"""Fit, unfit or unknown: what speaks for and against a machine, and what a person reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchgauge.devices.calibration_conditions import Conditions
from torchgauge.devices.health import CheckState
from torchgauge.harness.doctor.doctor_run import Calibrated, Gap, Reading
from torchgauge.harness.doctor.fitness import Verdict, fitness
from torchgauge.records import METRICS, Environment, Measurement, Status
from torchgauge.results.calibration_history import Comparison, Series, Word
from torchgauge.results.stats import summarise

QUIET = Conditions(
    cores=4,
    seconds=10.0,
    load_1min=0.1,
    busy_before=0.01,
    stolen=0.0,
    swapped_pages=0,
    swap_used_bytes=0,
    memory_available_bytes=8 << 30,
    thermal_events=0,
    throttled_s=0.0,
    governor="performance",
)
USUAL = Comparison(Word.AS_USUAL, 7, 1e9, 0.01, -0.03, 0.05)
SLOW = Comparison(Word.SLOWER, 7, 1.3e9, -0.23, -0.27, -0.19)
HERE = Environment(
    "dev", (("device.model", "Some device"), ("torch.version", "2.13.0"), ("torch.threads", 4))
)


def reading(
    metric: str = "gemm_flops",
    part: str = "gemm",
    seen: Comparison = USUAL,
    width: float = 0.01,
    at: float = 1e9,
) -> Reading:
    """One number with an interval of plus and minus ``width``."""
    known = METRICS[metric]
    steps = (-8, 8, -4, 4, -4, 4, -4, 4, -1, 1, 0)  # none resembles the one before
    samples = tuple(at * (1 + width * step / 4) for step in steps)
    return Reading(
        Series(part, "float32", metric), summarise(Measurement(metric, known.unit, samples), known), seen
    )


def calibrated(*readings: Reading, gaps=(), conditions=QUIET, environment=HERE, earlier=7) -> Calibrated:
    """A calibration as it ended."""
    return Calibrated("run-1", "dev", environment, readings or (reading(),), tuple(gaps), conditions, earlier)


def bad(found) -> list[str]:
    """Names of what makes the machine unfit."""
    return [check.name for check in found.reasons if check.state is CheckState.FAIL]


def test_a_quiet_machine_as_fast_as_before_is_fit() -> None:
    """Nothing fails, and something was compared."""
    found = fitness(calibrated())
    assert (found.verdict, bad(found)) == (Verdict.FIT, [])
    assert all(check.state is CheckState.OK and not check.fix for check in found.reasons)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"busy_before": 0.6}, "other work"),
        ({"stolen": 0.05}, "stolen time"),
        ({"swapped_pages": 12}, "swap"),
        ({"thermal_events": 1}, "heat"),
        ({"throttled_s": 1.0}, "CPU quota"),
    ],
)
def test_what_disturbs_makes_a_machine_unfit_and_says_what_to_do(changes, name) -> None:
    """One cause, one reason, and a remedy."""
    found = fitness(calibrated(conditions=replace(QUIET, **changes)))
    assert (found.verdict, bad(found)) == (Verdict.UNFIT, [name])
    assert name in found.summary
    assert next(check.fix for check in found.reasons if check.name == name)


def test_a_system_that_tells_nothing_is_not_called_quiet() -> None:
    """What cannot be read is a warning."""
    found = fitness(calibrated(conditions=Conditions(cores=4, seconds=10.0)))
    assert [c.message for c in found.reasons if c.name == "other work"] == ["cannot be read on this system"]


def test_slower_than_usual_is_unfit_and_names_the_change() -> None:
    """The reason has the size of the change with its interval, and the size of the history."""
    found = fitness(calibrated(reading(seen=SLOW), reading("launch_s", "launch")))
    assert (found.verdict, bad(found)) == (Verdict.UNFIT, ["matrix product, float32"])
    assert "slower by 23% [-27%, -19%] than in 7 earlier calibrations" in found.summary


def test_wide_intervals_are_one_reason() -> None:
    """The widest are named with their width."""
    wide = [reading(width=0.4), reading("launch_s", "launch", width=0.3), reading("copy_bytes_per_s", "copy")]
    found = fitness(calibrated(*wide))
    assert bad(found) == ["repeatability"]
    assert "2 of 3 intervals exceed ±10%: matrix product, float32 ±40%" in found.summary


def test_a_device_in_use_is_unfit() -> None:
    """Telemetry of the device counts where it is there."""
    conditions = (("device.utilization_percent", 80.0), ("device.memory_free_bytes", 1 << 30))
    busy = replace(HERE, identity=(*HERE.identity, ("device.memory_bytes", 8 << 30)), conditions=conditions)
    found = fitness(calibrated(environment=busy))
    assert bad(found) == ["device in use"]
    assert "device memory" in [check.name for check in found.reasons if check.state is CheckState.WARN]


def test_events_that_contradict_the_clock_are_said() -> None:
    """Half the time between events is a warning: wall times still hold."""
    found = fitness(calibrated(reading(), reading("event_agreement", "events", at=0.5)))
    assert found.verdict is Verdict.FIT
    (said,) = [check for check in found.reasons if check.name == "event times"]
    assert (said.state, "latency_device" in said.fix) == (CheckState.WARN, True)


@pytest.mark.parametrize("status", [Status.ERROR, Status.CRASH])
def test_a_part_that_fails_is_unfit(status) -> None:
    """Its status and reason are the finding."""
    found = fitness(calibrated(gaps=[Gap("copy", "float32", status, "it broke")]))
    assert bad(found) == ["copy on the device"]
    assert f"{status.value}: it broke" in found.summary


@pytest.mark.parametrize(
    ("earlier", "words"),
    [(0, "repeat the calibration 3 times more"), (2, "repeat the calibration once more on a quiet machine")],
)
def test_without_history_nobody_knows(earlier, words) -> None:
    """The sentence says how many calibrations it takes."""
    found = fitness(calibrated(reading(seen=Comparison(Word.NO_HISTORY, earlier)), earlier=earlier))
    assert found.verdict is Verdict.UNKNOWN
    assert words in found.summary
