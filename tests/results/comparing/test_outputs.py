"""The rule by which outputs of two builds differ, on tensors whose errors are known."""

from __future__ import annotations

from dataclasses import replace

import ab_launches
import pytest

from torchgauge.records import OutputError, Status
from torchgauge.records.comparison import START, UNSEEN, Launch, Verdict
from torchgauge.results.comparing.outputs import not_seen, outputs_differ
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.comparing.status_verdict import comparable, judge_status, unfit

PAIR = ab_launches.pair(control=False)
RULE = lambda metric: Policy.default().rule(PAIR, metric)  # noqa: E731


def tensor(path: str, size: float, error: float, *sums: float) -> OutputError:
    return OutputError(path, size, error, sums or (size / 2, size / 3, -size / 2, size / 5))


def launch(base: list[OutputError], head: list[OutputError], **facts: float | str) -> Launch:
    """A launch whose sides passed, from one start unless ``facts`` of head say otherwise."""
    made = ab_launches.Machine().launch(PAIR)
    told = {START: 0.25, **facts}
    return replace(
        made,
        base=replace(made.base, outputs=tuple(base), facts=((START, 0.250001),)),
        head=replace(made.head, outputs=tuple(head), facts=tuple(sorted(told.items()))),
    )


GOOD = [tensor("iteration0.grad.a", 1.0, 1e-7), tensor("iteration0.grad.b", 0.5, 1e-7)]
ZERO = tensor("iteration0.grad.zero", 1e-17, 1e-12)
STATE = [tensor("after.buffer.b", 1.0, 1e-7)]
PLACES = replace(tensor("out", 100.0, 0.0, 50.0, 50.0, 50.0, 50.0), whole=True)
SPARSE = tensor("iteration0.grad.sparse", 1e-4, 1e-11)
"""Of an embedding: most rows are zero, so it is small beside the others, and as exact as they are."""


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ([], []),
        (GOOD, GOOD),
        (GOOD, [replace(each, error=8 * each.error) for each in GOOD]),
        (GOOD, [replace(GOOD[0], error=4e-3), GOOD[1]]),  # one activation is on in base and off in head
        ([tensor("out", 1.0, 0.0)], [tensor("out", 1.0, 3e-7)]),  # a base that is right by chance
        ([*GOOD, ZERO], [*GOOD, replace(ZERO, error=1e-8)]),  # rounding is all that there is of it
        ([tensor("out", 1.0, 4e-3)], [tensor("out", 1.0, 8e-3)]),  # in a dtype of few bits
        ([tensor("after.buffer.a", 1.0, 1e-7), *STATE], STATE),  # rounding changes it in base only
        (GOOD, [replace(GOOD[0], path="iteration0.grad.renamed"), GOOD[1]]),
        ([PLACES], [replace(PLACES, sums=(50.0, 50.1, 50.0, 50.0))]),  # two equal numbers in another order
    ],
)
def test_rounding_is_no_difference(base, head):
    """An error of the size of base's own, of its kind's, or of the floor."""
    assert outputs_differ(launch(base, head)) == ""


@pytest.mark.parametrize(
    ("base", "head", "path"),
    [
        ([tensor("out", 1.0, 1e-7)], [tensor("out", 1.0, 1e-2)], "out"),
        ([tensor("out", 1.0, 1e-7)], [tensor("out", 1.01, 1e-7)], "out"),  # wrong in float64 too
        ([tensor("out", 1.0, 1e-7, 0.1, 0.2)], [tensor("out", 1.0, 1e-7, 0.1, 0.21)], "out"),
        (GOOD, [GOOD[0], replace(GOOD[1], error=5e-3)], "iteration0.grad.b"),  # one gradient of two
        ([*GOOD, ZERO], [*GOOD, replace(ZERO, error=1e-3)], "iteration0.grad.zero"),
        ([*GOOD, SPARSE], [*GOOD, replace(SPARSE, error=2e-2 * SPARSE.size)], "iteration0.grad.sparse"),
        ([PLACES], [replace(PLACES, sums=(60.0, 50.0, 50.0, 50.0))], "out"),
    ],
)
def test_a_wrong_tensor_is_named_with_both_errors(base, head, path):
    """The worst of them, as shares of the tensor."""
    assert outputs_differ(launch(base, head)).startswith(f"head's {path} differs by about ")


@pytest.mark.parametrize(
    ("base", "head", "sentence"),
    [
        ([*GOOD, tensor("out.aux", 1.0, 1e-7)], GOOD, "head has no out.aux, which base has"),
        ([tensor("out", 1.0, 1e-7)], [tensor("other", 1.0, 1.0)], "head has no out, which base has"),
        (GOOD, [*GOOD, tensor("out.aux", 1.0, 1e-7)], "base has no out.aux, which head has"),
        ([*GOOD, *STATE], GOOD, "head has no after.buffer.b, which base has"),  # steps change no state
    ],
)
def test_a_tensor_of_one_build_only_is_named(base, head, sentence):
    """A dropped output, or a step that no longer trains, is no improvement."""
    assert outputs_differ(launch(base, head)) == sentence


def test_two_launches_make_the_verdict_and_leave_no_ratio():
    """One launch of several is not enough, as of a broken head."""
    wrong, right = launch(GOOD, [GOOD[0], replace(GOOD[1], error=5e-3)]), launch(GOOD, GOOD)
    assert unfit(wrong).startswith("head's iteration0.grad.b")
    assert not comparable(wrong)
    assert judge_status(PAIR, [wrong, right, wrong], RULE).verdict is Verdict.OUTPUTS_DIFFER
    assert judge_status(PAIR, [wrong, right, right], RULE).verdict is Verdict.UNDECIDED
    assert judge_status(PAIR, [right, right], RULE).verdict is Verdict.UNCHANGED


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({START: 0.26}, "base and head begin with different weights or inputs"),
        ({UNSEEN: "eager alone"}, "head: eager alone"),
        ({"ties": "rounding decides out in 1 place"}, "head: rounding decides out"),
    ],
)
def test_what_cannot_be_compared_accuses_nobody_and_says_why(facts, why):
    """The status stays unchanged, with the reason."""
    one = launch([tensor("out", 1.0, 1e-7)], [tensor("out", 1.0, 1e-1)], **facts)
    assert outputs_differ(one) == ""
    assert not_seen(one).startswith(why)
    said = judge_status(PAIR, [one, one], RULE)
    assert (said.verdict, said.reason.startswith("outputs were not compared: ")) == (Verdict.UNCHANGED, True)


def test_a_side_that_fails_is_the_status_of_its_own():
    """Its outputs are compared with nobody's."""
    one = launch(GOOD, [replace(each, error=1.0) for each in GOOD])
    failed = replace(one, head=replace(one.head, status=Status.FAIL_ACCURACY))
    assert outputs_differ(failed) == ""
    assert judge_status(PAIR, [failed, failed], RULE).verdict is Verdict.BROKEN
