"""Status, compile time, memory and graphs: one rule for each, and no verdict made of nothing."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from stored_runs import case, launch, outcome

from torchgauge.records import Cause, Measurement, Modifier, Status
from torchgauge.records.comparison import Action, Pair, Verdict
from torchgauge.results.comparing.noise import Prior
from torchgauge.results.comparing.other_metrics import judge_other_metrics
from torchgauge.results.comparing.policy import Policy

PAIR = Pair(case(), case())
MIB = float(2**20)


def judged(launches, metric, pair=PAIR, **options):
    """The verdict on ``metric``, or None where there is none."""
    found = judge_other_metrics(pair, launches, lambda name: Policy.default().rule(pair, name), **options)
    return next((each for each in found if each.metric == metric), None)


def launches(metric, base, head):
    """One launch for each pair of numbers."""
    return [
        launch(
            PAIR,
            number + 1,
            base=outcome(PAIR.base, **({} if ours is None else {metric: ours})),
            head=outcome(PAIR.head, **({} if theirs is None else {metric: theirs})),
        )
        for number, (ours, theirs) in enumerate(zip(base, head, strict=True))
    ]


def statuses(base, head):
    return [
        launch(PAIR, number + 1, base=outcome(PAIR.base, ours), head=outcome(PAIR.head, theirs))
        for number, (ours, theirs) in enumerate(zip(base, head, strict=True))
    ]


P, E, M, N = Status.PASS, Status.ERROR, Status.OOM, Status.NOT_RUN


@pytest.mark.parametrize(
    ("base", "head", "said", "confirmed"),
    [
        ([P, P, P], [P, P, P], Verdict.UNCHANGED, None),
        ([P, P], [E, E], Verdict.BROKEN, True),
        ([P], [E], Verdict.BROKEN, None),
        ([P, P, P], [E, P, P], Verdict.UNDECIDED, False),
        ([P, P, P, P], [E, P, M, P], Verdict.BROKEN, True),
        ([E, E], [P, P], Verdict.FIXED, True),
        ([E, E], [M, M], Verdict.NOT_COMPARABLE, None),
        ([E, P], [P, P], Verdict.UNDECIDED, None),
        ([E, P], [P, E], Verdict.UNDECIDED, None),
        ([P, P], [N, N], Verdict.NOT_COMPARABLE, None),
        ([P, P, P], [P, N, P], Verdict.UNCHANGED, None),
        ([], [], Verdict.NOT_COMPARABLE, None),
    ],
)
def test_status(base, head, said, confirmed) -> None:
    """Broken takes a second launch that agrees; what failed on both sides or never ran compares nothing."""
    found = judged(statuses(base, head), "status")
    assert (found.verdict, found.confirmed) == (said, confirmed)
    assert found.reason or said is Verdict.UNCHANGED


def test_a_broken_status_says_how_it_ended() -> None:
    """The reason names the side, the status, its cause and its phase."""
    dead = replace(outcome(PAIR.head, Status.OOM), cause=Cause.DEVICE, reason="out of memory")
    found = judged([launch(PAIR, n, head=dead) for n in (1, 2)], "status")
    assert found.reason == "head ends with oom (device) in eager: out of memory"


def test_nothing_else_is_said_of_a_side_that_failed() -> None:
    """Numbers of a launch in which a side failed enter nothing."""
    failed = [
        launch(PAIR, n, base=outcome(PAIR.base, peak_memory=1e8), head=outcome(PAIR.head, E, peak_memory=9e8))
        for n in (1, 2, 3)
    ]
    assert judged(failed, "peak_memory") is None
    assert judged(failed, "status").verdict is Verdict.BROKEN


@pytest.mark.parametrize(
    ("base", "head", "said"),
    [
        ([10, 10, 10], [13, 13, 13], Verdict.REGRESSION),
        ([13, 13, 13], [10, 10, 10], Verdict.IMPROVEMENT),
        ([10, 10, 10], [11, 11, 11], Verdict.UNCHANGED),
        ([1, 1, 1], [1.9, 1.9, 1.9], Verdict.UNCHANGED),
        ([10, 10], [20, 20], Verdict.UNDECIDED),
        ([10, 10, 30], [13, 9, 31], Verdict.UNDECIDED),
        ([10, 10, 10], [0, 0, 0], Verdict.NOT_COMPARABLE),
        ([None] * 3, [10, 10, 10], Verdict.NOT_COMPARABLE),
    ],
)
def test_compile_time(base, head, said) -> None:
    """20 % and 1 s, over three launches at least that agree on the direction."""
    found = judged(launches("compile_warm", base, head), "compile_warm")
    assert found.verdict is said
    assert found.reason or said in (Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.UNCHANGED)


@pytest.mark.parametrize("metric", ["export_time", "package_compile", "package_load"])
def test_the_stages_of_a_package_are_compared_as_compile_times_are(metric) -> None:
    """20 % and 1 s, where the policy says nothing."""
    assert judged(launches(metric, [10] * 3, [13] * 3), metric).verdict is Verdict.REGRESSION
    assert judged(launches(metric, [10] * 3, [11] * 3), metric).verdict is Verdict.UNCHANGED


def test_a_package_that_grows_is_a_regression() -> None:
    """By 5 % and 1 MiB at least."""
    grown = judged(launches("package_size", [100 * MIB] * 3, [106 * MIB] * 3), "package_size")
    assert grown.verdict is Verdict.REGRESSION
    small = judged(launches("package_size", [MIB] * 3, [1.5 * MIB] * 3), "package_size")
    assert small.verdict is Verdict.UNCHANGED


def test_what_was_measured_once_is_shown_and_gates_nothing() -> None:
    """An A/B run compiles cold in its first launch only: every comparison would stay undecided for it."""
    found = judged(launches("compile_cold", [10], [20]), "compile_cold")
    assert (found.verdict, found.action) == (Verdict.UNDECIDED, Action.REPORT)
    assert (found.base, found.head) == (10, 20)
    twice = judged(launches("compile_warm", [10, 10], [20, 20]), "compile_warm")
    assert (twice.verdict, twice.action) == (Verdict.UNDECIDED, Action.GATE)


def test_a_metric_that_neither_side_has_gives_no_row() -> None:
    """Eager has no compile time, and nothing to say of it."""
    assert judged(launches("peak_memory", [1e8], [1e8]), "compile_cold") is None


SIX = 6


@pytest.mark.parametrize(
    ("base", "head", "said"),
    [
        (1000, 1060, Verdict.REGRESSION),
        (1060, 1000, Verdict.IMPROVEMENT),
        (1000, 1040, Verdict.UNCHANGED),
        (20, 27, Verdict.UNCHANGED),
        (20, 29, Verdict.REGRESSION),
    ],
)
def test_memory_takes_its_share_and_8_mib(base, head, said) -> None:
    """Both the relative and the absolute tolerance must be exceeded, in launches that agree."""
    found = judged(launches("peak_memory", [base * MIB] * SIX, [head * MIB] * SIX), "peak_memory")
    assert found.verdict is said


def test_five_launches_of_memory_are_no_verdict_and_gate() -> None:
    """Resident memory takes one of two values by chance, and a few launches may agree by chance."""
    grown = launches("peak_memory", [103 * MIB] * 5, [112 * MIB] * 5)
    found = judged(grown, "peak_memory")
    assert (found.verdict, found.action, found.needed) == (Verdict.UNDECIDED, Action.GATE, SIX)
    assert found.reason == "the change is large enough in 5 of 5 launches, but a verdict requires 6"


def test_memory_of_two_values_is_no_improvement() -> None:
    """What an A/A control of two real builds was called: 112 to 103 MiB."""
    base, head = [112, 103, 112, 112, 103, 112, 112], [103, 103, 103, 112, 103, 103, 103]
    found = judged(
        launches("peak_memory", [each * MIB for each in base], [each * MIB for each in head]), "peak_memory"
    )
    assert (found.verdict, found.high) == (Verdict.UNDECIDED, 1.0)
    assert "launches disagree" in found.reason


def test_memory_that_differs_in_a_few_launches_says_in_how_many() -> None:
    """The median is unchanged, and what varied is not hidden."""
    base, head = [100 * MIB] * 7, [100 * MIB] * 5 + [200 * MIB] * 2
    found = judged(launches("peak_memory", base, head), "peak_memory")
    assert (found.verdict, found.reason) == (
        Verdict.UNCHANGED,
        "2 of 7 launches differ by more than the tolerance",
    )


def test_three_launches_of_memory_are_enough_where_its_noise_is_known() -> None:
    """A change far beyond what equal code was seen to do is one; a change of its size is none."""
    grown = launches("peak_memory", [103 * MIB] * 3, [112 * MIB] * 3)
    calm = judged(grown, "peak_memory", memory_prior=Prior(0.002, 20))
    assert (calm.verdict, calm.launches, calm.prior_spread) == (Verdict.REGRESSION, 3, 0.002)
    assert 1 < calm.low < calm.ratio < calm.high
    noisy = judged(grown, "peak_memory", memory_prior=Prior(0.06, 20))
    assert noisy.verdict is Verdict.UNDECIDED
    assert judged(grown, "peak_memory", memory_prior=Prior(0.002, 2)).needed == SIX


def test_memory_may_be_zero_where_it_does_not_matter() -> None:
    """A tiny model holds nothing that can be seen; from nothing to much there is no ratio."""
    tiny = judged(launches("peak_memory", [0], [4096]), "peak_memory")
    assert (tiny.verdict, tiny.ratio) == (Verdict.UNCHANGED, None)
    much = judged(launches("peak_memory", [0], [1000 * MIB]), "peak_memory")
    assert (much.verdict, much.ratio) == (Verdict.NOT_COMPARABLE, None)


def test_unsupported_on_both_sides_waits_for_nobody() -> None:
    """It has a row, and does not gate: there is nothing that could be measured."""
    never = Status.UNSUPPORTED
    found = judged(statuses([never], [never]), "status")
    assert (found.verdict, found.action) == (Verdict.NOT_COMPARABLE, Action.REPORT)
    assert judged(statuses([P, P], [never, never]), "status").verdict is Verdict.BROKEN


def test_quarantine_triples_the_tolerance() -> None:
    """What is in quarantine still gates, at three times its tolerance; exact metrics stay exact."""
    grown = launches("peak_memory", [1000 * MIB] * SIX, [1100 * MIB] * SIX)
    found = judged(grown, "peak_memory", quarantined=True)
    assert (found.verdict, found.quarantined) == (Verdict.UNCHANGED, True)
    assert found.tolerance == pytest.approx(0.15)
    more = launches("peak_memory", [1000 * MIB] * SIX, [1200 * MIB] * SIX)
    worse = judged(more, "peak_memory", quarantined=True)
    assert (worse.verdict, worse.action) == (Verdict.REGRESSION, Action.GATE)
    more = judged(launches("graph_breaks", [1], [2]), "graph_breaks", quarantined=True)
    assert more.verdict is Verdict.REGRESSION


def test_memory_that_was_read_in_two_ways_is_not_compared() -> None:
    """An allocator's peak and resident memory are two quantities."""
    one = launch(
        PAIR,
        base=outcome(PAIR.base, peak_memory=Measurement("peak_memory", "B", (1e8,), provenance="allocator")),
        head=outcome(PAIR.head, peak_memory=Measurement("peak_memory", "B", (1e8,), provenance="resident")),
    )
    found = judged([one], "peak_memory")
    assert (found.verdict, found.ratio) == (Verdict.NOT_COMPARABLE, None)
    assert "allocator, resident" in found.reason


