"""The geometric mean of the ratios of two runs, over the common set, with an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from torchgauge.counted import counted
from torchgauge.records.comparison import MetricVerdict
from torchgauge.results.comparing.blank_verdict import blank_suite
from torchgauge.results.comparing.noise import Prior
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.comparing.run_ratio import CONFIDENCE, decided, judged
from torchgauge.results.log_ratio import ratio_of


def suite_of(timed: Sequence[MetricVerdict], dropped: int, policy: Policy) -> MetricVerdict | None:
    """The geometric mean over the common set; None for fewer than two cases.

    Cases of two runs share their hours, so errors may be fully correlated: the standard error of the mean
    is the mean of the standard errors, which bounds it whatever the correlation is.
    """
    if len(timed) < 2:
        return None
    suites = {each.pair_id.partition("/")[0] for each in timed}
    rule = policy.rule_of(suites.pop() if len(suites) == 1 else "", "", "suite")
    ratios = [each.ratio for each in timed if each.ratio is not None]
    log = float(np.mean(np.log(ratios)))
    reason = f"geometric mean over {counted(len(timed), 'case')}" + (
        f"; {counted(dropped, 'case')} without a ratio excluded" if dropped else ""
    )
    blank = blank_suite(rule, reason=reason, ratio=ratio_of(log), confidence=CONFIDENCE, launches=1)
    known = [each for each in timed if each.prior_spread is not None and each.spread is not None]
    if len(known) < len(timed):
        without = len(timed) - len(known)
        return replace(
            blank,
            reason=f"{reason}; no interval: {counted(without, 'case has', 'cases have')} no noise history",
        )
    errors = [math.hypot(each.spread or 0.0, each.prior_spread or 0.0) for each in known]
    error = float(np.mean(errors))
    df = min(each.prior_df for each in known)
    mean = decided(blank, log, 0.0, Prior(error, df), "")
    return replace(judged(replace(mean, p_adjusted=mean.p), rule.alpha, 0.0), reason=reason)
