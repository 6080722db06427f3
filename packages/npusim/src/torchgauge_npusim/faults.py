"""Faults that a test can ask of the device, because a harness is only as good as what it does with bad news.

They come from the environment, so that a test chooses them for a child process
without touching the code that the child runs:

    TORCHGAUGE_NPUSIM_MISSING_OPS=aten::gelu,aten::topk
    TORCHGAUGE_NPUSIM_FAULT=hang_in_synchronize,oom_after_bytes=1000000

To add a fault, add a field to `Faults` and a line to `_parse`, then ask for the
field at the place that should misbehave.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MISSING_OPS_VARIABLE = "TORCHGAUGE_NPUSIM_MISSING_OPS"
FAULT_VARIABLE = "TORCHGAUGE_NPUSIM_FAULT"


@dataclass(frozen=True)
class Faults:
    """What this process has been told to do wrong."""

    missing_ops: tuple[str, ...] = ()
    raise_on_import: bool = False
    hang_in_synchronize: bool = False
    wrong_in_bf16: bool = False
    oom_after_bytes: int | None = None


def faults_from(environment: Mapping[str, str]) -> Faults:
    """Read the two variables; raises ValueError for a fault that does not exist."""
    missing = tuple(_words(environment.get(MISSING_OPS_VARIABLE, "")))
    return _parse(_words(environment.get(FAULT_VARIABLE, "")), missing)


def fail_like_a_missing_driver(device_name: str) -> None:
    """Raise what a vendor's package raises without its driver: a vague error around the real one."""
    library = f"lib{device_name}_driver.so"
    try:
        raise OSError(f"{library}: cannot open shared object file")  # noqa: TRY301  # the chain is the point
    except OSError as missing:
        message = f"The {device_name} runtime could not be initialised."
        raise RuntimeError(message) from missing


def hang() -> None:
    """Never return, as a device does that has lost its firmware; interruptible from the keyboard."""
    while True:
        time.sleep(3600)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _parse(words: list[str], missing_ops: tuple[str, ...]) -> Faults:
    flags = {"raise_on_import", "hang_in_synchronize", "wrong_in_bf16"}
    chosen: set[str] = set()
    limit: int | None = None
    for word in words:
        name, _, value = word.partition("=")
        if name == "oom_after_bytes" and value.isdecimal():
            limit = int(value)
        elif name in flags and not value:
            chosen.add(name)
        else:
            known = ", ".join([*sorted(flags), "oom_after_bytes=N"])
            message = f"{FAULT_VARIABLE}: {word!r} is not a fault; known faults: {known}"
            raise ValueError(message)
    return Faults(
        missing_ops=missing_ops,
        raise_on_import="raise_on_import" in chosen,
        hang_in_synchronize="hang_in_synchronize" in chosen,
        wrong_in_bf16="wrong_in_bf16" in chosen,
        oom_after_bytes=limit,
    )


ACTIVE = faults_from(os.environ)
