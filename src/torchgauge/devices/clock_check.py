"""Whether the clocks that time a device agree: that synchronising waits, and events count as the host does.

Two clocks that lie alike agree with each other. So the judge is a third one, which nobody can bend: a value
that depends on what the device computes is there only afterwards. *Closing* a block means to fetch such a
value right after synchronising; the time it takes beyond a second fetch, when nothing is left to wait for, is
by how much the device was late. Events are held to what is possible: they cannot last longer than from before
the first was recorded until the device was waited for.

Worker side, on Python 3.10 and torch 2.5 and later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from itertools import repeat
from statistics import median
from typing import Any

from torchgauge.counted import counted
from torchgauge.devices.hooks import HOOK_ERRORS, first_line, likely_unit
from torchgauge.devices.session import DeviceSession
from torchgauge.errors import ClockContradictionError

HOST = "cpu"
AT_ONCE, ENOUGH, ACCUSED = 2, 6, 35
"""Closings in time that acquit where none was late, and otherwise; late ones that accuse.

On a machine that others use any fetch may take long. But a device that is in time has no more to do in the
first than in the second, so half of its closings are no later than the median of those, whatever the load:
35 late ones before the sixth in time have a probability below 1e-6.
"""
LONG_BLOCK_S = 0.05
"""Seconds of a block from which on one closing in time is enough: chance does not hide five percent of it."""
LOOKS = 10
"""Blocks in which events must show what cannot be."""
LATE_SHARE, LATE_S = 0.05, 1e-4
"""By how much of its block and by how many seconds a device is late at most without being accused."""
LONG_SHARE, LONG_S = 1.02, 2e-5
"""How far events may exceed the host's time: another quartz, and the step of their clock."""
SHORT_SHARE, SHORT_SHARE_OF_LAUNCHES = 0.5, 0.7
"""Part of the host's time from event to event that they show at least; of a block of nothing but launches."""
SHORTEST_S = 5e-4
"""Host's time below which nothing is said of events that show too little."""
WORK_S = 2e-3
"""Seconds that the known work lasts at least, by the value that depends on it."""
PRODUCTS, SIZES = 8, (256, 512, 1024, 2048, 4096)
"""The known work: so many products of square matrices of the first of these sizes that lasts long enough."""


@dataclass(frozen=True)
class Span:
    """Seconds of one block: ``shown`` by two events, of which the host knows bounds.

    ``most`` lasts from before the first was recorded until the device was waited for.
    """

    shown: float
    least: float
    most: float


def applies(session: DeviceSession) -> bool:
    """Whether the device may lag behind the host: no other clock is needed where they are one."""
    return session.torch_device is not None and session.torch_device.type != HOST


class Closer:
    """Fetches values that the device must have computed; others raise :class:`ClockContradictionError`."""

    def __init__(self, session: DeviceSession) -> None:
        import torch

        self._mark, self._count = torch.zeros(1, device=session.torch_device), 0
        self._kind = session.torch_device.type
        self._idle: list[float] = []

    def late(self, result: Any = None) -> float:
        """Seconds that the device still needed, for ``result`` and for everything before this call.

        Beyond the median of all second fetches so far.
        """
        value = self._element(result)
        first = self._fetch(value)
        self._idle.append(self._fetch(value))
        return first - median(self._idle)

    def _fetch(self, value: Any) -> float:
        import torch

        began = time.perf_counter()
        if value is not None:
            value.cpu()
        with torch.no_grad():
            self._mark.add_(1.0)
        found, self._count = float(self._mark.cpu()), self._count + 1
        seconds = time.perf_counter() - began
        if found != self._count:
            self._mark, self._count = torch.zeros_like(self._mark), 0
            raise ClockContradictionError(
                f"a counter on the device reads {found:g} on the host after {self._count} increments"
            )
        return seconds

    def _element(self, result: Any) -> Any:
        """One number of the first dense tensor of ``result`` that is on the device; None where none is."""
        import torch

        if isinstance(result, torch.Tensor):
            here = result.device.type == self._kind and result.layout is torch.strided and result.numel() > 0
            return result.detach()[(0,) * result.dim()] if here and not result.is_nested else None
        if isinstance(result, dict):
            result = tuple(result.values())
        if isinstance(result, (list, tuple)):
            return next((one for one in map(self._element, result) if one is not None), None)
        return None


def refuse_early_end(block: Callable[[], tuple[float, float]]) -> None:
    """Raise :class:`ClockContradictionError` where the device is late in most blocks.

    ``block`` runs one and returns seconds: how long it took by synchronising, and how much longer the device
    needed.
    """
    seen: list[tuple[float, float]] = []
    acquitted = 0
    while len(seen) < ACCUSED:
        wall, late = block()
        if not in_time(wall, late):
            seen.append((wall, late))
            continue
        acquitted += AT_ONCE if wall > LONG_BLOCK_S else 1
        if acquitted >= (ENOUGH if seen else AT_ONCE):
            return
    wall, late = median(each for each, _ in seen), median(each for _, each in seen)
    raise ClockContradictionError(
        f"synchronize does not wait: it returned {_ms(wall)} after a timed block began, but the "
        f"block's result reached the host {_ms(late)} after that (median of {counted(len(seen), 'block')})"
    )


