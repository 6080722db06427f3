"""Whole models on the asynchronous device, against the host, eager and compiled."""

from __future__ import annotations

import torch
from torch import nn

DEVICE = torch.device("asyncsim")


def network() -> nn.Module:
    """Return a small convolutional network."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten(), nn.Linear(144, 3))


def check_a_network_trains_as_on_the_host() -> None:
    """Three steps of Adam give the host's losses."""
    batch, labels = torch.randn(2, 1, 8, 8), torch.tensor([1, 2])
    losses: dict[str, list[float]] = {}
    for place in ("cpu", "asyncsim"):
        model = network().to(place)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        losses[place] = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch.to(place)), labels.to(place))
            loss.backward()
            optimizer.step()
            losses[place].append(loss.item())
    assert losses["asyncsim"][2] != losses["asyncsim"][0]
    torch.testing.assert_close(losses["asyncsim"], losses["cpu"], rtol=1e-4, atol=1e-4)


def check_compiled_gives_eagers_output_and_gradients() -> None:
    """The eager and aot_eager backends of torch.compile, in one graph."""
    model, batch = network().to(DEVICE), torch.randn(2, 1, 8, 8, device=DEVICE)
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


def check_runs_repeat_to_the_last_bit() -> None:
    """Two seeded steps on the device agree bit by bit."""
    found = []
    for _ in range(2):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 2)).to(DEVICE)
        output = model(torch.randn(4, 8, device=DEVICE))
        output.sum().backward()
        found.append([output.detach().cpu(), *(p.grad.cpu() for p in model.parameters())])
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))
