"""The four words of a gate, from worst to best, and what each of them means to a check run and to a job."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from torchgauge.results.reports.report import Headline


class GateVerdict(str, Enum):
    """What a gate says; only ``pass`` is green."""

    REGRESSION = "regression"
    INCOMPLETE = "incomplete"
    UNDECIDED = "undecided"
    PASS = "pass"


CONCLUSIONS = {
    GateVerdict.PASS: "success",
    GateVerdict.REGRESSION: "failure",
    GateVerdict.UNDECIDED: "neutral",
    GateVerdict.INCOMPLETE: "action_required",
}
"""The conclusion of a check run; source: docs.github.com, "Create a check run"."""

TITLES = {
    GateVerdict.PASS: "Pass",
    GateVerdict.REGRESSION: "Regression",
    GateVerdict.UNDECIDED: "Undecided",
    GateVerdict.INCOMPLETE: "Incomplete: this is no pass",
}

_OF_HEADLINE = {
    Headline.REGRESSION: GateVerdict.REGRESSION,
    Headline.NOTHING_COMPARED: GateVerdict.INCOMPLETE,
    Headline.INCOMPLETE: GateVerdict.INCOMPLETE,
    Headline.UNDECIDED: GateVerdict.UNDECIDED,
    Headline.REPORTED: GateVerdict.PASS,
    Headline.IMPROVEMENT: GateVerdict.PASS,
    Headline.UNCHANGED: GateVerdict.PASS,
}


def of_headline(headline: Headline) -> GateVerdict:
    """The word for an A/B run."""
    return _OF_HEADLINE[headline]


def worst(verdicts: Iterable[GateVerdict]) -> GateVerdict:
    """The worst of ``verdicts``; nothing at all is incomplete."""
    found = set(verdicts)
    return next((each for each in GateVerdict if each in found), GateVerdict.INCOMPLETE)


def exit_code(verdict: GateVerdict, *, undecided_fails: bool = True) -> int:
    """1 for a regression, 3 for what is not known, 0 for a pass."""
    if verdict is GateVerdict.UNDECIDED:
        return 3 if undecided_fails else 0
    return {GateVerdict.REGRESSION: 1, GateVerdict.INCOMPLETE: 3}.get(verdict, 0)