def test_memory_that_a_side_lacks_says_why() -> None:
    """The reason of an absent measurement is the reason of the verdict."""
    one = launch(
        PAIR,
        base=outcome(PAIR.base, peak_memory=1e8),
        head=outcome(PAIR.head, peak_memory=Measurement("peak_memory", "B", absent="no counter")),
    )
    assert judged([one], "peak_memory").reason == "head has no value: no counter"


@pytest.mark.parametrize(
    ("base", "head", "said", "ratio"),
    [
        ([2, 2], [2, 2], Verdict.UNCHANGED, 1.0),
        ([2, 2], [3, 3], Verdict.REGRESSION, 1.5),
        ([0, 0], [1, 1], Verdict.REGRESSION, None),
        ([2, 2], [2, 3], Verdict.UNDECIDED, None),
    ],
)
@pytest.mark.parametrize("metric", ["graph_breaks", "graph_count", "recompiles"])
def test_graphs_are_exact(metric, base, head, said, ratio) -> None:
    """One more is a regression, and what varies between launches is not decided."""
    found = judged(launches(metric, base, head), metric)
    assert (found.verdict, found.ratio) == (said, pytest.approx(ratio) if ratio else None)


def counted(**counts):
    """Two launches in which the compiler counts, base and head, as ``counts`` says."""
    return [
        launch(
            PAIR,
            number,
            base=outcome(PAIR.base, **{name: both[0] for name, both in counts.items()}),
            head=outcome(PAIR.head, **{name: both[1] for name, both in counts.items()}),
        )
        for number in (1, 2)
    ]


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"graph_count": (3, 2)}, (Verdict.UNDECIDED, None, None)),
        ({"graph_count": (3, 2), "graph_breaks": (2, 1)}, (Verdict.UNCHANGED, Verdict.IMPROVEMENT, None)),
        ({"graph_count": (3, 2), "recompiles": (1, 0)}, (Verdict.UNCHANGED, None, Verdict.IMPROVEMENT)),
        ({"graph_count": (3, 1), "graph_breaks": (1, 0)}, (Verdict.UNDECIDED, Verdict.UNDECIDED, None)),
        ({"graph_count": (3, 0), "graph_breaks": (2, 0)}, (Verdict.UNDECIDED, Verdict.UNDECIDED, None)),
        ({"graph_count": (2, 2), "graph_breaks": (1, 0)}, (Verdict.UNCHANGED, Verdict.IMPROVEMENT, None)),
        ({"graph_count": (2, 3), "graph_breaks": (1, 0)}, (Verdict.REGRESSION, Verdict.IMPROVEMENT, None)),
    ],
)
def test_fewer_graphs_are_no_improvement(counts, said) -> None:
    """They go with breaks and recompilations that went away; otherwise less is compiled, and that is open."""
    found = [judged(counted(**counts), metric) for metric in ("graph_count", "graph_breaks", "recompiles")]
    assert tuple(each and each.verdict for each in found) == said
    assert found[0].reason or said[0] is not Verdict.UNDECIDED


