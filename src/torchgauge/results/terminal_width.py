"""How wide the terminal of a stream is, whatever the terminal says: a line is never what ends a command."""

from __future__ import annotations

import os
from typing import TextIO

USUAL, LEAST = 80, 20
"""Columns of a terminal that says none, as that of a step of continuous integration, and the fewest."""


def terminal_width(stream: TextIO) -> int:
    """Return the columns of the terminal of ``stream``, as COLUMNS or the terminal says."""
    try:
        columns = int(os.environ.get("COLUMNS") or os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError):
        columns = 0
    return max(columns, LEAST) if columns > 0 else USUAL
