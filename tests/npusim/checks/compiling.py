"""torch.compile and torch.export on the simulated device."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn

DEVICE = torch.device("npusim")


def network() -> nn.Module:
    """Return a small convolutional network on the device."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten(), nn.Linear(144, 3)
    ).to(DEVICE)


def check_dynamo_knows_the_device() -> None:
    """Dynamo finds the device's interface and properties."""
    from torch._dynamo.device_interface import get_interface_for_device

    interface = get_interface_for_device("npusim")
    assert interface.device_count() == 1
    assert interface.get_device_properties().multi_processor_count >= 1


def check_compiled_forward_and_backward() -> None:
    """The eager and aot_eager backends give eager's output and gradients."""
    model, batch = network(), torch.randn(2, 1, 8, 8, device=DEVICE)
    expected = model(batch)
    expected.sum().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    for backend in ("eager", "aot_eager"):
        torch._dynamo.reset()
        model.zero_grad()
        output = torch.compile(model, backend=backend, fullgraph=True)(batch)
        output.sum().backward()
        torch.testing.assert_close(output, expected)
        torch.testing.assert_close([p.grad for p in model.parameters()], gradients, rtol=1e-4, atol=1e-5)


def check_kernels_are_not_traced() -> None:
    """After a graph break Dynamo compiles the rest of the user's function, not the device's kernels."""
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()

    @torch.compile(backend="eager")
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        torch._dynamo.graph_break()
        return torch.unique(y.detach()).sum() + y.sum()

    batch = torch.randn(3, device=DEVICE)
    torch.testing.assert_close(broken(batch), 2 * batch.sin().sum())
    assert len(counters["graph_break"]) == 2, counters["graph_break"]


def check_dynamic_shapes() -> None:
    """A graph compiled with dynamic shapes serves several batch sizes."""
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda x: (x * 2).softmax(-1).sum(0), backend="aot_eager", dynamic=True, fullgraph=True
    )
    for size in (2, 3, 5):
        batch = torch.randn(size, 4, device=DEVICE)
        torch.testing.assert_close(compiled(batch), (batch * 2).softmax(-1).sum(0))


def check_compiled_autocast() -> None:
    """Autocast works within a compiled function."""
    torch._dynamo.reset()
    weight = torch.randn(4, 4, device=DEVICE)

    @torch.compile(backend="aot_eager", fullgraph=True)
    def product(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("npusim", dtype=torch.bfloat16):
            return x @ weight

    assert product(weight).dtype == torch.bfloat16


def check_export_round_trip() -> None:
    """An exported program runs on the device, also after saving and loading."""
    model, batch = network().eval(), torch.randn(2, 1, 8, 8, device=DEVICE)
    program = torch.export.export(model, (batch,))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    for exported in (program, torch.export.load(file)):
        torch.testing.assert_close(exported.module()(batch), model(batch))


def check_inductor_fails_cleanly() -> None:
    """Inductor, which has no code generator for the device, raises and leaves the process usable."""
    torch._dynamo.reset()
    batch = torch.randn(3, device=DEVICE)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="npusim"):
        torch.compile(lambda x: x.sin() + 1, backend="inductor")(batch)
    assert torch.isfinite(batch + 1).all().item()
