"""Quarantine: in for what nights show, out after 14 clean ones, and rarely for nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from torchgauge.results.comparing.quarantine import (
    CLEAN_NIGHTS,
    MIN_DF,
    Night,
    quarantine_state,
    two_modes,
    visible_spread,
    why,
)
from torchgauge.results.comparing.sequential import LOOKS, Levels, detectable, moderate

QUIET = 0.01**2


def nights(count: int, first: int = 0, **fields) -> list[Night]:
    return [Night(first + n, **{"squares": 5 * QUIET, "df": 5, **fields}) for n in range(count)]


def test_a_quiet_case_is_never_in_quarantine() -> None:
    """One suspicion that did not repeat is none."""
    assert quarantine_state([]).reason == ""
    assert quarantine_state([*nights(20), Night(20, contradicted=1)]).reason == ""


def test_a_spread_needs_ten_launches() -> None:
    """Below that a large one is bad luck as well as noise."""
    wide = {"squares": 4 * 0.1**2, "df": 4}
    assert why(nights(2, **wide)) == ""
    assert "spread of 10.0%: 12 launches" in why(nights(3, **wide))


def test_the_limit_is_what_the_rule_itself_can_show() -> None:
    """At the limit the judge's own formula says that twelve launches show 5 %."""
    prior_df = float(MIN_DF)
    spread = visible_spread(prior_df)
    logs = np.tile([-1.0, 1.0], 6)
    logs *= spread / logs.std(ddof=1)
    evidence = moderate(logs, spread, prior_df)
    assert detectable(evidence, Levels(0.05, LOOKS)) == pytest.approx(0.05, abs=0.001)


def test_two_contradicted_suspicions_count_within_30_days() -> None:
    """The second one 29 days later counts, 30 days later it does not."""
    first = Night(0, contradicted=1)
    assert quarantine_state([first, Night(29, contradicted=1)]).reason
    assert not quarantine_state([first, Night(30, contradicted=1)]).reason
    assert quarantine_state([Night(0, contradicted=2)]).since == 0


def test_it_ends_after_14_clean_nights_in_a_row() -> None:
    """A night that is not clean begins the count again; what led to it counts no longer."""
    entry = [Night(0, contradicted=2)]
    assert quarantine_state([*entry, *nights(CLEAN_NIGHTS - 1, 1)]).clean == CLEAN_NIGHTS - 1
    assert quarantine_state([*entry, *nights(CLEAN_NIGHTS, 1)]) == quarantine_state([])
    broken = [*entry, *nights(10, 1), Night(11, alarms=1), *nights(10, 12)]
    assert quarantine_state(broken).clean == 10
    assert quarantine_state([*broken, *nights(4, 22)]).reason == ""
    again = [*entry, *nights(CLEAN_NIGHTS, 1), Night(15, contradicted=1)]
    assert quarantine_state(again).reason == ""
    assert quarantine_state([*again, Night(16, contradicted=1)]).since == 16


def test_days_without_a_measurement_are_no_clean_nights() -> None:
    """A case that is not measured does not get out by waiting."""
    assert quarantine_state([Night(0, contradicted=2), *nights(3, 100)]).clean == 3


def test_two_modes_are_found() -> None:
    """A/A ratios that jump between two values, in any mixture down to one in five."""
    rng = np.random.default_rng(1)
    for share in (0.25, 0.5, 0.75):
        for _ in range(50):
            low = rng.random(40) < share
            if not 9 <= low.sum() <= 31:
                continue
            logs = np.where(low, -0.04, 0.04) + rng.normal(0, 0.006, 40)
            assert two_modes(logs.tolist()) == pytest.approx(0.08, abs=0.01)


def test_noise_rarely_has_two_modes() -> None:
    """Of normal, uniform and heavy-tailed noise at most one sample in 100 is taken for two modes."""
    rng = np.random.default_rng(2)
    for n in (20, 30, 60):
        for draw in (
            lambda size: rng.normal(0, 0.03, size),
            lambda size: rng.uniform(-0.05, 0.05, size),
            lambda size: 0.02 * rng.standard_t(3, size),
        ):
            found = sum(two_modes(draw(n).tolist()) is not None for _ in range(1000))
            assert found <= 10, (n, found)


def test_modes_that_do_not_matter_or_outliers_are_none() -> None:
    """Within 1 %, below twenty launches, or one launch that went wrong."""
    small = [-0.002, 0.002] * 10
    assert two_modes(small) is None
    assert two_modes([-0.05, 0.05] * 9) is None
    assert two_modes([0.001 * n for n in range(-10, 10)] + [0.5]) is None
    assert two_modes([-0.05, 0.05] * 10) == pytest.approx(0.1)


def test_two_modes_put_a_case_into_quarantine_and_keep_it_there() -> None:
    """Clean nights alone do not release it while their ratios still have two modes."""
    logs = (-0.02, 0.02, -0.02, 0.02)
    spread = {"squares": 4 * 0.02**2, "df": 4, "ratios": logs}
    assert math.sqrt(4 * 0.02**2 / 4) < visible_spread(MIN_DF)
    found = quarantine_state(nights(20, **spread))
    assert "two modes, 4.1% apart" in found.reason
    assert found.clean >= CLEAN_NIGHTS
