"""Tensors, views, copies and operators on the asynchronous device."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from torch import nn

from torchgauge_asyncsim import device_module as asyncsim

DEVICE = torch.device("asyncsim")


def refused(words: str, call: Callable[[], object], kind: type[BaseException] = RuntimeError) -> None:
    """Assert that a call raises with these words in its message."""
    with pytest.raises(kind, match=re.escape(words)):
        call()


def check_registered() -> None:
    """PyTorch knows the device by name, as the accelerator, with two indices."""
    assert torch.accelerator.current_accelerator() == torch.device("asyncsim")
    assert torch.accelerator.device_count() == 2
    assert torch.get_device_module("asyncsim") is asyncsim
    assert torch.ones(1, device=DEVICE).is_asyncsim
    assert torch.ones(1).asyncsim().device == torch.device("asyncsim:0")
    refused("invalid device ordinal", lambda: torch.ones(1, device="asyncsim:2"))


def check_operators_agree_with_the_host() -> None:
    """Broadcasting, strides, empty inputs, promotion, reductions, indexing, `out=`: the host's results."""
    torch.manual_seed(0)
    x, y = torch.randn(5, 6), torch.randn(6)
    calls = (
        lambda a, b: a + b,
        lambda a, b: a.t() @ a,
        lambda a, b: a[::2, 1:] * 2,
        lambda a, b: a.expand(3, 5, 6).sum(0),
        lambda a, b: a[:0].sum(),
        lambda a, b: a.double() + b,
        lambda a, b: (a > 0) & (b > 0),
        lambda a, b: a.softmax(-1).log().mean(),
        lambda a, b: a[a > 0].sum(),
        lambda a, b: a.sort(-1).values,
        lambda a, b: torch.cat([a, a[:1]]),
        lambda a, b: torch.stack([b, b]).cumsum(0),
        lambda a, b: a.index_select(0, torch.tensor([1, 3], device=a.device)),
        lambda a, b: torch.where(a > 0, a, b),
        lambda a, b: torch.add(a, b, out=torch.empty(0, device=a.device)),
        lambda a, b: a.clone().masked_fill_(a > 0, 1),
        lambda a, b: torch.linalg.svd(a).S,
        lambda a, b: a.to(torch.complex64).conj() @ a.to(torch.complex64).t(),
        lambda a, b: a.nonzero(),
        lambda a, b: torch.nn.functional.layer_norm(a, (6,), b, b),
        lambda a, b: torch.einsum("ij,kj->ik", a, a),
        lambda a, b: a.var(0),
    )
    for number, call in enumerate(calls):
        found = call(x.to(DEVICE), y.to(DEVICE))
        assert found.device.type == "asyncsim", number
        torch.testing.assert_close(
            found.cpu(), call(x, y), msg=lambda words, number=number: f"{number}: {words}"
        )


def check_mixed_devices_are_refused() -> None:
    """A host tensor with dimensions and a tensor of the other device are refused; a number is not."""
    here = torch.ones(2, device=DEVICE)
    refused("Expected all tensors to be on the same device", lambda: here + torch.ones(2))
    refused(
        "Expected all tensors to be on the same device", lambda: here + torch.ones(2, device="asyncsim:1")
    )
    assert (here + torch.tensor(1.0)).tolist() == [2.0, 2.0]


def check_shapes_that_do_not_fit_are_refused_at_once() -> None:
    """Not when the kernel's turn comes."""
    refused(
        "shapes cannot be multiplied",
        lambda: torch.ones(2, 3, device=DEVICE) @ torch.ones(2, 3, device=DEVICE),
    )


def check_parameters_keep_their_identity() -> None:
    """`.to()` moves parameters in place, so tied weights stay tied and an optimizer still steps."""
    model = nn.Linear(2, 2)
    weight = model.weight
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model.to(DEVICE)
    assert model.weight is weight
    model(torch.ones(1, 2, device=DEVICE)).sum().backward()
    before = model.weight.tolist()
    optimizer.step()
    assert model.weight.tolist() != before


def check_what_has_no_kernel_runs_on_the_host_and_is_seen() -> None:
    """The fallback's copies stand in a profile below the operator; a kernel of the device has none."""
    from torch.profiler import ProfilerActivity, profile

    x = torch.randn(4, 4, device=DEVICE)
    with profile(activities=[ProfilerActivity.CPU]) as found:
        torch.bincount(x.abs().long().flatten())
        torch.relu(x)
    copied = {
        event.cpu_parent.name
        for event in found.events()
        if event.name == "aten::_to_cpu" and event.cpu_parent
    }
    assert copied, "no fallback was seen"
    assert not any("relu" in name for name in copied), copied
