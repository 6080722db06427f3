"""The noise that the cases of one run have in common: what a run without history knows of launch spreads.

Three launches of one case know little of its spread; those of three hundred cases know how large spreads are
and how much they differ. Smyth's empirical Bayes (Statistical Applications in Genetics and Molecular Biology
3, 2004, section 6.2) fits a scaled F distribution to all sample variances: its scale is the prior's variance
and its second degrees of freedom are what the prior is worth, few where cases differ much in noise. Spreads
enter as of the first three launches of every case, before anything was decided by them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.special import digamma, polygamma

from torchgauge.results.comparing.noise import MAX_PRIOR_DF, Prior

LAUNCHES = 3
"""Launches of each case that enter."""

FEWEST_CASES = 20
"""Fewer cases say too little of how much spreads differ."""


def pooled_prior(series: Iterable[Sequence[float]]) -> Prior | None:
    """The prior from the log ratios of each case's launches; None where too few cases say anything."""
    known = np.array([each[:LAUNCHES] for each in series if len(each) >= LAUNCHES])
    variances = known.var(axis=-1, ddof=1) if len(known) else np.empty(0)
    variances = variances[variances > 0]
    if len(variances) < FEWEST_CASES:
        return None
    half = (LAUNCHES - 1) / 2
    logs = np.log(variances) - digamma(half) + math.log(half)
    excess = float(logs.var(ddof=1) - polygamma(1, half))
    df = 2 * _inverse_trigamma(excess) if excess > 0 else math.inf
    scale = math.exp(float(logs.mean()) + (digamma(df / 2) - math.log(df / 2) if math.isfinite(df) else 0.0))
    return Prior(math.sqrt(scale), min(MAX_PRIOR_DF, df))


def _inverse_trigamma(value: float) -> float:
    """The argument of which the trigamma function is ``value`` (Smyth, 2004, appendix: Newton's method)."""
    found = 0.5 + 1 / value
    for _ in range(50):
        now = float(polygamma(1, found))
        step = now * (1 - now / value) / float(polygamma(2, found))
        found += step
        if abs(step) < 1e-8 * found:
            break
    return found
