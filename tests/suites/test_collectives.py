"""Collectives: what is right is known without a call; sizes and factors are those of nccl-tests."""

from __future__ import annotations

from typing import Any

import pytest

from torchgauge.records import Cause

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

FACTORS = {
    "all_reduce": {2: 1.0, 3: 4 / 3, 4: 1.5},
    "all_gather": {2: 0.5, 3: 2 / 3, 4: 0.75},
    "reduce_scatter": {2: 0.5, 3: 2 / 3, 4: 0.75},
    "all_to_all": {2: 0.5, 3: 2 / 3, 4: 0.75},
    "broadcast": {2: 1.0, 3: 1.0, 4: 1.0},
    "send_recv": {2: 1.0, 3: 1.0, 4: 1.0},
}
"""By hand, from the document of nccl-tests."""


def made(name: str, rank: int, count: int, elements: int = 24) -> Any:
    """A collective as process ``rank`` sees it."""
    from torchgauge.suites.distributed.collectives import CLASSES

    return CLASSES[name](elements, rank, count)


@pytest.mark.parametrize(("name", "factors"), FACTORS.items(), ids=FACTORS)
def test_factors_are_those_of_nccl_tests(name: str, factors: dict[int, float]) -> None:
    """Of two processes, of three and of four."""
    assert {count: made(name, 0, count).factor for count in factors} == pytest.approx(factors)


def by_hand(name: str, sent: list[list[float]], rank: int) -> list[float]:
    """What process ``rank`` has after the call, from what all sent, in plain Python."""
    count = len(sent)
    part = len(sent[0]) // count
    mine = slice(rank * part, (rank + 1) * part)
    total = [sum(column) for column in zip(*sent, strict=True)]
    return {
        "all_reduce": total,
        "broadcast": sent[0],
        "send_recv": sent[rank - 1],
        "all_gather": [number for each in sent for number in each],
        "reduce_scatter": total[mine],
        "all_to_all": [number for each in sent for number in each[mine]],
    }[name]


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("count", [2, 3])
def test_expected_values_are_those_of_the_definition(name: str, count: int) -> None:
    """Of every process; and no two of them send the same."""
    sent = [made(name, rank, count).message(rank, torch.float32).tolist() for rank in range(count)]
    assert len({tuple(each) for each in sent}) == count
    for rank in range(count):
        found = made(name, rank, count).expected(torch.float32)
        assert found.tolist() == by_hand(name, sent, rank)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_sums_are_exact_in_every_dtype(dtype: Any) -> None:
    """Of as many processes as there may be."""
    count = 64
    collective = made("all_reduce", 0, count, 20_000)
    wide = sum(collective.message(rank, torch.float64) for rank in range(count))
    assert float(wide.max()) <= 2 / torch.finfo(torch.float64).eps
    found = collective.expected(dtype)
    messages = sum(collective.message(rank, dtype).double() for rank in range(count))
    assert torch.equal(found.double(), messages)


def judged(found: Any, expected: Any) -> Any:
    """What is said of ``found``."""
    from torchgauge.harness.scenarios.collective_steps import judge

    return judge({"out": expected}, {"out": found}, None, None)


def test_one_wrong_element_is_found() -> None:
    """However near: the reason says which, and how many."""
    expected = torch.arange(1000.0) + 8192
    found = expected.clone()
    found[700] += 1e-3
    assert judged(expected.clone(), expected).ok
    said = judged(found, expected)
    assert (said.ok, said.cause) == (False, Cause.TOLERANCE)
    assert "1 of 1,000 elements differ; element 700" in said.detail


@pytest.mark.parametrize("found", [torch.ones(3), torch.ones(4, dtype=torch.float64), None])
def test_another_shape_or_dtype_is_wrong(found: Any) -> None:
    """And so is nothing at all."""
    assert "wrong shape or dtype" in judged(found, torch.ones(4)).detail


def test_a_call_that_does_nothing_is_wrong() -> None:
    """The message as it was, and a room that nobody wrote to, are no results."""
    for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"):
        collective = made(name, 1, 2)
        message = collective.message(1, torch.float32)
        room = collective.room(message)
        left = message if room is None else room
        assert not judged(left, collective.expected(torch.float32)).ok, name
