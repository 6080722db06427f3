"""The cursor of a terminal, which a live line hides; whoever ends the process at once shows it again."""

from __future__ import annotations

import os

_SHOW = b"\x1b[?25h"


def show_cursor() -> None:
    """Show the cursor where standard error is a terminal; nothing elsewhere. Safe in a signal handler."""
    if os.isatty(2):
        os.write(2, _SHOW)
