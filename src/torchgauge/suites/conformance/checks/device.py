"""Device: count, index, context, capability and synchronisation."""

from __future__ import annotations

import torch

from torchgauge.suites.conformance.bench import Bench, check

GROUP = "device"


@check("torch.accelerator.device_count", tier="smoke")
def count(bench: Bench) -> None:
    """The device is counted, and its module counts the same."""
    found = bench.accelerator.device_count()
    bench.expect(found >= 1, f"torch.accelerator counts {found} devices")
    own = bench.need(bench.module, "device_count")()
    bench.expect(own == found, f"torch.{bench.type} counts {own}, torch.accelerator {found}")


@check("torch.Tensor.device", tier="smoke")
def index(bench: Bench) -> None:
    """A tensor made without an index lies on the current device, and one made with it says so."""
    made = torch.empty(2, device=bench.type)
    if bench.on_host:
        bench.expect(made.device == bench.device, f"a tensor of the host is on {made.device}")
        return
    current = bench.need(bench.module, "current_device")()
    bench.expect(made.device.index == current, f"current is {current}, a new tensor is on {made.device}")
    named = torch.empty(2, device=torch.device(bench.type, 0))
    bench.expect(named.device.index == 0, f"asked for index 0, got a tensor on {named.device}")
    bench.expect(named.get_device() == 0, f"get_device() of a tensor on index 0 is {named.get_device()}")


@check("torch.accelerator.set_device_index")
def index_switch(bench: Bench) -> None:
    """The current index can be changed and comes back."""
    accelerator = bench.accelerator
    before = accelerator.current_device_index()
    number = accelerator.device_count()
    try:
        for wanted in {0, number - 1}:
            accelerator.set_device_index(wanted)
            found = accelerator.current_device_index()
            bench.expect(found == wanted, f"the index was set to {wanted} and is {found}")
            bench.expect(
                torch.empty(1, device=bench.type).device.index == wanted,
                f"with index {wanted} current a new tensor is on another device",
            )
    finally:
        accelerator.set_device_index(before)


@check("torch.device as a context", tier="smoke")
def context(bench: Bench) -> None:
    """Factories inside the context make tensors on the device."""
    with bench.device:
        made, scaled = torch.ones(3), torch.nn.Linear(2, 2).weight
    bench.expect(made.device.type == bench.type, f"torch.ones in the context is on {made.device}")
    bench.expect(scaled.device.type == bench.type, f"a parameter made in the context is on {scaled.device}")
    bench.expect(torch.ones(1).device.type != bench.type or bench.on_host, "the context did not end")


@check("torch.set_default_device")
def default(bench: Bench) -> None:
    """The default device is used by factories until it is taken back."""
    torch.set_default_device(bench.device)
    try:
        made = torch.arange(4.0)
    finally:
        torch.set_default_device(None)
    bench.same(made, torch.arange(4.0))


@check("torch.accelerator.synchronize", tier="smoke")
def synchronize(bench: Bench) -> None:
    """Synchronising returns, and what was submitted before it is done."""
    value = bench.send(bench.numbers(64, 64))
    product = value @ value
    bench.session.synchronize()
    bench.compare(lambda x: x @ x, bench.numbers(64, 64))
    bench.expect(bool(torch.isfinite(product).all()), "numbers after synchronising are not finite")
    synchronise = getattr(bench.module, "synchronize", None)
    if synchronise is not None:
        synchronise()


@check("torch.accelerator.get_device_capability")
def capability(bench: Bench) -> None:
    """The device says which dtypes it supports, and float32 is one of them."""
    ask = bench.need(bench.accelerator, "get_device_capability")
    with bench.unless_refused("the device names no dtypes"):
        found = ask()
    dtypes = found.get("supported_dtypes", set())
    bench.facts["supported_dtypes"] = ", ".join(sorted(str(each).rpartition(".")[2] for each in dtypes))
    bench.expect(torch.float32 in dtypes, f"float32 is not among supported_dtypes: {bench.facts}")


@check("torch.<device>.get_device_name")
def name(bench: Bench) -> None:
    """The device has a name for people."""
    bench.not_on_host("the host's name is the operating system's to tell")
    found = bench.need(bench.module, "get_device_name")()
    bench.facts["device_name"] = str(found)
    bench.expect(isinstance(found, str) and found.strip(), f"get_device_name() gave {found!r}")
