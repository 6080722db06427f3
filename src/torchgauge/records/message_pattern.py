"""A message as the pattern that equal causes share.

Why here: the worker makes fingerprints of it, and a reader of results groups with it what has no fingerprint.
"""

from __future__ import annotations

import re

MESSAGE_LIMIT = 2000
"""Characters of a message that count."""

_NOISE = (
    (re.compile(r"\b0x[0-9a-fA-F]+"), "0x?"),
    (re.compile(r"(?:/[\w.\-+@]+){2,}/?"), "PATH"),
    (re.compile(r"\b\d+(?:\.\d+)?(?:e[+-]?\d+)?(?:x\d+)*(?:[mnuµ]?s|[kKMGT]?i?B)?\b"), "N"),
    (re.compile(r"\s+"), " "),
)


def normalise(message: str) -> str:
    """Return ``message`` without addresses, paths, sizes and line breaks, so that equal causes are equal."""
    text = message[:MESSAGE_LIMIT]
    for pattern, replacement in _NOISE:
        text = pattern.sub(replacement, text)
    return text.strip()


def gist(message: str) -> str:
    """Return the first line of ``message``, and its line that names the innermost cause, where it has one."""
    first, *more = message.splitlines() or [""]
    roots = [line for line in more if line.startswith("caused by ")]
    return ", ".join([first, *roots[-1:]])
