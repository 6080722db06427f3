"""An exception as a clusterable record: type, first frame in torch or the backend, missing operator."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from types import TracebackType

from torchgauge.records import Failure, digest
from torchgauge.records.message_pattern import MESSAGE_LIMIT, normalise

TRACEBACK_LIMIT = 12000
TRACEBACK = re.compile(r"(Original )?Traceback [^(\n]*\(most recent call last\):\n([ \t].*\n)*")
"""A traceback in a message, up to the exception: a DataLoader adds that of its worker."""

_MISSING_OP = (
    re.compile(r"Could not run '(?P<op>[\w:.]+)'"),
    re.compile(r"operator '(?P<op>[\w:.]+)' is not currently (?:implemented|supported)"),
    re.compile(r"(?P<op>aten::[\w.]+)[^\n]{0,40} is not (?:currently )?implemented"),
    re.compile(r"[\"'](?P<op>\w+)[\"'] not implemented for '\w+'"),
)
_PASSED_THROUGH = frozenset(
    {"torch.nn.modules.module", "torch.nn.modules.container", "torch._dynamo.eval_frame", "torch._compile"}
)
"""Modules that only pass a call on: a frame of theirs says nothing about a cause."""
_OURS = str(Path(__file__).resolve().parents[2])


def describe(error: BaseException) -> Failure:
    """The failure record of ``error``; its innermost cause is quoted where there is one."""
    message = str(error).strip() or type(error).__name__
    root = root_cause(error)
    if root is not error:
        message += f"\ncaused by {type(root).__name__}: {str(root).strip()}"
    frame = backend_frame(error.__traceback__)
    kind = _type_name(error)
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return Failure(
        type=kind,
        message=message[:MESSAGE_LIMIT],
        frame=frame,
        missing_op=missing_op(message),
        fingerprint=digest([kind, frame.partition(":")[0], normalise(message)]),
        traceback=text[-TRACEBACK_LIMIT:],
    )


def line_in(file: str, error: BaseException) -> str:
    """Return name of ``file`` and its last line that ``error`` passed; empty for none."""
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == file]
    return f"{Path(file).name}, line {lines[-1]}" if lines else ""


def root_cause(error: BaseException) -> BaseException:
    """The innermost explicit cause or implicit context of ``error``."""
    seen = {id(error)}
    while True:
        inner = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if inner is None or id(inner) in seen:
            return error
        seen.add(id(inner))
        error = inner


def missing_op(message: str) -> str:
    """Name of the operator whose absence ``message`` reports, or an empty string."""
    for pattern in _MISSING_OP:
        found = pattern.search(message)
        if found:
            return found.group("op")
    return ""


def backend_frame(trace: TracebackType | None) -> str:
    """``module.function:line`` of the first frame inside an installed package, or of the last frame."""
    last = ""
    for frame, line in traceback.walk_tb(trace):
        name = frame.f_globals.get("__name__", "?")
        last = f"{name}.{frame.f_code.co_name}:{line}"
        path = frame.f_code.co_filename
        installed = "site-packages" in path or "dist-packages" in path
        if installed and not path.startswith(_OURS) and name not in _PASSED_THROUGH:
            return last
    return last


def _type_name(error: BaseException) -> str:
    kind = type(error)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
