"""Text of a store as HTML, where a page is written by functions since a template would take too long."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from markupsafe import escape

from torchgauge.dashboard.pages.code_links import linked_fact
from torchgauge.results.hostile_text import VALUE_LIMIT, brief

_PLAIN = re.compile(r"[ !#-%(-;=?-~]*").fullmatch
"""Printable ASCII but the five characters that have to be escaped: nearly all text."""


_LONG, _WIDE = 64, ' class="wide"'
"""Characters of a value above which it takes the whole width."""


def shown(text: str, limit: int = VALUE_LIMIT) -> str:
    """``text`` made visible and brief, then escaped for element content and quoted attributes."""
    return text if len(text) <= limit and _PLAIN(text) else str(escape(brief(text, limit)))


@lru_cache(maxsize=8192)
def repeated(text: str) -> str:
    """The same for text that a site says over and over, such as names of devices and configurations."""
    return shown(text)


def facts_html(pairs: Iterable[tuple[str, str]]) -> str:
    """Pairs of a name and a value as a list of terms; empty for none."""
    items = "".join([_item(name, value) for name, value in pairs])
    return f'<dl class="facts">{items}</dl>' if items else ""


@lru_cache(maxsize=8192)
def _item(name: str, value: str) -> str:
    """One pair; the cases of a site say the same of themselves over and over."""
    wide = _WIDE if len(value) > _LONG else ""
    return f"<div{wide}><dt>{shown(name)}</dt><dd>{linked_fact(name, value)}</dd></div>"


def scroll_html(label: str, table: str, classes: str = "plain") -> str:
    """``table``, the inside of a table element, in a region that the keyboard can scroll."""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{shown(label)}">'
        f'<table class="{classes}">{table}</table></div>'
    )
