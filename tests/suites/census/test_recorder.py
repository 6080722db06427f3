"""What the dispatch mode notes, compared with what a simulated device's fallback is really called with."""

from __future__ import annotations

import importlib.util

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

needs_npusim = pytest.mark.skipif(
    importlib.util.find_spec("torchgauge_npusim") is None, reason="the simulated device is not installed"
)


def test_composite_operators_are_noted_and_taken_apart() -> None:
    """A transpose is asked for by its own name and received as a strided view; forward and backward count."""
    from torchgauge.suites.census.recorder import Recorder

    weight = torch.ones(3, 2, requires_grad=True)
    with Recorder() as recorder:
        torch.nn.functional.linear(torch.ones(4, 2), weight).sum().backward()
    names = {name for name, _ in recorder.operators}
    received = {name for name, _ in recorder.received}
    assert {"aten::t", "aten::mm", "aten::sum"} <= names
    assert "aten::linear" not in names
    assert "aten::as_strided" in received
    assert "aten::t" not in received
    assert recorder.parts["aten::t"] == {"aten::as_strided"}


def test_a_call_is_counted_under_its_widest_floating_point_input() -> None:
    """Integers count only where there is nothing else, and a result only where there is no input."""
    from torchgauge.suites.census.recorder import dtype_of

    short, wide = torch.ones(1, dtype=torch.bfloat16), torch.ones(1, dtype=torch.float64)
    index, turned = torch.ones(1, dtype=torch.int64), torch.ones(1, dtype=torch.complex64)
    assert dtype_of([index, [short, wide]]) == "float64"
    assert dtype_of([wide, turned]) == "complex64"
    assert dtype_of(({"index": index}, index.bool())) == "int64"
    assert dtype_of([2.0], short) == "bfloat16"
    assert dtype_of([2.0]) == ""


@needs_npusim
@pytest.mark.parametrize("mode", ["inference", "training"])
def test_what_is_received_is_what_the_simulated_device_falls_back_for(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By base name, but for the kernels that the device brings itself."""
    from torchgauge.records import Workload
    from torchgauge.suites.census.record import base_name
    from torchgauge.suites.census.recorder import Recorder
    from torchgauge.suites.toy.networks import build
    from torchgauge_npusim import fallback, kernels, registration  # noqa: F401

    called: set[str] = set()
    run = fallback._Call.run

    def logged(self, args, kwargs):  # type: ignore[no-untyped-def]
        called.add(self.op._schema.name)
        return run(self, args, kwargs)

    monkeypatch.setattr(fallback._Call, "run", logged)
    built = build(Workload("toy", "transformer", mode, batch=2, shape=(("seq", 4),)))
    module, device = built.module.to("npusim"), torch.device("npusim")

    def step() -> None:
        with torch.set_grad_enabled(built.loss is not None):
            output = module(*(each.to(device) for each in built.args))
            if built.loss is not None:
                built.loss(output).backward()

    step()
    called.clear()
    step()
    plainly = set(called)
    with Recorder() as recorder:
        step()
    own = {each._schema.name for each in kernels.KERNELS}
    assert plainly
    assert {base_name(name) for name, _ in recorder.received} - own == plainly - own
    assert plainly != {base_name(name) for name, _ in recorder.operators}
