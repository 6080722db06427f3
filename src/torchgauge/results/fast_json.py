"""JSON by msgspec, for many rows or large files: it takes a fifth of the time.

Why apart: journals are also read by commands that import nothing but the standard library.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torchgauge.results.json_file import RESTORE, read_object


def loads(body: bytes) -> Any:
    """The values in ``body``; what msgspec refuses, such as half of a surrogate pair, is read by ``json``."""
    import msgspec

    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError):
        return json.loads(body)


def field_of(path: Path, name: str, hint: str = RESTORE) -> Any:
    """One field of the object in the file ``path``, None where it has none; raises as :func:`read_object`."""
    import msgspec

    try:
        found = msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw]).get(name)
        return None if found is None else msgspec.json.decode(found)
    except (OSError, msgspec.MsgspecError, ValueError):
        return read_object(path, hint).get(name)
