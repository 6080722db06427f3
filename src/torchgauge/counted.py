"""Numbers with their nouns in English: the one place that knows singular and plural."""

from __future__ import annotations

import re

_IES, _ES = re.compile(r"[^aeiou]y$"), re.compile(r"(s|x|z|ch|sh)$")


def counted(number: int, one: str, several: str = "") -> str:
    """``1 case``, ``2,000 cases``; where ``several`` is given, ``1 case has`` and ``2 cases have``."""
    return f"{number:,} {one if number == 1 else several or plural(one)}"


def plural(noun: str) -> str:
    """The regular plural of ``noun``, which may have words before it."""
    if _IES.search(noun):
        return f"{noun[:-1]}ies"
    return f"{noun}{'es' if _ES.search(noun) else 's'}"
