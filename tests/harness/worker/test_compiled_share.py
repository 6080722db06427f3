"""How much of eager's work compiled code took over, from profiled steps that a busy machine may interrupt."""

from __future__ import annotations

from typing import Any

import pytest

from torchgauge.harness.worker import compiled_share
from torchgauge.harness.worker.profiled_step import Event, Span, nested

pytestmark = pytest.mark.torch


def step(**took_ns: int) -> list[Event]:
    """The events of a step that runs operators of these names, one after the other."""
    spans, now = [], 0
    for name, took in took_ns.items():
        spans.append(Span(1, now, now + took, f"aten::{name}"))
        now += took
    return nested(spans)


@pytest.mark.parametrize(
    ("seconds", "interrupted", "share"),
    [(0.01, "mm", 0.5), (0.01, "add", 0.5), (1.0, "add", 0.5), (1.0, "mm", 0.999)],
)
def test_an_interruption_hides_and_accuses_nobody(monkeypatch, seconds, interrupted, share) -> None:
    """A short step of eager is looked at again, and a long one where its share would accuse."""
    eager = {"mm": 1_000, "add": 1_000}
    looks: list[Any] = [(step(add=1_000), seconds), (step(**{**eager, interrupted: 999_000}), seconds)]
    looks += [(step(**eager), seconds)] * 2
    monkeypatch.setattr(compiled_share, "profiled", lambda *_: looks.pop(0))
    found = compiled_share.look(lambda: None, lambda: None, None)
    assert found == pytest.approx(share)