def test_less_that_is_compiled_compiles_no_faster() -> None:
    """A compile time that fell with graphs that nothing explains is no improvement either."""
    found = judged(counted(graph_count=(3, 1), compile_warm=(10, 5)) * 2, "compile_warm")
    assert (found.verdict, found.reason) == (
        Verdict.UNDECIDED,
        (
            "2 fewer graphs, but graph breaks and recompilations fell only by 0: less of the model may be "
            "compiled"
        ),
    )


D = "degraded"


def endings(base, head):
    """A launch for each two letters: P passes, D is degraded, E fails."""

    def side(of, how):
        ended = outcome(of, E if how == "E" else P, graph_count=0 if how == "D" else 2)
        marked = {"modifiers": (Modifier.DEGRADED,), "facts": ((D, "no graph"),)} if how == "D" else {}
        return replace(ended, **marked)

    return [
        launch(PAIR, number + 1, base=side(PAIR.base, ours), head=side(PAIR.head, theirs))
        for number, (ours, theirs) in enumerate(zip(base, head, strict=True))
    ]


@pytest.mark.parametrize(
    ("base", "head", "said"),
    [
        ("PP", "DD", Verdict.BROKEN),
        ("PPP", "PDP", Verdict.UNDECIDED),
        ("PPPP", "PDPD", Verdict.BROKEN),
        ("DD", "PP", Verdict.FIXED),
        ("DD", "DD", Verdict.UNCHANGED),
        ("DD", "EE", Verdict.BROKEN),
        ("EE", "DD", Verdict.FIXED),
        ("DP", "PD", Verdict.UNDECIDED),
        ("DP", "DP", Verdict.UNDECIDED),
    ],
)
def test_a_degraded_pass_stands_below_a_pass(base, head, said) -> None:
    """A head that silently stops compiling is broken, and nothing of it is an improvement."""
    found = judged(endings(base, head), "status")
    assert found.verdict is said
    everything = judge_other_metrics(
        PAIR, endings(base, head), lambda name: Policy.default().rule(PAIR, name)
    )
    assert not any(each.verdict is Verdict.IMPROVEMENT for each in everything)


