"""Whether a library refused by itself, so that its own words are the reason; worker side.

A refusal is written by somebody: a ``raise``, or an ``assert`` with words, in the library's own code; an
operator without a kernel for this device; a package or another device that the library wants and that is not
there. What comes out of a library else is a failure like any other, and a wrong shape its defect.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from types import FrameType, TracebackType
from typing import TypeVar

from torchgauge.errors import NotOfferedError
from torchgauge.harness.worker.verdicts import first_line
from torchgauge.suites.lacking import absent_package

REFUSALS = (AssertionError, ImportError, NotImplementedError, RuntimeError, ValueError)
"""The types with which a library refuses, beside those that it defines itself."""
DEFECTS = (AttributeError, LookupError, NameError, TypeError)
"""What nobody means to say: a refusal made of one by ``raise ... from`` is a defect in other words."""
INTERNAL = "Internal"
"""How the names of types begin by which a library says that it is to blame itself."""
Offered = TypeVar("Offered")


@contextmanager
def in_own_words(package: str) -> Iterator[None]:
    """Raise :class:`NotOfferedError` with the words of ``package`` where it refuses inside."""
    try:
        yield
    except REFUSALS as error:
        if not refused_by(error, package):
            raise
        raise NotOfferedError(f"{package} refuses: {first_line(error)}") from error


def refused_by(error: BaseException, *packages: str) -> bool:
    """Whether ``error`` is a refusal that one of ``packages`` wrote, or ran into."""
    steps = [*_steps(error.__traceback__)]
    if not any(_is_of(frame, packages) for frame, _ in steps):
        return False
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        return bool(absent_package(error))
    if isinstance(error, NotImplementedError):
        return unimplemented_in(error, *packages, "torch")
    frame, at = steps[-1]
    if not (_is_written(frame, at) and (_is_of(frame, packages) or _is_of_absent_device(frame))):
        return False
    if not str(error) or isinstance(error, RecursionError) or isinstance(error.__cause__, DEFECTS):
        return False
    return isinstance(error, REFUSALS) or _is_own(type(error), packages)


def unimplemented_in(error: NotImplementedError, *packages: str) -> bool:
    """Whether Python code of ``packages`` raised ``error``, or an operator: no other code's own statement."""
    steps = [*_steps(error.__traceback__)]
    return bool(steps) and (_is_of(steps[-1][0], packages) or not _is_written(*steps[-1]))


def offer_named(word: str, known: Mapping[str, Offered], whose: str) -> Offered:
    """What ``known`` has under ``word``; raises :class:`NotOfferedError` that says the nearest word."""
    if word in known:
        return known[word]
    near = get_close_matches(word, known, 1) or [*known][:1]
    nearest = f"; the nearest is {near[0]!r}" if near else ""
    raise NotOfferedError(f"{whose} {word!r}{nearest}")


def _steps(trace: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while trace is not None:
        yield trace.tb_frame, trace.tb_lasti
        trace = trace.tb_next


def _is_written(frame: FrameType, at: int) -> bool:
    """Whether the instruction ``at`` of ``frame`` is a ``raise`` or an ``assert``."""
    return dis.opname[frame.f_code.co_code[at]] == "RAISE_VARARGS"


def _is_of(frame: FrameType, packages: tuple[str, ...]) -> bool:
    return _below(str(frame.f_globals.get("__name__", "")), packages)


def _is_of_absent_device(frame: FrameType) -> bool:
    """Whether ``frame`` is of torch's module of a device that is not there, such as ``torch.cuda``."""
    names = str(frame.f_globals.get("__name__", "")).split(".")
    present = getattr(sys.modules.get(".".join(names[:2])), "is_available", None)
    return names[0] == "torch" and callable(present) and not present()


def _is_own(kind: type, packages: tuple[str, ...]) -> bool:
    """Whether ``kind`` is a type of ``packages`` that does not blame these."""
    return _below(kind.__module__, packages) and not kind.__name__.startswith(INTERNAL)


def _below(module: str, packages: tuple[str, ...]) -> bool:
    return f"{module}.".startswith(tuple(f"{each}." for each in packages))
