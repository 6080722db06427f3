"""Faults that a test can ask of the device, because a harness is only as good as what it does with bad news.

They come from the environment, so that a test chooses them for a child process
without touching the code that the child runs:

    TORCHGAUGE_NPUSIM_MISSING_OPS=aten::gelu,aten::topk
    TORCHGAUGE_NPUSIM_FAULT=hang_in_synchronize,oom_after_bytes=1000000

To add a fault, add a field to `Faults` (a flag needs no more), for one with a value a line in `_parse`,
and ask for the field at the place that should misbehave.

`fallback_ops=aten::gelu+aten::*softmax*` sends operators through PyTorch's protocol for a fallback to the
host, as C++ backends do that register `at::native::cpu_fallback`: names of operators with their namespace
and without overload, joined by `+`, `*` for anything. Every overload of them that has a kernel of its own
(none that PyTorch composes of others, none that only makes a view) copies its arguments to the host with
`aten::_to_cpu`, runs there, and copies results and written arguments back; a profiler sees `aten::_to_cpu`
below the operator's event. The results are right.

`throttles_for=thermal` makes the device say that it has lowered its clock, whenever it is asked, or for the
first N times with `throttled_answers=N`.
`changes_input`, `ignores_expanded` and `drops_tail` name operators without overload whose kernels go wrong as
young kernels do; see `spoiling`. `copy_drops_tail=h2d+d2h+d2d` does the same to copies of a direction.
`kernel_us=2000` makes the device asynchronous: every operator that computes occupies it for so many
microseconds after its call has returned. That alone is no fault: `synchronize` and copies to the host wait.
With `synchronize_does_not_wait` the first no longer does. `events=right` gives events that show the device's
time; wrong are `microseconds`, `nanoseconds` or `seconds` in place of milliseconds, `zero`, `backwards`,
`fast` (half as much again) and `submission` (when the host recorded them).

`host_kernels=aten::gelu` gives operators, named likewise, kernels of their own that copy to the host, compute
there and copy back, without PyTorch's fallback and its `aten::_to_cpu`.

`keeps_parameters` is the absence of a fault: without it `Module.to` makes new parameters, as on every device
out of PyTorch's tree, which unties weights.

`abort_ops=aten::erf` ends the process with SIGABRT where the operator is called, as a failed assertion in a
vendor's library does; names are exact.
"""

from __future__ import annotations

import atexit
import itertools
import os
import signal
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

MISSING_OPS_VARIABLE = "TORCHGAUGE_NPUSIM_MISSING_OPS"
FAULT_VARIABLE = "TORCHGAUGE_NPUSIM_FAULT"
DEVICES_VARIABLE = "TORCHGAUGE_NPUSIM_DEVICES"


@dataclass(frozen=True)
class Faults:
    """What this process has been told to do wrong."""

    missing_ops: tuple[str, ...] = ()
    raise_on_import: bool = False
    raise_without_driver: bool = False
    hang_in_synchronize: bool = False
    wrong_in_bf16: bool = False
    wrong_device_index: bool = False
    nondeterministic: bool = False
    no_events: bool = False
    no_memory_stats: bool = False
    fallback_ops: tuple[str, ...] = ()
    host_kernels: tuple[str, ...] = ()
    abort_ops: tuple[str, ...] = ()
    changes_input: tuple[str, ...] = ()
    ignores_expanded: tuple[str, ...] = ()
    drops_tail: tuple[str, ...] = ()
    copy_drops_tail: tuple[str, ...] = ()
    hang_at_exit: bool = False
    crash_at_exit: bool = False
    ignored_index: bool = False
    oom_is_runtime_error: bool = False
    wrong_autocast_dtype: bool = False
    own_events: bool = False
    own_event_query_never: bool = False
    after_fork: str = ""
    hang_in: str = ""
    kernel_us: int | None = None
    synchronize_does_not_wait: bool = False
    keeps_parameters: bool = False
    events: str = ""
    oom_after_bytes: int | None = None
    vanish_after_calls: int | None = None
    vanish_once: str = ""
    throttles_for: str = ""
    throttled_answers: int | None = None
    on_index: int | None = None


def faults_from(environment: Mapping[str, str]) -> Faults:
    """Read the two variables; raises ValueError for a fault that does not exist."""
    missing = tuple(_words(environment.get(MISSING_OPS_VARIABLE, "")))
    return _parse(_words(environment.get(FAULT_VARIABLE, "")), missing)


def devices_from(environment: Mapping[str, str]) -> int:
    """How many devices there are said to be; raises ValueError for what is no such number."""
    text = environment.get(DEVICES_VARIABLE, "1")
    if not text.isdecimal() or not int(text):
        message = f"{DEVICES_VARIABLE}: {text!r} is not a number of devices"
        raise ValueError(message)
    return int(text)


