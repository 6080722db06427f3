"""Which of two callables of this process is faster: blocks in ABBA order, judged like an A/B run.

The recorder of steps, the alternation and the judge are those of ``torchgauge ab``. A *part*, a quarter of a
second of ABBA blocks, takes the place of a launch. So the interval has in it how the two differ from part to
part of this process, and not what another process would add: other addresses, another seed of hashes. A
change has to repeat in fresh parts, as neighbouring parts resemble each other.
"""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.counted import counted
from torchgauge.devices.session import DeviceSession
from torchgauge.errors import UsageError
from torchgauge.harness.ab.alternation import Alternation, RunBlock, steps_per_block
from torchgauge.harness.ab.recorder import StepRecorder
from torchgauge.harness.ab.side_run import WARMUP_S
from torchgauge.harness.worker.clock_watch import ClockWatch
from torchgauge.harness.worker.series import Series
from torchgauge.harness.worker.timing import quiet_collector, time_block, warm_up
from torchgauge.live.own_process import device_of, open_session, put_back, require_torch
from torchgauge.records import (
    Case,
    Configuration,
    DeviceTarget,
    Outcome,
    Phase,
    RunSettings,
    Status,
    Workload,
)
from torchgauge.records.comparison import Launch, MetricVerdict, Pair, Side, Verdict
from torchgauge.records.metrics import STEP_TOLERANCE
from torchgauge.results import units
from torchgauge.results.comparing import verdict_words
from torchgauge.results.comparing.estimators import MIN_ABBA_BLOCKS
from torchgauge.results.comparing.judgement import Judge, Wanted
from torchgauge.results.comparing.noise import NoiseHistory
from torchgauge.results.comparing.policy import EntryFields, Layer, Policy
from torchgauge.results.gain import named_gain

MOST_PARTS = 24
PART_BLOCKS = 16
"""ABBA blocks of a part: a quarter of a second, where a step is shorter than a block."""
SLOW_PART_S = 1.0
"""Seconds of a part of slow steps, unless its fewest ABBA blocks last longer."""
ENDED = "the run ended before a verdict"
"""What the judge says of a pair whose time was over before it had enough parts."""
_WORDS = {Verdict.REGRESSION: "slower", Verdict.IMPROVEMENT: "faster"}