def test_it_says_why_a_side_is_degraded() -> None:
    """The side, and the words of the worker; of compile metrics nothing is claimed where both are."""
    assert judged(endings("PP", "DD"), "status").reason == "head is degraded: no graph"
    assert judged(endings("PP", "DD"), "graph_count") is None
    assert judged(endings("DD", "DD"), "status").reason == "both are degraded: no graph"
    count = judged(endings("DD", "DD"), "graph_count")
    assert (count.verdict, count.action) == (Verdict.NOT_COMPARABLE, Action.REPORT)


@pytest.mark.parametrize("modifier", [Modifier.OTHER_MODEL, Modifier.UNCHECKED])
@pytest.mark.parametrize("side", ["base", "head"])
def test_another_model_and_what_nobody_checked_compare_nothing(modifier, side) -> None:
    """With the reason, and no metric of it is better or worse."""
    made = launches("peak_memory", [9e8, 9e8], [1e8, 1e8])
    facts = ((modifier.value, "so it says"),)
    marked = [
        replace(each, **{side: replace(getattr(each, side), modifiers=(modifier,), facts=facts)})
        for each in made
    ]
    found = judged(marked, "status")
    assert (found.verdict, found.action) == (Verdict.NOT_COMPARABLE, Action.GATE)
    assert found.reason == f"{side} is {modifier.value.replace('_', ' ')}: so it says"
    assert judged(marked, "peak_memory") is None


def test_controls_never_gate() -> None:
    """Head against head is measured for the ledger, and blocks nobody."""
    control = Pair(case(), case(), control=True)
    found = judged([launch(control, head=outcome(control.head, E))], "status", control)
    assert (found.verdict, found.action, found.control) == (Verdict.BROKEN, Action.REPORT, True)
