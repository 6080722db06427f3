"""Two callables of one process are compared by the rule of an A/B run."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

import pytest
import torch

import torchgauge as tg
from torchgauge.errors import UsageError
from torchgauge.records.comparison import Verdict

X = torch.ones(32, 256)


def product(x: torch.Tensor) -> torch.Tensor:
    return x @ x.T


def two_products(x: torch.Tensor) -> torch.Tensor:
    x @ x.T
    return x @ x.T


def test_twice_the_work_is_slower() -> None:
    """The verdict is a regression, and the interval of its ratio holds what it costs."""
    found = tg.compare(product, two_products, args=(X,), seed=1, max_time_s=600)
    assert not found.faster
    assert found.ratio is not None
    assert found.ratio > 1.3
    if found.slower:  # a busy machine leaves it open
        assert found.low is not None
        assert 1 < found.low <= found.ratio
        assert found.reason.startswith("repeated in ")
        assert repr(found).startswith("new against old: slower, ")


def test_results_that_differ_are_named() -> None:
    """A faster callable that computes something else is told to its user."""
    found = tg.compare(product, lambda x: x @ x.T + 1, args=(X,), max_time_s=0.1)
    assert len(found.notes) == 1
    assert found.notes[0].startswith("results differ: out: largest error 1 ")


def test_results_of_a_random_callable_are_not_compared() -> None:
    """Where two calls of old differ, so may new."""
    found = tg.compare(torch.rand_like, torch.rand_like, args=(X,), max_time_s=0.1)
    assert found.notes == ("results were not compared: two calls of old returned different results",)


def test_too_little_time_is_undecided() -> None:
    """The reason names what was missing."""
    found = tg.compare(product, product, args=(X,), max_time_s=0.1)
    assert found.verdict is Verdict.UNDECIDED
    assert found.reason == "1 usable part, and at least 3 are needed: the limit of 0.1 s was reached"


def test_parts_that_were_not_enough_are_counted() -> None:
    """The reason is in the words of this comparison, which has no launches."""
    found = tg.compare(product, product, args=(X,), tolerance=1e-9, max_time_s=600)
    assert found.parts == 24 or found.verdict is not Verdict.UNDECIDED  # a change is repeated in fresh parts
    assert found.verdict is not Verdict.UNCHANGED
    assert found.verdict is not Verdict.UNDECIDED or found.reason.startswith("24 parts were not enough")


def test_what_a_call_raises_reaches_the_caller() -> None:
    """An error of the compared code is its user's."""

    def broken(_: torch.Tensor) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        tg.compare(product, broken, args=(X,))


def test_the_process_is_as_it_was() -> None:
    """Random states, variables, threads, dtype and grad mode are the caller's afterwards."""
    torch.manual_seed(7)
    random.seed(7)
    expected = torch.rand(3), random.random()
    torch.manual_seed(7)
    random.seed(7)
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()

    def careless(x: torch.Tensor) -> torch.Tensor:
        os.environ["TORCHGAUGE_TEST_LEFT"] = "1"
        torch.set_default_dtype(torch.float64)
        random.random()
        return torch.rand(2) + x.sum()

    tg.compare(careless, careless, args=(X,), max_time_s=0.1)
    assert torch.equal(torch.rand(3), expected[0])
    assert random.random() == expected[1]
    assert "TORCHGAUGE_TEST_LEFT" not in os.environ
    assert torch.get_default_dtype() is torch.float32
    assert (torch.get_num_threads(), torch.get_float32_matmul_precision()) == (threads, precision)
    assert torch.is_grad_enabled()


def test_an_interrupt_keeps_what_was_measured() -> None:
    """The parts before it are judged, and a note names it."""
    left = 250

    def interrupted(x: torch.Tensor) -> torch.Tensor:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt
        time.sleep(0.002)
        return x.sum()

    found = tg.compare(interrupted, interrupted, args=(X,), tolerance=1e-6, max_time_s=600)
    assert found.notes[-1] == "interrupted: the result has the samples measured so far"
    assert "was reached" not in found.reason
    assert found.calls > 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tg.compare(3, product), "old is a int, which cannot be called"),  # type: ignore[arg-type]
        (lambda: tg.compare(product, None), "new is a NoneType, which cannot be called"),  # type: ignore[arg-type]
        (lambda: tg.compare(product, product, args=X), "args is a Tensor"),  # type: ignore[arg-type]
        (lambda: tg.compare(product, product, args=(X,), device="nonsense"), "unknown device 'nonsense'"),
    ],
)
def test_a_mistake_is_named(call: Callable[[], object], said: str) -> None:
    """Nothing is measured, and the message has something to try."""
    with pytest.raises(UsageError) as raised:
        call()
    assert said in str(raised.value)
    assert "try: " in str(raised.value)
