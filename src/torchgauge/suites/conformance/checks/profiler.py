"""Profiler: host events, device events, counts of operations."""

from __future__ import annotations

from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from torchgauge.suites.conformance.bench import Bench, check
from torchgauge.suites.suite import HOST

GROUP = "profiler"


def _events(bench: Bench, activity: str) -> list[str]:
    activities = [getattr(ProfilerActivity, HOST.upper())]
    if activity:
        activities.append(getattr(ProfilerActivity, activity))
    there = bench.send(bench.numbers(32, 32))
    with profile(activities=activities) as found:
        (there @ there).sum()
        bench.session.synchronize()
    if activity:
        return [e.name for e in found.events() if str(e.device_type).rpartition(".")[2] != HOST.upper()]
    return [e.key for e in found.key_averages()]


@check("torch.profiler.profile")
def host_side(bench: Bench) -> None:
    """The profiler sees the operators that the host dispatches to the device."""
    names = _events(bench, "")
    bench.expect("aten::mm" in names, f"a product left no aten::mm among {len(names)} events")


@check("torch.profiler.ProfilerActivity")
def device_side(bench: Bench) -> None:
    """The profiler sees what ran on the device."""
    bench.not_on_host("the host's activity is the host side")
    activity = bench.session.profiler_activity
    if not activity or not hasattr(ProfilerActivity, activity):
        bench.unsupported(f"the profiler has no activity for {bench.type}")
    names = _events(bench, activity)
    if not names:
        bench.unsupported(f"with the activity {activity} the profiler recorded nothing of the device")
    bench.facts["device_events"] = len(names)


@check("torch.utils.flop_counter", tier="smoke")
def flops(bench: Bench) -> None:
    """A product of matrices counts as many operations as it has."""
    there = bench.send(bench.numbers(8, 16))
    with FlopCounterMode(display=False) as counter:
        there @ there.t()
    found = counter.get_total_flops()
    bench.expect(found == 2 * 8 * 16 * 8, f"(8, 16) @ (16, 8) counted {found} operations")
