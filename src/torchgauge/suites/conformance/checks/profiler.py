"""Profiler: host events, device events, counts of operations."""

from __future__ import annotations

from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from torchgauge.counted import counted
from torchgauge.suites.conformance.check_context import CheckContext, check
from torchgauge.suites.suite import HOST

GROUP = "profiler"


def _events(context: CheckContext, activity: str) -> list[str]:
    activities = [getattr(ProfilerActivity, HOST.upper())]
    if activity:
        activities.append(getattr(ProfilerActivity, activity))
    there = context.send(context.numbers(32, 32))
    with profile(activities=activities) as found:
        (there @ there).sum()
        context.session.synchronize()
    if activity:
        return [e.name for e in found.events() if str(e.device_type).rpartition(".")[2] != HOST.upper()]
    return [e.key for e in found.key_averages()]


@check("torch.profiler.profile")
def host_side(context: CheckContext) -> None:
    """The profiler sees the operators that the host dispatches to the device."""
    names = _events(context, "")
    context.expect(
        "aten::mm" in names,
        f"the profiler recorded no aten::mm for a matmul, but {counted(len(names), 'other event')}",
    )


@check("torch.profiler.ProfilerActivity")
def device_side(context: CheckContext) -> None:
    """The profiler sees what ran on the device."""
    context.not_on_host("the host has no device side")
    activity = context.session.profiler_activity
    if not activity or not hasattr(ProfilerActivity, activity):
        context.unsupported(f"the profiler has no activity for {context.type}")
    names = _events(context, activity)
    if not names:
        context.unsupported(f"the profiler recorded no device event with activity {activity}")
    context.facts["device_events"] = len(names)


@check("torch.utils.flop_counter", tier="smoke")
def flops(context: CheckContext) -> None:
    """A product of matrices counts as many operations as it has."""
    there = context.send(context.numbers(8, 16))
    with FlopCounterMode(display=False) as counter:
        there @ there.t()
    found = counter.get_total_flops()
    context.expect(found == 2 * 8 * 16 * 8, f"(8, 16) @ (16, 8) counted {counted(found, 'operation')}")
