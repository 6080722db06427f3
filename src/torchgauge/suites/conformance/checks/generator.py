"""Generators: seeds, states, and independence of the host's random numbers."""

from __future__ import annotations

import torch

from torchgauge.suites.conformance.bench import Bench, check
from torchgauge.suites.suite import HOST

GROUP = "generator"


def _draw(bench: Bench, number: int = 64) -> torch.Tensor:
    return torch.rand(number, device=bench.device).to(HOST)


@check("torch.manual_seed", tier="smoke")
def seed(bench: Bench) -> None:
    """The same seed gives the same numbers, another one others."""
    drawn = []
    for value in (7, 7, 8):
        torch.manual_seed(value)
        drawn.append(_draw(bench))
    bench.expect(torch.equal(drawn[0], drawn[1]), "the same seed gave different numbers")
    bench.expect(not torch.equal(drawn[0], drawn[2]), "another seed gave the same numbers")


@check("torch.<device>.get_rng_state, set_rng_state")
def state(bench: Bench) -> None:
    """A state that is kept gives the same numbers again."""
    owner = torch if bench.on_host else bench.module
    kept = bench.need(owner, "get_rng_state")()
    first = _draw(bench)
    bench.need(owner, "set_rng_state")(kept)
    bench.expect(torch.equal(_draw(bench), first), "a restored state gave other numbers")


@check("torch.Generator(device)")
def own(bench: Bench) -> None:
    """A generator of one's own is independent of the default one."""
    with bench.unless_refused("the device makes no generators"):
        one, other = torch.Generator(device=bench.device), torch.Generator(device=bench.device)
    one.manual_seed(3)
    other.manual_seed(3)
    first = torch.rand(8, device=bench.device, generator=one)
    _draw(bench)
    bench.same(torch.rand(8, device=bench.device, generator=other), first)


@check("separate generators")
def apart_from_host(bench: Bench) -> None:
    """Drawing on the device does not move the host's generator."""
    bench.not_on_host("it is the host's generator")
    torch.manual_seed(5)
    undisturbed = torch.rand(8)
    torch.manual_seed(5)
    _draw(bench)
    bench.expect(torch.equal(torch.rand(8), undisturbed), "drawing on the device moved the host's generator")


@check("torch.nn.functional.dropout", tier="smoke")
def dropout(bench: Bench) -> None:
    """Dropout repeats under its seed, keeps about the share that it should and scales what it keeps."""
    ones = torch.ones(10_000, device=bench.device)
    masks = []
    for _ in range(2):
        torch.manual_seed(11)
        masks.append(torch.nn.functional.dropout(ones, 0.25))
    bench.same(masks[0], masks[1])
    share = float((masks[0] > 0).float().mean())
    bench.expect(0.72 < share < 0.78, f"dropout of 0.25 kept {share:.3f}")
    bench.same(masks[0].max(), torch.tensor(4 / 3))


@check("torch.random.fork_rng")
def fork(bench: Bench) -> None:
    """Inside fork_rng draws do not count."""
    devices = {} if bench.on_host else {"devices": [bench.device.index or 0], "device_type": bench.type}
    torch.manual_seed(9)
    first = _draw(bench)
    torch.manual_seed(9)
    with torch.random.fork_rng(**devices):
        _draw(bench)
    bench.expect(torch.equal(_draw(bench), first), "draws inside fork_rng moved the generator")


@check("torch.randn, randint, randperm, bernoulli")
def distributions(bench: Bench) -> None:
    """Random numbers have the mean and range of their distribution."""
    torch.manual_seed(1)
    normal = torch.randn(20_000, device=bench.device)
    mean, spread = float(normal.mean()), float(normal.std())
    bench.expect(abs(mean) < 0.05 and abs(spread - 1) < 0.05, f"randn has mean {mean:.3f}, std {spread:.3f}")
    whole = torch.randint(3, 9, (5000,), device=bench.device)
    low, high = int(whole.min()), int(whole.max())
    bench.expect((low, high) == (3, 8), f"randint(3, 9) lies in {low} to {high}")
    order = torch.randperm(100, device=bench.device)
    bench.same(order.sort().values, torch.arange(100))
    share = float(torch.bernoulli(torch.full((20_000,), 0.3, device=bench.device)).mean())
    bench.expect(abs(share - 0.3) < 0.02, f"bernoulli(0.3) has mean {share:.3f}")
