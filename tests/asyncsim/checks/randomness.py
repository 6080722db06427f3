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


def check_successive_draws_differ() -> None:
    """No two draws are alike."""
    assert torch.rand(100, device=DEVICE).tolist() != torch.rand(100, device=DEVICE).tolist()


def check_a_state_comes_back() -> None:
    """What get_rng_state kept gives the same numbers again, on each device for itself."""
    kept = asyncsim.get_rng_state()
    first = torch.randn(10, device=DEVICE).tolist()
    other = torch.randn(10, device="asyncsim:1").tolist()
    asyncsim.set_rng_state(kept)
    assert torch.randn(10, device=DEVICE).tolist() == first
    assert torch.randn(10, device="asyncsim:1").tolist() != other


def check_generators_are_independent() -> None:
    """A generator of one's own draws the same whatever the default one does, and tells its device."""
    one, two = torch.Generator(DEVICE), torch.Generator(DEVICE)
    assert one.device.type == DEVICE
    one.manual_seed(3)
    two.manual_seed(3)
    first = torch.rand(5, device=DEVICE, generator=one).tolist()
    torch.rand(7, device=DEVICE)
    assert torch.rand(5, device=DEVICE, generator=two).tolist() == first
    copy = one.clone_state()
    again = [torch.rand(5, device=DEVICE, generator=each).tolist() for each in (one, copy)]
    assert again[0] == again[1]


def check_the_host_is_left_alone() -> None:
    """Drawing and dropping out on the device does not move the host's generator."""
    torch.manual_seed(4)
    expected = torch.rand(5).tolist()
    torch.manual_seed(4)
    torch.rand(5, device=DEVICE)
    torch.nn.functional.dropout(torch.ones(10, device=DEVICE), 0.5)
    assert torch.rand(5).tolist() == expected


def check_dropout_keeps_its_share() -> None:
    """Dropout repeats under its seed and scales what it keeps."""
    masks = []
    for _ in range(2):
        torch.manual_seed(5)
        masks.append(torch.nn.functional.dropout(torch.ones(10_000, device=DEVICE), 0.25).cpu())
    assert torch.equal(masks[0], masks[1])
    assert 0.72 < (masks[0] > 0).float().mean().item() < 0.78
