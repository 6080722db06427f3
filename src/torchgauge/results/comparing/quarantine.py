"""Quarantine of a case: in by itself for what its nights show, and out by itself after clean ones.

The rules are in ``docs/comparison.md``. A night is a day (UTC) on which the case was measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import stats

from torchgauge.results.comparing.sequential import LOOKS, Levels

WINDOW_DAYS = 30
"""Days that a reason may lie back."""

CLEAN_NIGHTS = 14
"""Nights in a row without a reason after which a case is released."""

MAX_CONTRADICTED = 2
"""Suspicions within the window that did not repeat."""

MIN_DF = 9
"""Degrees of freedom of a spread that may put a case into quarantine: ten launches."""

VISIBLE_CHANGE = 0.05
"""The change that twelve launches have to be able to show."""

MODES_FROM = 20
"""Launches of A/A from which two modes are looked for."""

MODE_DISTANCE = 6.0
"""Ashman's D from which two halves are two modes. Halves of one normal distribution have about 2.7, of a
uniform one 3.5; ``tests/results/comparing/test_quarantine.py`` measures how often noise reaches 6."""

MODE_SHARE = 0.2
"""Least share of launches in either mode; fewer are outliers."""


@dataclass(frozen=True)
class Night:
    """What one day showed of a case: ``day`` in days since the epoch, ``squares`` over ``df`` its variance.

    ``ratios`` are log ratios of launches of A/A; ``contradicted`` counts suspicions that did not repeat and
    ``alarms`` verdicts of a change on A/A.
    """

    day: int
    squares: float = 0.0
    df: float = 0.0
    ratios: tuple[float, ...] = ()
    contradicted: int = 0
    alarms: int = 0


@dataclass(frozen=True)
class QuarantineState:
    """Why a case is in quarantine (empty: it is not), since which day, and the clean nights in a row."""

    reason: str = ""
    since: int | None = None
    clean: int = 0


def quarantine_state(nights: Sequence[Night]) -> QuarantineState:
    """Where a case stands after ``nights``, which are in order of time, one for each day."""
    now, begin = QuarantineState(), -(10**9)
    inside: list[Night] = []
    for index, night in enumerate(nights):
        if not now.reason:
            first = max(begin, night.day - WINDOW_DAYS + 1)
            reason = why([each for each in nights[: index + 1] if each.day >= first])
            now = QuarantineState(reason, night.day) if reason else now
            inside = []
            continue
        inside = [*inside, night] if is_clean(night) else []
        now = QuarantineState(now.reason, now.since, len(inside))
        if len(inside) >= CLEAN_NIGHTS and not why(inside):
            now, begin = QuarantineState(), night.day + 1  # what led to it is served and counts no longer
    return now


def why(nights: Sequence[Night]) -> str:
    """The reason that ``nights`` give to put a case into quarantine; empty for none."""
    df = sum(night.df for night in nights)
    spread = math.sqrt(sum(night.squares for night in nights) / df) if df else 0.0
    if df >= MIN_DF and spread > visible_spread(df):
        return f"spread of {spread:.1%}: {LOOKS[-1]} launches cannot detect a change of {VISIBLE_CHANGE:.0%}"
    apart = two_modes([ratio for night in nights for ratio in night.ratios])
    if apart is not None:
        return f"the A/A ratios of the case have two modes, {math.expm1(apart):.1%} apart"
    contradicted = sum(night.contradicted for night in nights)
    if contradicted >= MAX_CONTRADICTED:
        return f"{contradicted} suspected changes within {WINDOW_DAYS} days were not confirmed"
    return ""


def is_clean(night: Night) -> bool:
    """Whether a night gives nothing against its case."""
    if night.contradicted or night.alarms:
        return False
    return night.df < 1 or math.sqrt(night.squares / night.df) <= visible_spread(MIN_DF)


@cache
def visible_spread(df: float) -> float:
    """The spread of launches (log ratio) at which twelve just show a change of 5 % in four of five cases.

    By the rule's own last look, moderated by a history of ``df`` degrees of freedom.
    """
    launches = LOOKS[-1]
    all_df = launches - 1 + min(20.0, df)
    level = Levels(VISIBLE_CHANGE, LOOKS).harm_now
    reach = stats.t.isf(level, all_df) + stats.t.isf(0.2, all_df)
    return float(math.log1p(VISIBLE_CHANGE) * math.sqrt(launches) / reach)


def two_modes(logs: Sequence[float]) -> float | None:
    """How far apart the two modes of ``logs`` are (log ratio); None where there is one mode or too few.

    The split with the least squares within; its halves are modes by Ashman's D (Ashman, Bird and Zepf,
    Astronomical Journal 108, 1994), unless the smaller one is a few outliers or both are within 1 %.
    """
    n = len(logs)
    if n < MODES_FROM:
        return None
    ordered = np.sort(np.asarray(logs, dtype=np.float64))
    least = max(2, math.ceil(MODE_SHARE * n))
    splits = np.arange(least, n - least + 1)
    below = np.cumsum(ordered)[splits - 1]
    between = below**2 / splits + (ordered.sum() - below) ** 2 / (n - splits)  # the more, the less is within
    split = int(splits[np.argmax(between)])
    low, high = ordered[:split], ordered[split:]
    apart = float(high.mean() - low.mean())
    if apart < 0.01:
        return None
    widths = math.sqrt(float(low.var(ddof=1) + high.var(ddof=1)))
    return apart if widths == 0 or math.sqrt(2) * apart / widths >= MODE_DISTANCE else None
