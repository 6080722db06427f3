"""What the harness's numbers become where it forgets to wait: one question for each place where it waits.

The device is asynchronous and the harness's functions are its own; only the one call of ``synchronize`` that
a plant names does nothing. A question says what its place's number is; ``true`` says which numbers are right.
"""

from __future__ import annotations

import ast
import contextlib
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

import torchgauge
from torchgauge.devices import calibrate, calibration, clock_check, hooks
from torchgauge.devices.event_timer import TorchEventTimer
from torchgauge.devices.privateuse1 import PrivateUse1Session
from torchgauge.harness.backends.prepared import timed_call
from torchgauge.harness.worker import memory, profiled_step, timing
from torchgauge_asyncsim import device_module as asyncsim

ROOT = Path(torchgauge.__file__).parent
DEVICE = torch.device("asyncsim")
TRIES = 3
"""A busy machine may make a right number late, and never a late number right."""
BUSY_S, STEP_S = 0.5, 0.1
"""What the device is busy with before, and what a step of it takes."""
MOST_NOISE_S = BUSY_S / 2
"""By how much a busy machine may make a number longer, or hide of what the device was busy with."""
ADD_S = 2e-4
"""Several times what the host needs to launch a kernel, even where others have its cores."""

Place = tuple[str, str, int]
"""File below the package, function, and the how-manieth wait in it."""


def places() -> dict[Place, int]:
    """Every wait for a device in harness and devices, with its line."""
    found: dict[Place, int] = {}
    for path in sorted([*ROOT.glob("harness/**/*.py"), *ROOT.glob("devices/*.py")]):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
            waits = [node for node in calls if ast.unparse(node.func).endswith(".synchronize")]
            lines = [node.lineno for node in waits if ast.unparse(node.func) != "hooks.synchronize"]
            for number, line in enumerate(sorted(lines), 1):
                found[path.relative_to(ROOT).as_posix(), function.name, number] = line
    return found


class Forgetful(PrivateUse1Session):
    """The device's session; it does not wait where one of ``forgotten`` asks it to."""

    forgotten: Collection[Place] = ()
    skipped = 0

    def synchronize(self) -> None:
        """Wait, unless the caller is a place that forgets it."""
        caller = sys._getframe(1)
        known = places_by_line()
        file = caller.f_code.co_filename
        here = known.get((file, caller.f_lineno))
        if here is not None and here in self.forgotten:
            self.skipped += 1
            return
        super().synchronize()


def places_by_line() -> dict[tuple[str, int], Place]:
    """The places by file and line."""
    if not _BY_LINE:
        _BY_LINE.update({(str(ROOT / place[0]), line): place for place, line in places().items()})
    return _BY_LINE


_BY_LINE: dict[tuple[str, int], Place] = {}


@dataclass(frozen=True)
class Question:
    """``ask(session)`` is the number of a place, ``true`` whether it is right; ``places`` wait together."""

    places: tuple[Place, ...]
    ask: Callable[[Forgetful], float]
    true: Callable[[float], bool]


def step() -> None:
    """A kernel of ``STEP_S``."""
    torch.mm(_BLOCK, _BLOCK)


def busy() -> None:
    """A kernel of ``BUSY_S``, which nobody waits for."""
    torch.bmm(_BLOCK.unsqueeze(0), _BLOCK.unsqueeze(0))


def after_busy(ask: Callable[[Forgetful], float]) -> Callable[[Forgetful], float]:
    """The same question to a device that has something to do."""

    def asked(session: Forgetful) -> float:
        busy()
        return ask(session)

    return asked


_BLOCK = torch.ones(8, 8, device=DEVICE)


def _wall(session: Forgetful) -> float:
    return timing.time_block(step, 1, session, session.event_timer()).wall


def _cold_compile(session: Forgetful) -> float:
    return timed_call(step, session)


def _profiled(session: Forgetful) -> float:
    return profiled_step.profiled(step, session)[1]


def _calibrated(session: Forgetful) -> float:
    return calibrate.timed(session, step)


def _closed(session: Forgetful) -> float:
    return clock_check.closed(step, session, clock_check.Closer(session))[0]


def _spanned(session: Forgetful) -> float:
    return clock_check._spanned(step, session, session.event_timer()).most


def _launch_complete(session: Forgetful) -> float:
    asyncsim.plan_kernel("aten::add_", STEP_S)
    try:
        return max(calibration._completions(session, 1)[1])
    finally:
        asyncsim.plan_kernel("aten::add_", None)


def _launch_complete_at_first(session: Forgetful) -> float:
    asyncsim.plan_kernel("aten::add_", BUSY_S)
    try:
        return calibration._completions(session, 1)[1][0]
    finally:
        asyncsim.plan_kernel("aten::add_", None)


def _agreement(session: Forgetful) -> float:
    """Event time divided by wall time."""
    asyncsim.plan_kernel("aten::add_", ADD_S)
    element = torch.zeros(1, device=DEVICE)
    try:
        span = calibration._agreement(session, lambda: element.add_(1), 0.0)
    finally:
        asyncsim.plan_kernel("aten::add_", None)
    return span.shown / span.most


def _peak(session: Forgetful) -> float:
    def allocate() -> None:
        step()
        torch.empty(64 << 20, dtype=torch.uint8, device=DEVICE)

    asyncsim.synchronize()
    asyncsim.set_late_counters(True)
    try:
        return memory.peak_of_steps(allocate, session, memory.RssProbe(), None).samples[0]
    finally:
        asyncsim.synchronize()
        asyncsim.set_late_counters(False)


