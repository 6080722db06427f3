"""Text that may cross from a job into a store: printable, composed (NFC), nothing that hides or reverses it.

A job writes only such text, and the validator refuses any other: what was cleaned by the writer needs no
mercy from the reader.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from typing import Any

from torchgauge.results.hostile_text import visible

FREE_TEXT = frozenset({"reason", "message", "traceback", "log_excerpt", "teardown", "exit", "text", "detail"})
"""Fields that may have several lines; every other text has one."""
MOST_MARKS = 30
"""Marks upon one character: UAX 15, stream-safe text format. No language comes near."""
_SETTINGS = re.compile(
    r"(?: --(?:no-accuracy|no-memory-probe|no-calibration|no-warm-compile|no-fallback-check)"
    r"| --(?:threads|precision|measure-seconds|quiet-wait|timeout|memory-limit) [0-9][0-9.e+-]{0,30})*"
)
"""How a case was measured, in words and numbers. No option that names a file, a program or a folder."""


def plain(text: str) -> str:
    """``text`` with everything that is not printable written as U+XXXX; line feeds and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    text = unicodedata.normalize("NFC", _few_marks(visible(text)))
    return "".join(char if char in "\n\t" or char.isprintable() else f"[U+{ord(char):04X}]" for char in text)


def one_line(text: str) -> str:
    """``text`` as :func:`plain` leaves it, in one line: what follows a line feed could be a log's command."""
    return " ".join(plain(text).split())


def _few_marks(text: str) -> str:
    """``text`` with at most :data:`MOST_MARKS` marks upon one character, as Unicode's stream-safe format.

    To bring the marks of one character into their order takes time with the square of their number.
    """
    found, run = [], 0
    for char in text:
        run = run + 1 if unicodedata.combining(char) else 0
        found.append(char if run <= MOST_MARKS else f"[U+{ord(char):04X}]")
    return "".join(found)


def is_plain(text: str, lines: bool = False) -> bool:
    """Whether ``text`` is as :func:`plain` leaves it, with line feeds and tabs where ``lines`` allows."""
    if text.isprintable() and text.isascii():
        return True
    return plain(text) == text and (lines or not ("\n" in text or "\t" in text))


def plain_values(value: Any, field: str = "") -> Any:
    """``value``, made of JSON values, with every text cleaned; texts of one line lose their line feeds."""
    if isinstance(value, str):
        text = plain(value)
        return text if field in FREE_TEXT else " ".join(text.split("\n")).replace("\t", " ")
    if isinstance(value, list):
        return [plain_values(item, field) for item in value]
    if isinstance(value, dict):
        return {key: plain_values(item, key) for key, item in value.items()}
    return value


def is_plain_command(command: str, case_id: str) -> bool:
    """Whether ``command`` runs ``case_id`` again and, wherever it is pasted, can do nothing else."""
    begin = f"torchgauge repro {shlex.quote(case_id)}"
    return command.startswith(begin) and _SETTINGS.fullmatch(command, len(begin)) is not None


def unplain_field(value: Any, field: str = "") -> str | None:
    """The name of the first field in ``value`` whose text is not plain; None where all are."""
    if isinstance(value, str):
        return None if is_plain(value, lines=field in FREE_TEXT) else field or "text"
    if isinstance(value, (list, tuple)):
        return next((found for item in value if (found := unplain_field(item, field))), None)
    if isinstance(value, dict):
        for key, item in value.items():
            if not is_plain(key):
                return "a key"
            if found := unplain_field(item, key):
                return found
    return None
