"""A picture as pixels, for the places that show a link and read no SVG.

``resvg`` draws them; it is a dependency of the extra ``torchgauge[dashboard]``, and without it there are no
images. Only the fonts of the package are used, so that every machine makes the same bytes.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module, resources
from typing import Any

from torchgauge.dashboard.pictures.ink import declarations
from torchgauge.dashboard.pictures.picture import Picture
from torchgauge.dashboard.pictures.svg import CARD


def available() -> bool:
    """Whether images can be made."""
    return _resvg() is not None


def note() -> str:
    """What is said where they cannot be made."""
    return "" if available() else "no images for links: pip install 'torchgauge[dashboard]' draws them"


def card_image(picture: Picture) -> bytes | None:
    """The card of ``picture`` as PNG, 1200 x 630; None where nothing can draw it."""
    resvg = _resvg()
    if resvg is None:
        return None
    drawn = resvg.svg_to_bytes(
        svg_string=_inlined(picture.card.text),
        font_files=_fonts(),
        skip_system_fonts=True,
        font_family=_FAMILY,
        font_size=CARD.size,
        text_rendering="optimize_speed",
    )
    return bytes(drawn)


_FAMILY = "DejaVu Sans"
_STYLE = re.compile(r"<style>.*?</style>")
_CLASS = re.compile(r'<(\w+) class="([^"]*)"')
"""A class of an element; what a store says holds no ``<``."""


def _inlined(text: str) -> str:
    """The picture in light with the style at each element: half of the time of a picture went into rules."""
    known = declarations(CARD.size)
    found: dict[str, str] = {}

    def styled(match: re.Match[str]) -> str:
        css = match[2]
        if css not in found:
            found[css] = ";".join(known[name] for name in css.split())
        return f'<{match[1]} style="{found[css]}"'

    return _CLASS.sub(styled, _STYLE.sub("", text))


@cache
def _resvg() -> Any:
    try:
        return import_module("resvg_py")
    except ImportError:
        return None


@cache
def _fonts() -> list[str]:
    folder = resources.files("torchgauge.dashboard").joinpath("fonts")
    return sorted(str(file) for file in folder.iterdir() if file.name.endswith(".ttf"))
