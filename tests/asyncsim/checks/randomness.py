"""The device's random numbers: seeds, states, generators, and independence of the host's."""

from __future__ import annotations

import torch

from torchgauge_asyncsim import device_module as asyncsim

DEVICE = "asyncsim"


def check_a_seed_gives_the_same_numbers() -> None:
    """torch.manual_seed reaches the device; another seed gives others."""
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(torch.rand(100, device=DEVICE).tolist())
    assert drawn[0] == drawn[1] != drawn[2]


def check_a_state_comes_back() -> None:
    """What get_rng_state kept gives the same numbers again, on each device for itself."""
    kept = asyncsim.get_rng_state()
    first = torch.randn(10, device=DEVICE).tolist()
    other = torch.randn(10, device="asyncsim:1").tolist()
    asyncsim.set_rng_state(kept)
    assert torch.randn(10, device=DEVICE).tolist() == first
    assert torch.randn(10, device="asyncsim:1").tolist() != other


def check_the_host_is_left_alone() -> None:
    """Drawing and dropping out on the device does not move the host's generator."""
    torch.manual_seed(4)
    expected = torch.rand(5).tolist()
    torch.manual_seed(4)
    torch.rand(5, device=DEVICE)
    torch.nn.functional.dropout(torch.ones(10, device=DEVICE), 0.5)
    assert torch.rand(5).tolist() == expected
