"""The line of Markdown that shows an image of the site elsewhere and leads to its page."""

from __future__ import annotations

PLACEHOLDER = "https://YOUR-SITE/"
"""The address in Markdown where nobody said what the site's own is."""

_SPECIAL = frozenset("\\`*_[]()<>!#|")


def markdown_image(label: str, image: str, page: str, base_url: str) -> str:
    """``image`` and ``page`` are relative to the root; ``label`` is text of a store."""
    base = base_url or PLACEHOLDER
    plain = "".join(f"\\{c}" if c in _SPECIAL else c for c in label)
    return f"[![{plain}]({base}{image})]({base}{page})"
