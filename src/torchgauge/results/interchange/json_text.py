"""JSON from other programs: one value, or one per line, read strictly and with the line of a mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from torchgauge.errors import DataFileError


def read_values(path: Path, text: str) -> list[tuple[int, Any]]:
    """Every value of the file with the line that it begins on: one value, or one per line (JSON lines).

    Raises :class:`DataFileError` with line and column for text that is no JSON, and for NaN and infinities.
    """
    try:
        return [(1, _loads(text))]
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise _refused(path, error, 0) from error
    except _NotFiniteError as error:
        raise _not_finite(path, text, error) from error
    return [
        (number, _line(path, line, number))
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]


class _NotFiniteError(ValueError):
    """NaN or an infinity, which JSON does not have."""


def _line(path: Path, line: str, number: int) -> Any:
    try:
        return _loads(line)
    except json.JSONDecodeError as error:
        raise _refused(path, error, number - 1) from error
    except _NotFiniteError as error:
        raise _not_finite(path, line, error, number - 1) from error


def _loads(text: str) -> Any:
    return json.loads(text, parse_constant=_constant)


def _constant(name: str) -> NoReturn:
    raise _NotFiniteError(name)


def _refused(path: Path, error: json.JSONDecodeError, before: int) -> DataFileError:
    return DataFileError(
        str(path),
        f"is no JSON: {error.msg} in column {error.colno}",
        line=before + error.lineno,
        hint="the file may have been cut off: copy it again",
    )


def _not_finite(path: Path, text: str, error: _NotFiniteError, before: int = 0) -> DataFileError:
    word = str(error)
    at = next((number for number, line in enumerate(text.splitlines(), 1) if word in line), 1)
    return DataFileError(
        str(path),
        f"{word} is no result and no JSON: a missing value is a status",
        line=before + at,
        hint="take the value out",
    )
