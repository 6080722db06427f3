"""A JSON file that holds one object or one record: read whole, or refused with its name and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torchgauge.errors import DataFileError
from torchgauge.records import RecordError, from_plain
from torchgauge.records.codec import Record

RESTORE = "restore it from a copy"


def read_object(path: Path | str, hint: str = RESTORE) -> dict[str, Any]:
    """The object in the file ``path``; raises :class:`DataFileError` with ``hint`` where it holds none."""
    try:
        data = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise DataFileError(str(path), f"cannot be read: {error.strerror or error}", hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise DataFileError(str(path), f"the file is not JSON: {error}", hint=hint) from error
    if not isinstance(data, dict):
        raise DataFileError(str(path), "expected a JSON object", hint=hint)
    return data


def object_if_any(path: Path) -> dict[str, Any]:
    """The object in the file ``path``; empty where it is missing or holds none."""
    try:
        return read_object(path)
    except DataFileError:
        return {}


def read_record(cls: type[Record], path: Path | str, hint: str = RESTORE) -> Record:
    """The record in the file ``path``; raises :class:`DataFileError` with ``hint`` where it holds none."""
    return as_record(cls, read_object(path, hint), path, hint)


def as_record(cls: type[Record], data: dict[str, Any], path: Path | str, hint: str = RESTORE) -> Record:
    """The record in ``data``, which the file ``path`` holds; raises :class:`DataFileError` with ``hint``."""
    try:
        return from_plain(cls, data)
    except RecordError as error:
        raise DataFileError(str(path), str(error), hint=hint) from error
