"""JSON from other programs: one value, or one per line, read strictly and with the line of a mistake."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

from torchgauge.errors import DataFileError


def read_values(path: Path, text: str) -> list[tuple[int, Any]]:
    """Every value of the file with the line that it begins on: one value, or one per line (JSON lines).

    Raises :class:`DataFileError` with the line for text that is no JSON or nested too deeply, for NaN and
    infinities, and for numbers that are too large to be kept.
    """
    try:
        return [(1, _loads(text))]
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise _refused(path, error, 0) from error
    except (_NoNumberError, RecursionError) as error:
        raise _not_kept(path, text, error) from error
    return [
        (number, _line(path, line, number))
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]


class _NoNumberError(ValueError):
    """NaN or an infinity, which JSON does not have, or a number that is too large."""


def _line(path: Path, line: str, number: int) -> Any:
    try:
        return _loads(line)
    except json.JSONDecodeError as error:
        raise _refused(path, error, number - 1) from error
    except (_NoNumberError, RecursionError) as error:
        raise _not_kept(path, line, error, number - 1) from error


def _loads(text: str) -> Any:
    return json.loads(text, parse_constant=_constant, parse_float=_float, parse_int=_int)


def _constant(name: str) -> NoReturn:
    raise _NoNumberError(name)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _NoNumberError(text)
    return value


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # Python reads so many digits and no more
        raise _NoNumberError(text) from None


def _refused(path: Path, error: json.JSONDecodeError, before: int) -> DataFileError:
    return DataFileError(
        str(path),
        f"is not JSON: {error.msg} in column {error.colno}",
        line=before + error.lineno,
        hint="the file may be truncated: copy it again",
    )


def _not_kept(path: Path, text: str, error: Exception, before: int = 0) -> DataFileError:
    if isinstance(error, RecursionError):
        hint = "check the file name"
        return DataFileError(str(path), "is nested too deeply to be read", line=before + 1, hint=hint)
    word = str(error)
    at = next((number for number, line in enumerate(text.splitlines(), 1) if word in line), 1)
    problem = (
        f"{word} is not valid JSON"
        if word.lstrip("-").isalpha()
        else f"{word[:20]}{'...' if word[20:] else ''} is too large for a 64-bit float"
    )
    return DataFileError(str(path), problem, line=before + at, hint="remove the value")
