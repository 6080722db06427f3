"""Text of a store for XML: one visible line without the characters that XML 1.0 forbids.

Why not the standard library's ``saxutils``: importing it costs a night's build forty milliseconds.
"""

from __future__ import annotations

import re

from torchgauge.results.hostile_text import first_line

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_line(text: str, limit: int) -> str:
    """The first line of ``text``, cut to ``limit`` characters; not escaped yet."""
    return _FORBIDDEN.sub("", first_line(text, limit))


def escape(text: str) -> str:
    """``text`` for element content."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def attribute(text: str) -> str:
    """``text`` as the quoted value of an attribute."""
    return f'"{escape(text).replace(chr(34), "&quot;")}"'
