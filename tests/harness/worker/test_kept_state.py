"""Runs that differ by the state of a program are told from runs that draw or read what nobody wrote."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from torchgauge.harness.worker import kept_state

pytestmark = pytest.mark.torch
COUNT = itertools.count()


def never(one: Any, other: Any) -> bool:
    return False


def counted() -> dict[str, Any]:
    return {"out": torch.ones(4) * next(COUNT)}


def counted_with_a_time() -> dict[str, Any]:
    return {**counted(), "after.attribute.model.spent": time.perf_counter()}


def drawn() -> dict[str, Any]:
    return {"out": float(os.urandom(4)[0])}


def never_written() -> dict[str, Any]:
    return {"out": torch.empty(1000)}


def where_an_object_lies() -> dict[str, Any]:
    return {"out": id(bytearray(100))}


def raises() -> dict[str, Any]:
    raise ValueError


@pytest.mark.parametrize("observe", [counted, counted_with_a_time])
def test_a_counter_is_state(observe: Callable[[], dict[str, Any]]) -> None:
    """Two children begin with one number, and this process counts on by the two runs that it made itself."""
    before = next(COUNT)
    assert kept_state.kept(observe, never)
    assert next(COUNT) == before + 3


@pytest.mark.parametrize("observe", [drawn, never_written, where_an_object_lies, raises])
def test_what_no_program_keeps_is_no_state(observe: Callable[[], dict[str, Any]]) -> None:
    """Children have one heap and one generator, and each must still find other values."""
    torch.full((1000,), 7.0)
    assert not kept_state.kept(observe, never)


def test_runs_that_agree_are_not_asked() -> None:
    """The host repeats itself, so the difference is the device's."""
    assert not kept_state.kept(counted, lambda *_: True)


def test_a_child_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It agrees with none, and the second is not begun."""
    parent, begun = os.getpid(), time.monotonic()
    monkeypatch.setattr(kept_state, "LONGEST_S", 0.3)
    monkeypatch.setattr(os, "kill", kill := Kill())

    def hangs_in_a_child() -> dict[str, Any]:
        if os.getpid() != parent:
            time.sleep(600)
        return {"out": 1}

    assert not kept_state.kept(hangs_in_a_child, never)
    assert time.monotonic() - begun < 120
    (child,) = kill.killed
    with pytest.raises(ProcessLookupError):
        kill.inner(child, 0)


class Kill:
    """Notes what it kills."""

    def __init__(self) -> None:
        self.inner, self.killed = os.kill, list[int]()

    def __call__(self, pid: int, number: int) -> None:
        self.killed.append(pid)
        self.inner(pid, number)
