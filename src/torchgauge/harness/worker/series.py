"""One configuration's step function with the samples taken so far, and which of them count.

Blocks of which others had the cores are kept apart: they say something of the machine, and of the model only
where there are no others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from torchgauge.harness.worker.stopping import interval_rank
from torchgauge.records import Scalar

if TYPE_CHECKING:
    from torchgauge.devices.clock_check import Closer, Span
    from torchgauge.harness.worker.timed_results import TimedResults

CONTENDED = 0.05
"""Share of a block without a core from which it is left out: the median of the others is off by less."""


@dataclass(frozen=True)
class Block:
    """Seconds per step in one block: wall, CPU time of the process, and device events where any.

    ``throttled`` is why the device had lowered its clock at its end. ``span`` is what events showed of the
    whole block with its bounds, ``late`` how many seconds the device needed beyond it where that was looked
    at. ``result`` is what step ``kept``, untimed ones included, returned, until it is judged.
    """

    wall: float
    cpu: float
    device: float | None
    throttled: str = ""
    span: Span | None = None
    late: float | None = None
    kept: int = 0
    result: Any = None


@dataclass
class Series:
    """One configuration's step function with the samples taken so far.

    ``subject`` is what the step was made of, for scenarios that measure no steps. ``running`` is entered
    around whatever runs of it, and ``observed`` around a number of steps that must run its configuration.
    ``results`` judges what timed steps return. ``settled`` says that its step has run in this process and
    compiles nothing the next time. A step that keeps numbers of its own has ``sampled(number, steps)``: the
    last ``steps`` calls were the block of round ``number`` (others warm up, settle after a pause, or are
    profiled).
    ``lead`` untimed steps precede the ``inner`` steps of a block.
    ``growth`` contains, by metric, the bytes per step that each block kept. ``keeps`` says that steps of the
    warm-up kept memory to its end.
    ``closer`` waits for what a block computes, where the device may lag behind the host; ``late`` has the
    seconds of each block that it closed, by the host's clock and beyond that.
    """

    key: str
    step: Callable[[], Any]
    subject: Any = None
    running: Callable[[], AbstractContextManager[Any]] = nullcontext
    observed: Callable[[int], AbstractContextManager[Any]] = nullcontext
    results: TimedResults | None = None
    settled: bool = False
    inner: int = 1
    lead: int = 0
    warmup: str = ""
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    device: list[float] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    contention: dict[int, float] = field(default_factory=dict)
    contended: dict[int, Block] = field(default_factory=dict)
    throttled: dict[int, Block] = field(default_factory=dict)
    growth: dict[str, list[float]] = field(default_factory=dict)
    keeps: bool = False
    failed: BaseException | None = None
    agreed: int = 0
    stopped: str = ""
    closer: Closer | None = None
    spans: list[Span] = field(default_factory=list)
    late: list[tuple[float, float]] = field(default_factory=list)

    @property
    def steps(self) -> int:
        """Return the number of steps of a block, untimed ones included."""
        return self.lead + self.inner

    def add(self, block: Block, number: int, contention: float | None = None) -> None:
        """Keep ``block`` as this series' sample of round ``number``.

        It is kept apart where others had its cores, or where the device had lowered its clock.
        """
        if sampled := getattr(self.step, "sampled", None):
            sampled(number, self.inner)
        if block.span is not None:
            self.spans.append(block.span)
        if block.late is not None:
            self.late.append((block.wall * self.inner, block.late))
        if contention is not None:
            self.contention[number] = contention
        block = replace(block, result=None)
        if block.throttled:
            self.throttled[number] = block
        elif contention is not None and contention > CONTENDED:
            self.contended[number] = block
        else:
            self._count(block, number)

    def judge(self, block: Block) -> None:
        """Judge the result that ``block`` holds; what that raises is the failure of this series."""
        try:
            if self.results is not None:
                self.results.judge(block.result, block.kept, self.steps, block.wall * self.inner)
        except Exception as error:  # noqa: BLE001  the case's own failure: it becomes its status
            self.failed = error

    @property
    def apart(self) -> bool:
        """Whether there are blocks that were kept apart."""
        return bool(self.contended or self.throttled)

    def throttling(self) -> dict[str, Scalar]:
        """Blocks at whose end the device had lowered its clock, as facts; none where it never had.

        How many there were and for what, how long a step took in them, and how many of them count.
        """
        if not self.throttled:
            return {}
        found = self.throttled.values()
        return {
            "throttled_blocks": len(found),
            "throttled_for": ", ".join(sorted({block.throttled for block in found})),
            "throttled_step_s": median(block.wall for block in found),
            "throttled_counted": len(self.throttled.keys() & set(self.rounds)),
        }

    def settle(self, confidence: float) -> None:
        """Count the blocks that were kept apart like the others, where those are too few for an interval."""
        if interval_rank(len(self.wall), confidence) or not self.apart:
            return
        devices: Sequence[float | None] = self.device or [None] * len(self.wall)
        columns = zip(self.rounds, self.wall, self.cpu, devices, strict=True)
        clean = {number: Block(wall, cpu, device) for number, wall, cpu, device in columns}
        every, self.contended = {**clean, **self.contended, **self.throttled}, {}
        for samples in (self.wall, self.cpu, self.device, self.rounds):
            samples.clear()
        for number in sorted(every):
            self._count(every[number], number)

    def _count(self, block: Block, number: int) -> None:
        self.wall.append(block.wall)
        self.cpu.append(block.cpu)
        self.rounds.append(number)
        if block.device is not None:
            self.device.append(block.device)
