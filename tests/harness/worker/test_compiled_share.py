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
    ("compiled_s", "seconds", "interrupted", "share"),
    [
        (0.01, 0.01, "mm", 0.5),
        (0.01, 0.01, "add", 0.5),
        (1.0, 1.0, "add", 0.5),
        (1.0, 1.0, "mm", 0.999),
        (0.01, 1.0, "mm", 0.5),
    ],
)
def test_an_interruption_hides_and_accuses_nobody(
    monkeypatch, compiled_s, seconds, interrupted, share
) -> None:
    """A short step of eager is looked at again, also where the interruption itself has made it long."""
    eager = {"mm": 1_000, "add": 1_000}
    looks: list[Any] = [(step(add=1_000), compiled_s), (step(**{**eager, interrupted: 999_000}), seconds)]
    looks += [(step(**eager), seconds)] * 2
    monkeypatch.setattr(compiled_share, "profiled", lambda *_: looks.pop(0))
    found = compiled_share.look(lambda: None, lambda: None, None)
    assert found == (pytest.approx(share), "")


def test_who_is_accused_is_looked_at_again(monkeypatch) -> None:
    """Each operator has one look of many to itself: interruptions of all the others accuse nobody."""
    looks: list[Any] = []
    for number in range(compiled_share.MOST_LOOKS):
        small = 1_000 if number == 5 else 900_000
        looks.append((step(add=small, other=small), 0.01))
        looks.append((step(mm=100_000, add=small), 0.01))
        looks += [(step(mm=100_000, add=900_000), 0.01)] * (0 if number else compiled_share.LOOKS - 1)
    monkeypatch.setattr(compiled_share, "profiled", lambda *_: looks.pop(0))
    found = compiled_share.look(lambda: None, lambda: None, None)
    assert found == (pytest.approx(1 - 2_000 / 101_000), "")
    assert looks


@pytest.mark.parametrize(
    ("forward_ns", "left", "degraded"),
    [
        (4_000, {"way_back": 2_000}, "0% of the backward pass ran in compiled code"),
        (900_000, {"way_back": 2_000}, "0% of the backward pass ran in compiled code"),
        (4_000, {"way_back": 2_000, "mm": 4_000}, "0% of the step ran in compiled code"),
        (4_000, {}, ""),
    ],
)
def test_a_backward_pass_of_eager_degrades(monkeypatch, forward_ns, left, degraded) -> None:
    """Forward passes that train nothing may be most of a step."""

    def events(mm: int = 0, way_back: int = 0) -> list[Event]:
        engine = "autograd::engine::evaluate_function: MmBackward0"
        spans = [Span(1, 0, mm, "aten::mm")] if mm else []
        back = [Span(1, mm, mm + way_back, engine), Span(1, mm, mm + way_back, "aten::mm", shapes="back")]
        return nested([*spans, *(back if way_back else [])])

    looks = iter([events(**left), events(forward_ns, 2_000)])
    monkeypatch.setattr(compiled_share, "profiled", lambda *_: (next(looks), 1.0))
    monkeypatch.setattr(compiled_share, "LOOKS", 1)
    found = compiled_share.look(lambda: None, lambda: None, None)
    assert isinstance(found, tuple), found
    assert found[1].startswith(degraded)
    assert bool(found[1]) == bool(degraded)


def test_another_thread_and_python_inside_an_operator_are_no_graph() -> None:
    """What the model has another thread run, and what Python runs inside an operator, is outside."""
    model, graph = compiled_share.MODEL, compiled_share.GRAPH
    spans = [
        Span(1, 0, 100, model),
        Span(1, 10, 60, graph),
        Span(1, 12, 20, "aten::mm"),
        Span(1, 30, 50, "acme::layers"),
        Span(1, 32, 40, "aten::linear"),
        Span(1, 33, 39, "aten::addmm"),
        Span(2, 70, 80, "aten::gelu"),
        Span(2, 82, 90, graph),
        Span(2, 84, 88, "aten::add"),
        Span(2, 110, 120, "aten::relu"),
    ]
    events = nested(spans)
    assert [each.name for each in compiled_share.outside(events)] == ["aten::gelu"]
    found = [each.name for each in compiled_share.outside(events, {"acme::layers"})]
    assert found == ["aten::linear", "aten::gelu"]


def test_a_frame_that_dynamo_leaves_to_python_is_no_call_of_the_module_itself() -> None:
    """Dynamo calls the loop of the module as it is, and compiles what breaks the graph in it."""
    import torch

    class Breaks(torch.nn.Linear):
        def forward(self, rows: Any) -> Any:
            places = (rows[:, 0] > -1e9).nonzero().flatten()
            return super().forward(rows)[places]

    class Loop(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList([Breaks(4, 4)])

        def forward(self, rows: Any) -> Any:
            for layer in self.layers:
                rows = layer(rows)
            return rows

    module, rows = Loop(), torch.randn(2, 4)
    compiled = torch.compile(module, backend="eager")
    compiled(rows)
    assert compiled_share.eager_calls(lambda: compiled(rows), module) == 0
    assert compiled_share.eager_calls(lambda: (compiled(rows), module(rows[:1])), module) == 1
