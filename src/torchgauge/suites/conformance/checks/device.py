"""Device: count, index, context, capability and synchronisation."""

from __future__ import annotations

import torch

from torchgauge.counted import counted
from torchgauge.suites.conformance.check_context import CheckContext, check

GROUP = "device"


@check("torch.accelerator.device_count", tier="smoke")
def count(context: CheckContext) -> None:
    """The device is counted, and its module counts the same."""
    found = context.accelerator.device_count()
    context.expect(found >= 1, f"torch.accelerator counts {counted(found, 'device')}")
    own = context.need(context.module, "device_count")()
    context.expect(own == found, f"torch.{context.type} counts {own}, torch.accelerator {found}")


@check("torch.Tensor.device", tier="smoke")
def index(context: CheckContext) -> None:
    """A tensor made without an index lies on the current device, and one made with it says so."""
    made = torch.empty(2, device=context.type)
    if context.on_host:
        context.expect(made.device == context.device, f"a host tensor is on {made.device}")
        return
    current = context.need(context.module, "current_device")()
    context.expect(
        made.device.index == current, f"the current index is {current}, but a new tensor is on {made.device}"
    )
    for wanted in range(int(context.need(context.module, "device_count")())):
        asked = torch.device(context.type, wanted)
        for named in (torch.empty(2, device=asked), torch.ones(2).to(asked)):
            found = (named.device.index, named.get_device())
            context.expect(
                found == (wanted, wanted),
                f"{asked} was requested, but the tensor is on {named.device}: the index is ignored",
            )


@check("torch.accelerator.set_device_index")
def index_switch(context: CheckContext) -> None:
    """The current index can be changed and comes back."""
    accelerator = context.accelerator
    before = accelerator.current_device_index()
    number = accelerator.device_count()
    try:
        for wanted in {0, number - 1}:
            accelerator.set_device_index(wanted)
            found = accelerator.current_device_index()
            context.expect(found == wanted, f"the index was set to {wanted}, but is {found}")
            context.expect(
                torch.empty(1, device=context.type).device.index == wanted,
                f"after set_device_index({wanted}), a new tensor is on another device",
            )
    finally:
        accelerator.set_device_index(before)


@check("torch.device as a context", tier="smoke")
def context(context: CheckContext) -> None:
    """Factories inside the context make tensors on the device."""
    with context.device:
        made, scaled = torch.ones(3), torch.nn.Linear(2, 2).weight
    context.expect(made.device.type == context.type, f"torch.ones in the context is on {made.device}")
    context.expect(
        scaled.device.type == context.type, f"a parameter created in the context is on {scaled.device}"
    )
    context.expect(
        torch.ones(1).device.type != context.type or context.on_host,
        "after the context, a new tensor is still on the device",
    )


@check("torch.set_default_device")
def default(context: CheckContext) -> None:
    """The default device is used by factories until it is taken back."""
    torch.set_default_device(context.device)
    try:
        made = torch.arange(4.0)
    finally:
        torch.set_default_device(None)
    context.same(made, torch.arange(4.0))


@check("torch.accelerator.synchronize", tier="smoke")
def synchronize(context: CheckContext) -> None:
    """Synchronising returns, and what was submitted before it is done."""
    value = context.send(context.numbers(64, 64))
    product = value @ value
    context.session.synchronize()
    context.compare(lambda x: x @ x, context.numbers(64, 64))
    context.expect(bool(torch.isfinite(product).all()), "values after synchronize() are not finite")
    synchronise = getattr(context.module, "synchronize", None)
    if synchronise is not None:
        synchronise()


@check("torch.accelerator.synchronize, torch.Event.elapsed_time", tier="smoke")
def clocks(context: CheckContext) -> None:
    """After synchronising the device has computed, and its events count the host's time."""
    context.not_on_host("calls on the host are synchronous")
    contradiction = getattr(context.session, "clock_contradiction", None)
    if contradiction is None:
        context.unsupported(
            "the device's adapter does not compare device events with the host's clock "
            "(no clock_contradiction method)"
        )
    found = contradiction()
    context.expect(not found, found)


@check("torch.accelerator.get_device_capability")
def capability(context: CheckContext) -> None:
    """The device says which dtypes it supports, and float32 is one of them."""
    ask = context.need(context.accelerator, "get_device_capability")
    with context.unless_refused("the device lists no dtypes"):
        found = ask()
    dtypes = found.get("supported_dtypes", set())
    context.facts["supported_dtypes"] = ", ".join(sorted(str(each).rpartition(".")[2] for each in dtypes))
    context.expect(torch.float32 in dtypes, f"float32 is not among supported_dtypes: {context.facts}")


@check("torch.<device>.get_device_name")
def name(context: CheckContext) -> None:
    """The device has a name for people."""
    context.not_on_host("the operating system names the host")
    found = context.need(context.module, "get_device_name")()
    context.facts["device_name"] = str(found)
    context.expect(isinstance(found, str) and found.strip(), f"get_device_name() gave {found!r}")
