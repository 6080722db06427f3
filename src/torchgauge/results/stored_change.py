"""Has a number changed that a store holds? The rule for whatever was measured at another time.

What is measured now, both sides in pairs, has a rule of its own, which chooses how often it looks:
:func:`torchgauge.results.comparing.sequential.live_change`. Why there are these two and no third stands in
ADR 8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from torchgauge.records.comparison import Verdict

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Value = float | npt.NDArray[np.float64]


class Change(NamedTuple):
    """Flags, or arrays of them: whether a number became more, less, or stayed; none of them is undecided."""

    more: Any
    less: Any
    same: Any

    @property
    def verdict(self) -> Verdict:
        """What it is of one number of which less is better."""
        said = zip(self, (Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.UNCHANGED), strict=True)
        return next((verdict for flag, verdict in said if flag), Verdict.UNDECIDED)


def stored_change(
    log: Value, low: Value, high: Value, *, least: float | Value, margin: float | Value
) -> Change:
    """What the interval from ``low`` to ``high`` of the log ratio ``log`` says, of one number or of many.

    *More* where ``low > 0`` and ``log >= least``: the interval leaves no change out, and the estimate is as
    large as matters; *less* is its mirror image. *The same* where ``-margin < low`` and ``high < margin``:
    the whole interval lies within what is tolerated (two one-sided tests; Schuirmann, Journal of
    Pharmacokinetics and Biopharmaceutics 15, 1987). NaN says nothing, so that no interval decides nothing.

    The interval is the caller's: it has to cover what differs between two times, which no sample of one of
    them shows. ``least`` and ``margin`` are logarithms too.
    """
    return Change((low > 0) & (log >= least), (high < 0) & (log <= -least), (-margin < low) & (high < margin))