class _ForgetfulEvent:
    """An event that does not wait."""

    def __init__(self) -> None:
        self._event = torch.Event(DEVICE, enable_timing=True)

    def record(self) -> None:
        self._event.record()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, other: _ForgetfulEvent) -> float:
        return self._event.elapsed_time(other._event)


def _timer(session: Forgetful) -> float:
    """Seconds by the harness's timer; NaN where it refuses."""
    forgets = ("devices/event_timer.py", "elapsed_s", 1) in session.forgotten
    pair = (_ForgetfulEvent(), _ForgetfulEvent()) if forgets else session._event_pair()
    session.skipped += forgets
    timer = TorchEventTimer(*pair)
    timer.start()
    step()
    timer.stop()
    try:
        return timer.elapsed_s()
    except RuntimeError:
        return float("nan")


def _event_trial(session: Forgetful) -> float:
    """1 where the trial of the device's events finds them good."""
    forgets = ("devices/hooks.py", "_tried_events", 1) in session.forgotten
    session.skipped += forgets
    make = (lambda: (_ForgetfulEvent(), _ForgetfulEvent())) if forgets else session._event_pair
    try:
        hooks._tried_events(make, DEVICE, super(Forgetful, session).synchronize)
    except RuntimeError:
        return 0.0
    return 1.0


def _place(file: str, function: str, number: int = 1) -> tuple[Place, ...]:
    return ((file, function, number),)


def late(seconds: float) -> bool:
    """Not before the step's end."""
    return seconds >= STEP_S - 1e-4


def soon(seconds: float) -> bool:
    """Without what the device was busy with before."""
    return late(seconds) and seconds < STEP_S + MOST_NOISE_S


def agreed(ratio: float) -> bool:
    """Both clocks show nearly the same, events no more than the host."""
    return 0.5 < ratio <= 1.01


# What warm-up, samples and `ab` go through alike.
RUN_STEPS = "harness/worker/timing.py", "run_steps"
PREPARED = "harness/backends/prepared.py", "timed_call"
PROFILED = "harness/worker/profiled_step.py", "profiled"
TIMED = "devices/calibrate.py", "timed"
COMPLETIONS = "devices/calibration.py", "_completions"
AGREEMENT = "devices/calibration.py", "_agreement"
CLOSED = "devices/clock_check.py", "closed"
SPANNED = "devices/clock_check.py", "_spanned"
PEAK = (
    *_place("harness/worker/memory.py", "peak_of_steps"),
    *_place("devices/accelerator.py", "peak_memory"),
)

QUESTIONS = {
    "block start": Question(_place(*RUN_STEPS, 1), after_busy(_wall), soon),
    "block end": Question(_place(*RUN_STEPS, 2), _wall, late),
    "cold compile start": Question(_place(*PREPARED, 1), after_busy(_cold_compile), soon),
    "cold compile end": Question(_place(*PREPARED, 2), _cold_compile, late),
    "profiled step start": Question(_place(*PROFILED, 1), after_busy(_profiled), soon),
    "profiled step end": Question(_place(*PROFILED, 2), _profiled, late),
    "calibration start": Question(_place(*TIMED, 1), after_busy(_calibrated), soon),
    "calibration end": Question(_place(*TIMED, 2), _calibrated, late),
    "launch start": Question(
        _place(*COMPLETIONS, 1),
        _launch_complete_at_first,
        lambda seconds: BUSY_S - 1e-4 <= seconds < BUSY_S + MOST_NOISE_S,
    ),
    "launch end": Question(_place(*COMPLETIONS, 2), _launch_complete, late),
    "events against the clock, start": Question(_place(*AGREEMENT, 1), after_busy(_agreement), agreed),
    "events against the clock, end": Question(_place(*AGREEMENT, 2), _agreement, agreed),
    "closed block start": Question(_place(*CLOSED, 1), after_busy(_closed), soon),
    "closed block end": Question(_place(*CLOSED, 2), _closed, late),
    "bound of events start": Question(_place(*SPANNED, 1), after_busy(_spanned), soon),
    "bound of events end": Question(_place(*SPANNED, 2), _spanned, late),
    "peak memory": Question(PEAK, _peak, lambda peak: peak >= 64 << 20),
    "event timer": Question(_place("devices/event_timer.py", "elapsed_s"), _timer, late),
    "trial of events": Question(
        _place("devices/hooks.py", "_tried_events"), _event_trial, lambda found: found == 1.0
    ),
}


@contextlib.contextmanager
def plans() -> Iterator[None]:
    """The durations that the questions are about."""
    asyncsim.synchronize()
    asyncsim.plan_kernel("aten::mm", STEP_S)
    asyncsim.plan_kernel("aten::bmm", BUSY_S)
    try:
        yield
    finally:
        asyncsim.synchronize()
        asyncsim.forget_plans()


def right(question: Question, forgotten: Collection[Place]) -> bool:
    """Whether one of a few answers is right, with what was forgotten."""
    for _ in range(TRIES):
        session = Forgetful("asyncsim")
        session._event_pair  # noqa: B018  # tried before plans make it slow
        session._peak_memory  # noqa: B018
        session.forgotten = forgotten
        with plans():
            found = question.ask(session)
        assert not forgotten or session.skipped, f"nothing waited at {forgotten}"
        if question.true(found):
            return True
    return False


def main(name: str) -> None:
    """Print whether the harness is right where it waits, and where it does not."""
    question = QUESTIONS[name]
    began = time.perf_counter()
    print(
        name,
        right(question, ()),
        right(question, question.places),
        round(time.perf_counter() - began, 1),
        flush=True,
    )


if __name__ == "__main__":
    for each in sys.argv[1:] or QUESTIONS:
        try:
            main(each)
        except Exception:  # noqa: BLE001  # a question must not hide the ones after it
            traceback.print_exc()