def in_time(wall: float, late: float) -> bool:
    """Whether a device that needed ``late`` seconds beyond a block of ``wall`` was waited for."""
    return late <= LATE_S + LATE_SHARE * wall


def refuse_wrong_events(spans: Sequence[Span]) -> None:
    """Raise :class:`ClockContradictionError` where most of ``spans``, and all together, show what cannot be.

    Together, because a clock of coarse steps rounds: of many blocks that averages out.
    """
    together = Span(*(sum(column) for column in zip(*map(astuple, spans), strict=True))) if spans else None
    for judge in (_backwards, _nothing, _too_long, _too_short):
        wrong = [span for span in spans if judge(span)]
        if 2 * len(wrong) > len(spans) and together is not None and judge(together):
            shown, most = median(each.shown for each in wrong), median(each.most for each in wrong)
            raise ClockContradictionError(
                f"events contradict the host's clock: they show {_ms(shown)} for a block of {_ms(most)} "
                f"({len(wrong)} of {counted(len(spans), 'block')}){likely_unit(shown, most)}"
            )


def _backwards(span: Span) -> bool:
    return not span.shown >= 0.0  # NaN too


def _nothing(span: Span) -> bool:
    return span.shown == 0.0 and span.most > SHORTEST_S


def _too_long(span: Span) -> bool:
    return span.shown > LONG_SHARE * span.most + LONG_S


def _too_short(span: Span) -> bool:
    return span.most > SHORTEST_S and span.shown < span.least


def contradiction(session: DeviceSession) -> str:
    """How the device's clocks contradict each other or the host's while it does known work; "" where not.

    Raises what the device raises where it cannot do the work.
    """
    if not applies(session):
        return ""
    try:
        _check(session)
    except ClockContradictionError as error:
        return error.message
    return ""


def _check(session: DeviceSession) -> None:
    closer = Closer(session)
    work = _known_work(session, closer)
    refuse_early_end(lambda: closed(work, session, closer))
    timer = session.event_timer()
    if refused := getattr(session, "events_contradict", ""):
        raise ClockContradictionError(f"events contradict the host's clock: {refused}")
    if timer is None:
        return
    spans: list[Span] = []
    while len(spans) < LOOKS:
        spans.append(_spanned(work, session, timer))
        try:
            refuse_wrong_events(spans[-1:])
        except ClockContradictionError:
            continue
        return
    refuse_wrong_events(spans)


def closed(
    step: Callable[[], Any], session: DeviceSession, closer: Closer, steps: int = 1
) -> tuple[float, float]:
    """Seconds of ``steps`` steps between two synchronisations, and how much longer the device needed."""
    session.synchronize()
    began = time.perf_counter()
    for _ in repeat(None, steps - 1):
        step()
    result = step()
    session.synchronize()
    return time.perf_counter() - began, closer.late(result)


def _spanned(work: Callable[[], Any], session: DeviceSession, timer: Any) -> Span:
    session.synchronize()
    began = time.perf_counter()
    timer.start()
    started = time.perf_counter()
    work()
    submitting = time.perf_counter() - started
    timer.stop()
    session.synchronize()
    most = time.perf_counter() - began
    return stepped(timer.elapsed_s(), submitting, most)


def launched(shown: float, submitting: float, most: float) -> Span:
    """What events show of a block that is nothing but launches: nearly all of it."""
    return Span(shown, SHORT_SHARE_OF_LAUNCHES * submitting, most)


def stepped(shown: float, submitting: float, most: float) -> Span:
    """What events show of any steps: no less than what the host took from the first event to the second.

    But for how long the device takes to notice the first. Another stream may hide all else.
    """
    return Span(shown, SHORT_SHARE * submitting, most)


def _known_work(session: DeviceSession, closer: Closer) -> Callable[[], Any]:
    """Products that keep the device busy for :data:`WORK_S`, or as long as the largest of them do."""
    import torch

    def row(block: Any) -> Any:
        with torch.no_grad():
            for _ in range(PRODUCTS - 1):
                torch.mm(block, block)
            return torch.mm(block, block)

    for size in SIZES:
        work = partial(row, torch.ones(size, size, device=session.torch_device))
        closed(work, session, closer)  # the first call may load or compile a kernel
        if sum(closed(work, session, closer)) >= WORK_S:
            break
    return work


def told(session: DeviceSession) -> tuple[str, str]:
    """:func:`contradiction`, and why nothing can be told where the device cannot do the work."""
    try:
        return contradiction(session), ""
    except HOOK_ERRORS as error:
        if session.is_oom(error) or session.is_lost(error):
            raise
        return "", first_line(error)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"