@dataclass(frozen=True)
class LiveComparison:
    """Holds the result of :func:`compare`: a verdict with its interval.

    - ``verdict``: ``regression`` (new is slower), ``improvement``, ``unchanged`` or ``undecided``.
    - ``ratio``: time of new over time of old.
    - ``low``, ``high``: interval of the ratio, at ``confidence``.
    - ``old``, ``new``: median times of a call, in seconds.
    - ``estimator``: compared time: ``device``, ``wall``, ``cpu``, or ``clean_wall`` (without calls that
      waited for a core).
    - ``detectable``: smallest relative change that the comparison would probably have found.
    - ``notes``: reasons to doubt the verdict.
    """

    verdict: Verdict
    ratio: float | None
    low: float | None
    high: float | None
    confidence: float
    old: float | None
    new: float | None
    tolerance: float
    detectable: float | None
    estimator: str
    device: str
    parts: int
    calls: int
    reason: str = ""
    notes: tuple[str, ...] = ()

    @property
    def slower(self) -> bool:
        """Return whether new was shown to be slower."""
        return self.verdict is Verdict.REGRESSION

    @property
    def faster(self) -> bool:
        """Return whether new was shown to be faster."""
        return self.verdict is Verdict.IMPROVEMENT

    def __repr__(self) -> str:
        word = _WORDS.get(self.verdict, verdict_words.name(self.verdict))
        if self.verdict is Verdict.UNCHANGED:
            word = f"unchanged within {self.tolerance:.2g}"
        shown = named_gain("latency", self.ratio, self.low, self.high)
        lines = [f"new against old: {word}{f', {shown}' if shown else ''}"]
        if self.old is not None and self.new is not None:
            times = f"old {units.quantity(self.old, 's')}, new {units.quantity(self.new, 's')} per call"
            lines.append(
                f"  {times} ({self.estimator.replace('_', ' ')}); {counted(self.calls, 'call')} "
                f"in {counted(self.parts, 'part')} on {self.device}"
            )
        lines += [f"  {self.reason}"] if self.reason else []
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def compare(
    old: Callable[..., Any],
    new: Callable[..., Any],
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    device: str | None = None,
    tolerance: float = STEP_TOLERANCE,
    max_time_s: float = 30.0,
    seed: int | None = None,
) -> LiveComparison:
    """Compare the time of ``new(*args, **kwargs)`` with that of ``old(*args, **kwargs)``.

    ``old`` and ``new`` are called alternately in this process, until the verdict is certain or
    ``max_time_s`` seconds are over.

    - ``device``: device that is synchronised (default: the device of ``args``, modules and results).
    - ``tolerance``: relative change. A smaller change than half of it is never a regression.
    - ``seed``: seed of the random order of calls.

    Raises :class:`UsageError` for an argument that is not callable, and any exception of a call.
    """
    require_torch("torchgauge.compare")
    for name, value in (("old", old), ("new", new)):
        if not callable(value):
            raise UsageError(
                f"compare: {name} is a {type(value).__name__}, which cannot be called",
                hint="pass two callables and their arguments, args=(x,)",
            )
    if not isinstance(args, (tuple, list)):
        raise UsageError(
            f"compare: args is a {type(args).__name__}, but must be the tuple of "
            "arguments for both callables",
            hint="args=(x,)",
        )
    calls = {
        Side.BASE: partial(old, *args, **(kwargs or {})),
        Side.HEAD: partial(new, *args, **(kwargs or {})),
    }
    with put_back():
        returned = [calls[Side.BASE](), calls[Side.BASE](), calls[Side.HEAD]()]
        session = open_session(device or device_of(old, new, args, kwargs, *returned))
    with put_back(session):
        notes = _outputs(*returned)
        returned.clear()
        drawn = secrets.randbelow(1 << 31) if seed is None else seed
        return _Comparing(calls, session, tolerance, max_time_s, random.Random(drawn)).run(notes)  # noqa: S311