def fail_like_a_missing_driver(device_name: str) -> None:
    """Raise what a vendor's package raises without its driver: a vague error around the real one."""
    library = f"lib{device_name}_driver.so"
    try:
        raise OSError(f"{library}: cannot open shared object file")  # noqa: TRY301  # the chain is the point
    except OSError as missing:
        message = f"The {device_name} runtime could not be initialised."
        raise RuntimeError(message) from missing


def driver_is_there(device_name: str) -> bool:
    """Whether a folder of LD_LIBRARY_PATH holds the driver's library, as the loader of a real one looks."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    return any(Path(folder, f"lib{device_name}_driver.so").exists() for folder in folders if folder)


def hang() -> None:
    """Never return, as a device does that has lost its firmware; interruptible from the keyboard."""
    while True:
        time.sleep(3600)


def answer_or_hang(question: str) -> None:
    """Never return where this is the question that the fault names."""
    if question == ACTIVE.hang_in:
        hang()


def after_fork(device_name: str) -> None:
    """In a forked child: never return, end it, or give other numbers, as the fault asks; see `copy_from`."""
    if not _FORKED or ACTIVE.after_fork in ("", "wrong"):
        return
    if ACTIVE.after_fork == "hang":
        hang()
    if ACTIVE.after_fork == "refuse":
        message = f"Cannot re-initialize {device_name} in forked subprocess."
        raise RuntimeError(message)
    os.abort()


def is_spoiled_fork() -> bool:
    """Whether this is a forked child in which the device's memory is another one."""
    return bool(_FORKED) and ACTIVE.after_fork == "wrong"


_FORKED: list[int] = []
os.register_at_fork(after_in_child=lambda: _FORKED.append(1))


def plan_exit() -> None:
    """Let the process end as a driver's last words may have it: never, or with SIGSEGV."""
    if ACTIVE.hang_at_exit:
        atexit.register(hang)
    if ACTIVE.crash_at_exit:
        atexit.register(lambda: os.kill(os.getpid(), signal.SIGSEGV))


class _Presence:
    """Whether this process still has its device, and how many calls the device has answered."""

    def __init__(self) -> None:
        self.calls = 0
        self.gone = False
        self.index = 0


_PRESENCE = _Presence()


def answer_or_vanish(device_name: str) -> None:
    """Count a call to the device; raises RuntimeError, now and ever after, once it has vanished."""
    after_fork(device_name)
    if ACTIVE.vanish_after_calls is None or ACTIVE.on_index not in (None, _PRESENCE.index):
        return
    _PRESENCE.calls += 1
    if not _PRESENCE.gone and _PRESENCE.calls > ACTIVE.vanish_after_calls:
        _PRESENCE.gone = _is_my_turn(ACTIVE.vanish_once)
    if _PRESENCE.gone:
        message = f"{device_name} runtime error: device lost, it no longer answers (call {_PRESENCE.calls})"
        raise RuntimeError(message)


_ANSWERS = itertools.count(1)


def throttle() -> str:
    """Why the device says, when it is asked now, that it has lowered its clock; "" where it has not."""
    most = ACTIVE.throttled_answers
    return ACTIVE.throttles_for if most is None or next(_ANSWERS) <= most else ""


def select(index: int) -> None:
    """Let calls from now on go to the device with this index."""
    _PRESENCE.index = index


def selected() -> int:
    """The index of the device that calls go to."""
    return _PRESENCE.index


def _is_my_turn(token: str) -> bool:
    # The process that makes the file loses its device; where the file is there, another one did.
    if not token:
        return True
    try:
        Path(token).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


_FLAGS = frozenset(field.name for field in fields(Faults) if field.default is False)
_NUMBERS = frozenset({"kernel_us", "oom_after_bytes", "throttled_answers", "vanish_after_calls", "on_index"})
_NAMES = frozenset(
    {
        *("abort_ops", "changes_input", "copy_drops_tail", "drops_tail", "fallback_ops", "host_kernels"),
        "ignores_expanded",
    }
)
_TEXTS = {
    "after_fork": "WHAT",
    "events": "CLOCK",
    "hang_in": "FUNCTION",
    "throttles_for": "REASON",
    "vanish_once": "FILE",
}


def _parse(words: list[str], missing_ops: tuple[str, ...]) -> Faults:
    chosen: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name in _NUMBERS and value.isdecimal():
            chosen[name] = int(value)
        elif name in _TEXTS and value:
            chosen[name] = value
        elif name in _NAMES and value:
            chosen[name] = tuple(value.split("+"))
        elif name in _FLAGS and not value:
            chosen[name] = True
        else:
            known = [*sorted(_FLAGS), *(f"{each}=N" for each in sorted(_NUMBERS))]
            known += [f"{each}={what}" for each, what in _TEXTS.items()]
            known += [f"{each}=NAME+NAME" for each in sorted(_NAMES)]
            message = f"{FAULT_VARIABLE}: {word!r} is not a fault; known faults: {', '.join(known)}"
            raise ValueError(message)
    return Faults(missing_ops=missing_ops, **chosen)


ACTIVE = faults_from(os.environ)
DEVICES = devices_from(os.environ)
