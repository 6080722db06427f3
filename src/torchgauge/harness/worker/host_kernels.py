"""Kernels of a device that compute on the host: they copy their inputs there, compute, and copy back.

PyTorch's fallback is another thing (``fallbacks.py``): these operators have a kernel of their own, registered
like any other. Their signature in a profile is a tensor that leaves the device, an operator that computes,
and a copy back, all within one operator. A kernel that reads and writes the device's memory from the host
leaves no such trace. Whether there may be one is told by the host's CPU time: where the host was idle for
most of a step, it did not compute it; where it was busy, nobody can tell launching from computing, and the
row says so. Allocations tell nothing that copies do not: what is copied to the host is allocated there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from statistics import median

from torchgauge.harness.worker.profiled_step import DEVICE_COPY, OPERATOR, Event
from torchgauge.records import Measurement

FACT = "host_execution"
"""The fact that says whether the step was computed on the host: no, or why that cannot be told."""
IDLE_SHARE = 0.5
"""CPU time of a step by the time for which it had a core; below this the host computed the lesser part."""
ONE_THREAD = 1.5
"""The same, above which more than one thread was busy: one is enough to launch."""
_MOVING = frozenset(
    {"aten::to", "aten::_to_copy", "aten::copy_", "aten::_copy_from", "aten::_copy_from_and_resize"}
    | {"aten::cpu", "aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::clone"}
    | {"aten::contiguous", "aten::resize_", "aten::pin_memory"}
)
_MAKING = ("aten::empty", "aten::detach", "aten::view", "aten::as_strided", "aten::alias", "aten::set_")
_BACK = frozenset({DEVICE_COPY, "aten::_copy_from_and_resize"})


def host_kernels(
    events: Sequence[Event], moves: Callable[[Event], bool], known: Collection[Event]
) -> dict[Event, str]:
    """The operators among ``events`` that were computed on the host by a kernel of the device's own.

    ``moves`` says of an event whether a tensor goes from one device to another; ``known`` are operators that
    are explained already.
    """
    out: dict[Event, int] = {}
    for event in events:
        operator = _around(event) if moves(event) else None
        if operator is not None and not any(each in known for each in (operator, *operator.inside())):
            out[operator] = min(event.end, out.get(operator, event.end))
    computed = {
        operator: event.end
        for event in sorted(events, key=lambda each: -each.end)
        if bool(OPERATOR.fullmatch(event.name)) and _more(event.name) and not event.name.startswith(_MAKING)
        for operator in event.inside()
        if operator in out and event.start >= out[operator]
    }
    return {
        operator: operator.name
        for event in events
        if event.name in _BACK and not event.span.converts
        for operator in event.inside()
        if operator in computed and event.start >= computed[operator]
    }


def told(measurements: Sequence[Measurement]) -> str:
    """What the CPU time of the steps says of kernels that leave no trace."""
    found = {each.metric: dict(zip(each.blocks, each.samples, strict=False)) for each in measurements}
    wall, cpu, waited = (found.get(name, {}) for name in ("latency", "latency_cpu", "contention"))
    shares = [cpu[each] / (wall[each] * (1.0 - waited[each])) for each in wall if waited.get(each, 1.0) < 1.0]
    if not shares:
        return "unknown: the time that a step had a core was not recorded"
    share = median(shares)
    busy = f"the host was busy for {share:.0%} of a step"
    if share < IDLE_SHARE:
        return f"less than half of the step: {busy}"
    more = ", more than one launching thread needs" if share > ONE_THREAD else ""
    return f"unknown: {busy}{more}; the profile does not show whether it launched kernels, waited or computed"


def _around(event: Event) -> Event | None:
    """The innermost operator around ``event`` that does more than copy."""
    return next((each for each in event.inside() if OPERATOR.fullmatch(each.name) and _more(each.name)), None)


def _more(name: str) -> bool:
    return name not in _MOVING
