"""Text from machines that we do not control, made safe to look at; escaping is the renderer's.

Names, errors and logs may hold terminal sequences, control characters that hide text, and characters that
reverse its direction. None of them may act on a page, and none may vanish without a trace.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TextIO

from torchgauge.counted import counted

LOG_LIMIT = 64 * 1024
"""Bytes of a log or traceback that a page shows: the last ones, since an error stands at the end."""

VALUE_LIMIT = 4096
"""Characters of any other text that a page shows: the first ones."""

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff]"
    "|[\U000e0000-\U000e007f]"
)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,199}")
_NOT_SLUG = re.compile(r"[^a-z0-9]+")


class OutputLostError(Exception):
    """Raised where the output of a command cannot be written; its cause is an ``OSError``."""


class VisibleStream:
    """Writes visible text only to ``stream``; all output to a terminal passes through it.

    Raises :class:`OutputLostError` where ``stream`` cannot be written, unless ``stream`` is ``spare``.
    """

    def __init__(self, stream: TextIO, *, spare: bool = False) -> None:
        self.stream, self._spare, self._lost = stream, spare, False

    def write(self, text: str) -> int:
        """Write what is visible of ``text``."""
        self._try(self.stream.write, visible(text))
        return len(text)

    def flush(self) -> None:
        """Write what is held back, unless it is lost: Python flushes once more at its end."""
        if not self._lost:
            self._try(self.stream.flush)

    def _try(self, action: Callable[..., object], *arguments: str) -> None:
        try:
            action(*arguments)
        except OSError as error:
            self._lost = True
            if not self._spare:
                raise OutputLostError(error.strerror) from error

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # click writes there where the encoding is ASCII, past every guard
            raise AttributeError(name)
        return getattr(self.stream, name)


def show_visibly() -> None:
    """Make all that this process prints visible text, in characters that its streams have."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, VisibleStream(stream, spare=name == "stderr"))


def visible(text: str) -> str:
    """``text`` without terminal sequences and control characters; what is invisible is written as U+XXXX."""
    if text.isascii() and text.isprintable():
        return text  # nearly all text, for a tenth of the time
    text = _ANSI.sub("", text.replace("\r\n", "\n"))
    text = _CONTROL.sub("", text)
    return _INVISIBLE.sub(lambda found: f"[U+{ord(found.group()):04X}]", text)


def brief(text: str, limit: int = VALUE_LIMIT) -> str:
    """The visible beginning of ``text``: at most ``limit`` characters of it, and how many more there are."""
    if len(text) <= limit:
        return visible(text)
    return f"{visible(text[:limit])}… [{counted(len(text) - limit, 'more character')}]"


def one_line(text: str, limit: int = 200) -> str:
    """Return the visible beginning of ``text`` as one line."""
    return brief(text, limit).replace("\n", "\\n")


def tail(text: str, limit: int = LOG_LIMIT) -> str:
    """The visible end of ``text``, at most ``limit`` bytes of UTF-8, with a first line that says so."""
    shown = visible(text)
    data = shown.encode()
    if len(data) <= limit:
        return shown
    note = f"[the first {len(data) - limit:,} bytes are left out]\n"
    return note + data[-limit:].decode(errors="ignore")


def first_line(text: str, limit: int = 160) -> str:
    """The first line with something on it, cut to ``limit`` characters."""
    line = next((line.strip() for line in visible(text).splitlines() if line.strip()), "")
    return line if len(line) <= limit else line[: limit - 1] + "…"


@lru_cache(maxsize=8192)
def slug(name: str) -> str:
    """A file name or anchor for ``name``: lower-case letters, digits and a hash of eight hex digits."""
    words = _NOT_SLUG.sub("-", name.lower()).strip("-")[:60].strip("-")
    digits = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{words}-{digits}" if words else digits


def plain_name(text: str) -> str:
    """Return ``text`` where it is a safe name of a file without a folder, else its slug."""
    return text if _PLAIN_NAME.fullmatch(text) else slug(text)


def csv_cell(value: object) -> str:
    """``value`` for a CSV file; text that a spreadsheet would run as a formula is quoted with ``'``."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(value)
    text = visible(value)
    runs = text.lstrip().startswith(("=", "+", "-", "@")) or text.startswith(("\t", "\n"))
    return f"'{text}" if runs else text