class _Comparing:
    """One comparison while it is measured."""

    def __init__(
        self,
        calls: Mapping[Side, Callable[[], Any]],
        session: DeviceSession,
        tolerance: float,
        max_time_s: float,
        dice: random.Random,
    ) -> None:
        self.calls, self.session, self.dice = calls, session, dice
        device = DeviceTarget(session.name, session.index)
        case = Case(Workload("live", "call", "call"), Configuration("eager", "eager"), device)
        self.pair = Pair(case, case)
        rules = EntryFields(tolerance=tolerance, max_time=max_time_s)
        self.tolerance, self.max_time_s = tolerance, max_time_s
        policy = Policy((Layer("defaults", "", rules),))
        self.judge = Judge(
            policy, NoiseHistory.empty(), [self.pair], MOST_PARTS, abba_blocks=PART_BLOCKS, repeat=True
        )
        self.parts = self.steps = 0

    def run(self, notes: Sequence[str]) -> LiveComparison:
        """Warm up, measure part after part as long as the judge wants more, and return its verdict."""
        ClockWatch(self.session).begin()
        interrupted = ""
        try:
            recorders = {side: self._recorder(call) for side, call in self.calls.items()}
            with quiet_collector():
                while (wanted := self.judge.wanted()) and not interrupted:
                    interrupted = self._part(recorders, wanted[0])
        except KeyboardInterrupt:
            interrupted = "interrupted during warm-up"
        verdicts = {each.metric: each for each in self.judge.verdicts()}
        found = verdicts["latency"]
        tail = verdicts.get("latency_tail")
        if tail is not None and tail.verdict is Verdict.REGRESSION:
            notes = [*notes, f"new has more slow calls: {tail.reason}"]
        ended = "it was interrupted" if interrupted else f"the limit of {self.max_time_s:g} s was reached"
        reason = found.reason.replace("launches", "parts").replace("launch", "part").replace(ENDED, ended)
        return self._told(replace(found, reason=reason), [*notes, *([interrupted] if interrupted else [])])

    def _recorder(self, call: Callable[[], Any]) -> tuple[StepRecorder, float]:
        """Warm ``call`` up; return what records it, and seconds of one call."""
        series = Series("call", call)
        settings = replace(RunSettings(), warmup_budget_s=WARMUP_S)
        warm_up(series, self.session, settings)
        seconds = time_block(call, series.inner, self.session).wall
        return StepRecorder(call, self.session), seconds

    def _part(self, recorders: Mapping[Side, tuple[StepRecorder, float]], wanted: Wanted) -> str:
        """Measure one part and judge it; returns why it ended early, empty where it did not."""
        clock, first = SYSTEM_CLOCK, self.dice.choice(list(Side))
        steps = steps_per_block({side: seconds for side, (_, seconds) in recorders.items()})
        sides: dict[Side, RunBlock] = {
            side: lambda count, recorder=recorder: asdict(recorder.block(count))  # type: ignore[misc]
            for side, (recorder, _) in recorders.items()
        }
        abba, began = Alternation(sides, self.dice, clock, bool), clock.steady()
        interrupted = ""
        slow = math.ceil(SLOW_PART_S / (2 * sum(steps * seconds for _, seconds in recorders.values())))
        try:
            abba.run(first, steps, min(wanted.abba_blocks, max(MIN_ABBA_BLOCKS, slow)), math.inf)
        except KeyboardInterrupt:
            interrupted = "interrupted: the result has the samples measured so far"
        self.parts, self.steps = self.parts + 1, self.steps + sum(len(each.wall) for each in abba.blocks)
        passed = Outcome(self.pair.head.key, Status.PASS, Phase.DONE)
        self.judge.add(
            Launch(
                *(self.pair.key, self.pair.id, self.parts, first, passed, passed, tuple(abba.blocks)),
                confirms=wanted.confirms,
                measure_s=clock.steady() - began,
            )
        )
        return interrupted

    def _told(self, found: MetricVerdict, notes: Sequence[str]) -> LiveComparison:
        fields = {name: getattr(found, name) for name in ("ratio", "low", "high", "confidence", "detectable")}
        return LiveComparison(
            verdict=found.verdict,
            old=found.base,
            new=found.head,
            tolerance=self.tolerance,
            estimator=found.estimator,
            device=str(self.pair.head.device),
            parts=self.parts,
            calls=self.steps,
            reason=found.reason,
            notes=tuple(notes),
            **fields,
        )


def _outputs(old: Any, again: Any, new: Any) -> list[str]:
    """Return a note where the result of new differs from that of old, which was called twice."""
    from torchgauge.errors import UnobservableError
    from torchgauge.harness.worker import accuracy
    from torchgauge.records import Tolerance
    from torchgauge.suites.outputs import observe

    try:
        base, repeated, head = (observe(value, copy=False) for value in (old, again, new))
    except UnobservableError as error:
        return [f"results were not compared: {error.message}"]
    low = any(getattr(leaf, "dtype", None) in accuracy.LOW_PRECISION for leaf in base.values())
    relative = 2e-2 if low else 1e-3
    tolerance = Tolerance(relative, relative, 2.0, "compare")
    judged = partial(accuracy.compare, fp64=None, tolerance=tolerance, own_scale=False)
    if not judged(base, repeated).ok:
        return ["results were not compared: two calls of old returned different results"]
    verdict = judged(base, head)
    return [] if verdict.ok else [f"results differ: {verdict.detail}"]
