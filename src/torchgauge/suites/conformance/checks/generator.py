"""Generators: seeds, states, and independence of the host's random numbers."""

from __future__ import annotations

import torch

from torchgauge.suites.conformance.check_context import CheckContext, check
from torchgauge.suites.suite import HOST

GROUP = "generator"


def _draw(context: CheckContext, number: int = 64) -> torch.Tensor:
    return torch.rand(number, device=context.device).to(HOST)


@check("torch.manual_seed", tier="smoke")
def seed(context: CheckContext) -> None:
    """The same seed gives the same numbers, another one others."""
    drawn = []
    for value in (7, 7, 8):
        torch.manual_seed(value)
        drawn.append(_draw(context))
    context.expect(torch.equal(drawn[0], drawn[1]), "the same seed gave different numbers")
    context.expect(not torch.equal(drawn[0], drawn[2]), "another seed gave the same numbers")


@check("torch.<device>.get_rng_state, set_rng_state")
def state(context: CheckContext) -> None:
    """A state that is kept gives the same numbers again."""
    owner = torch if context.on_host else context.module
    kept = context.need(owner, "get_rng_state")()
    first = _draw(context)
    context.need(owner, "set_rng_state")(kept)
    context.expect(torch.equal(_draw(context), first), "a restored state gave other numbers")


@check("torch.Generator(device)")
def own(context: CheckContext) -> None:
    """A generator of one's own is independent of the default one."""
    with context.unless_refused("the device has no generators"):
        one, other = torch.Generator(device=context.device), torch.Generator(device=context.device)
    one.manual_seed(3)
    other.manual_seed(3)
    first = torch.rand(8, device=context.device, generator=one)
    _draw(context)
    context.same(torch.rand(8, device=context.device, generator=other), first)


@check("separate generators")
def apart_from_host(context: CheckContext) -> None:
    """Drawing on the device does not move the host's generator."""
    context.not_on_host("the host's generator is the only one")
    torch.manual_seed(5)
    undisturbed = torch.rand(8)
    torch.manual_seed(5)
    _draw(context)
    context.expect(
        torch.equal(torch.rand(8), undisturbed), "drawing on the device advanced the host's generator"
    )


@check("torch.nn.functional.dropout", tier="smoke")
def dropout(context: CheckContext) -> None:
    """Dropout repeats under its seed, keeps about the share that it should and scales what it keeps."""
    ones = torch.ones(10_000, device=context.device)
    masks = []
    for _ in range(2):
        torch.manual_seed(11)
        masks.append(torch.nn.functional.dropout(ones, 0.25))
    context.same(masks[0], masks[1])
    share = float((masks[0] > 0).float().mean())
    context.expect(0.72 < share < 0.78, f"dropout of 0.25 kept {share:.3f}")
    context.same(masks[0].max(), torch.tensor(4 / 3))


@check("torch.random.fork_rng")
def fork(context: CheckContext) -> None:
    """Inside fork_rng draws do not count."""
    devices = {} if context.on_host else {"devices": [context.device.index or 0], "device_type": context.type}
    torch.manual_seed(9)
    first = _draw(context)
    torch.manual_seed(9)
    with torch.random.fork_rng(**devices):
        _draw(context)
    context.expect(torch.equal(_draw(context), first), "draws inside fork_rng advanced the generator")


@check("torch.randn, randint, randperm, bernoulli")
def distributions(context: CheckContext) -> None:
    """Random numbers have the mean and range of their distribution."""
    torch.manual_seed(1)
    normal = torch.randn(20_000, device=context.device)
    mean, spread = float(normal.mean()), float(normal.std())
    context.expect(
        abs(mean) < 0.05 and abs(spread - 1) < 0.05, f"randn has mean {mean:.3f}, std {spread:.3f}"
    )
    whole = torch.randint(3, 9, (5000,), device=context.device)
    low, high = int(whole.min()), int(whole.max())
    context.expect((low, high) == (3, 8), f"randint(3, 9) gave values from {low} to {high}")
    order = torch.randperm(100, device=context.device)
    context.same(order.sort().values, torch.arange(100))
    share = float(torch.bernoulli(torch.full((20_000,), 0.3, device=context.device)).mean())
    context.expect(abs(share - 0.3) < 0.02, f"bernoulli(0.3) has mean {share:.3f}")
