"""A message as the pattern that equal causes share.

Why here: the worker makes fingerprints of it, and a reader of results groups with it what has no fingerprint.
"""

from __future__ import annotations

import re

MESSAGE_LIMIT = 2000
"""Characters of a message that count."""

_NOISE = (
    (re.compile(r"0x[0-9a-fA-F]+"), "0x?"),
    (re.compile(r"(?:/[\w.\-+@]+){2,}/?"), "PATH"),
    (re.compile(r"\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b"), "N"),
    (re.compile(r"\s+"), " "),
)


def normalise(message: str) -> str:
    """``message`` without addresses, paths, numbers and line breaks, so that equal causes are equal."""
    text = message[:MESSAGE_LIMIT]
    for pattern, replacement in _NOISE:
        text = pattern.sub(replacement, text)
    return text.strip()
