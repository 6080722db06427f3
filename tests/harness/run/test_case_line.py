"""The line of a case: a ratio that fits the medians beside it, its doubt, and a width that holds."""

from __future__ import annotations

import pytest

from torchgauge.harness.run.case_line import LINE, case_line, ratio_text
from torchgauge.records import Better, Modifier, Result, Status, Summary
from torchgauge.testing import make_case, make_result


def summary(
    metric: str, median: float | None, low: float | None = None, high: float | None = None
) -> Summary:
    """A summary of a step's time or of a ratio; without a median it says why there is none."""
    unit, better = ("s", Better.LOWER) if metric == "latency" else ("ratio", Better.HIGHER)
    absent = "" if median is not None else "eager and this configuration have no common round"
    return Summary(metric, unit, better, 12, median, low, high, 0.95, "order-statistic", absent=absent)


def row(configuration: str, *found: Summary, model: str = "noop", **fields: object) -> Result:
    """A pass with the numbers ``found``."""
    return make_result(make_case(model, configuration), summaries=found, **fields)


EAGER = row("eager", summary("latency", 0.0339))
DOUBT = {"modifiers": (Modifier.UNSTEADY,), "facts": (("unsteady", "other processes used one of its cores"),)}


def line(result: Result, width: int = LINE) -> str:
    """The line of ``result`` beside eager of 33.9 ms."""
    return case_line("[2/24]", result.case.workload.model, result, EAGER, width)


def test_a_ratio_stands_beside_the_medians_that_it_fits() -> None:
    """Whoever divides 33.9 by 30.1 finds a number in the interval."""
    fits = row("inductor", summary("latency", 0.0301), summary("speedup", 1.13, 1.1, 1.15))
    assert line(fits) == "[2/24] noop inductor: pass 30.1 ms, 1.13x [1.10, 1.15]"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            summary("speedup", 0.47, 0.4, 0.6),
            "no ratio: the machine's speed changed: paired rounds give 0.470x, medians 67.0x",
        ),
        (summary("speedup", 67.0), "no ratio: 12 paired rounds gave no interval"),
        (
            summary("speedup", None),
            "no ratio: eager and this configuration have no common round",
        ),
    ],
)
def test_where_nobody_knows_the_ratio_the_line_says_why(found: Summary, said: str) -> None:
    """Rounds and medians that contradict each other are two numbers of which neither is told as known."""
    assert ratio_text(row("inductor", summary("latency", 506e-6), found), EAGER) == said


def test_a_doubtful_number_says_so_on_its_line() -> None:
    """Rough numbers, the word for the doubt and its reason; the gravest of several has the reason."""
    found = (summary("latency", 0.0301), summary("speedup", 1.13, 1.1, 1.15))
    assert line(row("inductor", *found, **DOUBT)) == (
        "[2/24] noop inductor: pass about 30 ms, about 1.1x [1.10, 1.15], unsteady (other processes used...)"
    )
    both = {
        "modifiers": (Modifier.DEGRADED, Modifier.UNSTEADY),
        "facts": (("degraded", "2 operators ran on the host"), ("unsteady", "its clock did not advance")),
    }
    assert line(row("inductor", *found, **both)).endswith("unsteady, degraded (2 operators...)")
    failed = make_result(make_case(configuration="inductor"), Status.INFRA, reason="clocks contradict")
    assert line(failed) == "[2/24] noop inductor: infra (clocks contradict)"
