"""Plans and faults that the environment asks for, so that a test chooses them for a child process.

TORCHGAUGE_ASYNCSIM_PLAN=aten::mm=0.001,*=0.00005      seconds by kernel
TORCHGAUGE_ASYNCSIM_LAUNCH=0.00002                     seconds of the host for each launch
TORCHGAUGE_ASYNCSIM_MEMORY=1000000000                  bytes of each device
TORCHGAUGE_ASYNCSIM_FAULT=events-zero,lost-after=500   the README says what each does
"""

from __future__ import annotations

import atexit
import os
import time
from typing import TYPE_CHECKING, Any, Final

from torchgauge_asyncsim.identity import DEVICE_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

FAULT_VARIABLE: Final = "TORCHGAUGE_ASYNCSIM_FAULT"
PLAN_VARIABLE: Final = "TORCHGAUGE_ASYNCSIM_PLAN"
LAUNCH_VARIABLE: Final = "TORCHGAUGE_ASYNCSIM_LAUNCH"
MEMORY_VARIABLE: Final = "TORCHGAUGE_ASYNCSIM_MEMORY"

OF_THE_IMPORT: Final = ("import-raises", "import-exits", "import-hangs")
OF_THE_EXIT: Final = ("exit-hangs", "exit-crashes")
OF_PYTHON: Final = ("wrong-autocast-dtype", "properties-hang", "no-memory-stats")
WITH_VALUES: Final = ("lost-after", "missing-ops", "fallback-ops")


def words(variable: str, environment: Mapping[str, str] | None = None) -> list[str]:
    """What stands in a variable between commas."""
    text = (os.environ if environment is None else environment).get(variable, "")
    return [word.strip() for word in text.split(",") if word.strip()]


def before_loading() -> None:
    """Do what a broken package does while it is imported."""
    asked = words(FAULT_VARIABLE)
    if "import-exits" in asked:
        os._exit(3)
    while "import-hangs" in asked:
        time.sleep(3600)
    if "import-raises" in asked:
        library = f"lib{DEVICE_NAME}_driver.so"
        message = f"The {DEVICE_NAME} runtime could not be initialised."
        raise RuntimeError(message) from OSError(f"{library}: cannot open shared object file")


def apply(native: Any) -> set[str]:
    """Hand plans and faults to the C++ half; return what is Python's; raises ValueError for no fault."""
    for word in words(PLAN_VARIABLE):
        name, _, seconds = word.rpartition("=")
        for spelling in spellings(name):
            native.plan_kernel(spelling, float(seconds))
    if os.environ.get(LAUNCH_VARIABLE):
        native.plan_launch(float(os.environ[LAUNCH_VARIABLE]))
    if os.environ.get(MEMORY_VARIABLE):
        native.set_memory(int(os.environ[MEMORY_VARIABLE]))
    known = set(native.fault_names())
    own = set()
    for word in words(FAULT_VARIABLE):
        name, _, value = word.partition("=")
        if name == "lost-after" and value.isdecimal():
            native.set_lost_after(int(value))
        elif word in known:
            native.set_fault(word, True)  # the native half takes no names
        elif word in {*OF_THE_IMPORT, *OF_THE_EXIT, *OF_PYTHON} or (
            name in {"missing-ops", "fallback-ops"} and value
        ):
            own.add(word)
        else:
            listed = ", ".join(sorted({*known, *OF_THE_IMPORT, *OF_THE_EXIT, *OF_PYTHON, *WITH_VALUES}))
            message = f"{FAULT_VARIABLE}: {word!r} is not a fault; known faults: {listed}"
            raise ValueError(message)
    return own


def spellings(name: str) -> tuple[str, ...]:
    """An operator's name and that of its twin that works in place, or the other way round.

    PyTorch runs many of either through one kernel.
    """
    if "::" not in name:
        return (name,)
    return (name, name[:-1] if name.endswith("_") else f"{name}_")


def operators_of(fault: str) -> set[str]:
    """The operators, with namespace and without overload, that a fault with a value names."""
    found = set()
    for word in words(FAULT_VARIABLE):
        name, _, value = word.partition("=")
        if name == fault:
            found |= set(value.split("+"))
    return found


def prepare_exit(native: Any, asked: set[str]) -> None:
    """End the streams' threads before Python goes, or do what a broken package does then."""

    def leave() -> None:
        while "exit-hangs" in asked:
            time.sleep(3600)
        if "exit-crashes" in asked:
            os.abort()
        native.shut_down()

    atexit.register(leave)
