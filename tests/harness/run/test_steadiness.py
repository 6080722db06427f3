"""When the step times of a row are in doubt, and what a reader is told."""

from __future__ import annotations

import pytest

from torchgauge.harness.derived_series import ALONE, BESIDE
from torchgauge.harness.run.rows import summaries
from torchgauge.harness.run.steadiness import WIDEST, doubts
from torchgauge.records import Measurement


def found(
    *samples: float, contention: tuple[float, ...] = (), device: tuple[float, ...] = (), **facts
) -> str:
    """What is in doubt where the latency has ``samples``, in blocks 0, 1, 2 and so on."""
    blocks = tuple(range(len(samples)))
    measured = [Measurement("latency", "s", samples, blocks)]
    if contention:
        measured.append(Measurement("contention", "share", contention, tuple(range(len(contention)))))
    if device:
        measured.append(Measurement("latency_device", "s", device, blocks))
    return doubts(measured, summaries(measured, 0.95), facts)


STEADY = (1.0, 1.02, 0.98, 1.01, 0.99, 1.0, 1.03, 0.97, 1.0, 1.0, 1.01, 0.99)


def test_samples_that_say_as_little_as_five_are_in_doubt() -> None:
    """A slow machine that becomes slower: the interval is narrow, and the next minute lies outside of it."""
    drift = [1.0 + 0.001 * number for number in range(12)]
    assert found(*drift) == "its 12 samples are autocorrelated: their effective number is 1"
    assert found(*drift[:11]) == ""
    steps = [1.0] * 20 + [1.05] * 20
    assert "are autocorrelated" in found(*steps)
    assert found(*([1.0, 1.05] * 20)) == ""


def test_a_speedup_of_disturbed_rounds_is_in_doubt() -> None:
    """Both latencies may be steady, and the rounds of which they are made be others."""
    latency = Measurement("latency", "s", STEADY, tuple(range(12)))
    told = []
    for how in (ALONE, BESIDE):
        measured = [latency, Measurement("speedup", "ratio", (2.0,), (0,), how)]
        told.append(doubts(measured, summaries(measured, 0.95), {}))
    assert told == ["", "fewer than 6 rounds were undisturbed for both this case and eager"]


def test_a_wide_interval_is_in_doubt() -> None:
    """Half its width, relative to the median, is at most a tenth."""
    assert WIDEST == 0.10
    at_the_limit = [1.0 + WIDEST * (number % 3 - 1) * 0.999 for number in range(6)]
    assert found(*at_the_limit) == ""
    beyond = [1.0 + 0.155 * (number % 3 - 1) for number in range(6)]
    assert found(*beyond) == "its interval is 31% wide, above the limit of 20%"


@pytest.mark.parametrize(
    ("samples", "text"), [(1, "1 sample gives no interval"), (5, "5 samples give no interval")]
)
def test_few_samples_are_in_doubt(samples: int, text: str) -> None:
    """Six are the fewest of which the median has an interval at 95 %."""
    assert found(*[1.0] * samples) == text
    assert found(*[1.0] * 6) == ""


def test_mostly_contended_blocks_are_in_doubt_however_narrow_their_interval() -> None:
    """A neighbour that never rests slows every block alike: only the count of waiting tells."""
    taken = (0.47,) * 9 + (0.0,) * 3
    text = "other processes used one of its cores for 47% of the time in 9 of 12 blocks"
    assert found(*STEADY, contention=taken) == text
    assert found(*STEADY, contention=(0.47,) * 5 + (0.0,) * 7) == ""


def around(counted: tuple[int, ...], contended: tuple[int, ...]) -> str:
    """What is in doubt where blocks ``counted`` have steady times, and ``contended`` were left out."""
    shares = dict.fromkeys(counted, 0.0) | dict.fromkeys(contended, 0.9)
    measured = [
        Measurement("latency", "s", tuple(STEADY[: len(counted)]), counted),
        Measurement("contention", "share", tuple(shares.values()), tuple(shares)),
    ]
    return doubts(measured, summaries(measured, 0.95), {})


def test_clean_blocks_between_contended_ones_are_in_doubt() -> None:
    """They begin with the caches of others: with four busy neighbours they were seen 15 to 20 % slower."""
    text = "other processes used one of its cores for 90% of the time in 12 of 18 blocks"
    assert around((2, 5, 8, 11, 14, 17), tuple(n for n in range(18) if n % 3 != 2)) == text
    assert around((1, 2, 4, 5, 7, 8), (0, 3, 6)) == ""


def test_a_device_whose_own_clock_is_steady_did_not_notice_the_host() -> None:
    """What waits on an asynchronous device's host is known from the device's events alone."""
    taken = (0.5,) * 12
    assert found(*STEADY, contention=taken, device=STEADY) == ""
    wide = tuple(1.0 + 0.3 * (number % 3) for number in range(12))
    assert "other processes used" in found(*STEADY, contention=taken, device=wide)


def test_what_the_hypervisor_and_the_quota_take_is_said() -> None:
    """A tenth of the time is borne."""
    assert found(*STEADY, stolen_share=0.1, throttled_share=0.0) == ""
    assert found(*STEADY, stolen_share=0.25) == "the hypervisor took its cores for 25% of the time"
    assert found(*STEADY, throttled_share=0.4) == "the CPU quota took its cores for 40% of the time"
