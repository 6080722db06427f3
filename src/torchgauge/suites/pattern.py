"""Patterns on names in data files: ``*`` and ``?``, and every other character stands for itself.

Why not ``fnmatch``: case ids contain brackets, which it reads as sets of characters.
"""

from __future__ import annotations

import re
from functools import cache


def matches(pattern: str | None, text: str) -> bool:
    """Whether ``text`` as a whole fits ``pattern``; no pattern fits everything."""
    return pattern is None or _compiled(pattern).fullmatch(text) is not None


def as_expression(pattern: str) -> str:
    """Return the regular expression of ``pattern``, without flags."""
    return re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(as_expression(pattern), re.DOTALL)
