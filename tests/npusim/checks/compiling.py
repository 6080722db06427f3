"""torch.compile and torch.export on the simulated device."""

from __future__ import annotations

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
