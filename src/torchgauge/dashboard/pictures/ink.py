"""The colours of pictures in both schemes, as a style that each picture carries.

They are those of ``static/style.css``; a picture stands alone, so that it cannot ask that file. Custom
properties are left out, since programs that turn SVG into pixels do not know them.
"""

from __future__ import annotations

from collections.abc import Mapping

LIGHT: Mapping[str, str] = {
    "page": "#ffffff", "ink": "#1b2027", "muted": "#58616d", "line": "#d9dee5", "head": "#f3f5f8",
    "pass": "#9ccbeb", "pass-ink": "#10202d", "acc": "#f6de7a", "acc-ink": "#2a2300",
    "err": "#b5371a", "err-ink": "#ffffff", "limit": "#5b2c83", "limit-ink": "#ffffff",
    "none": "#a7adb5", "none-ink": "#14181d", "better": "#0b57a4", "worse": "#b5371a",
}  # fmt: skip
DARK: Mapping[str, str] = {
    "page": "#12161b", "ink": "#e5e9ee", "muted": "#a2acb8", "line": "#323a44", "head": "#1f252d",
    "pass": "#2c74a8", "pass-ink": "#ffffff", "acc": "#e3c34a", "acc-ink": "#221c00",
    "err": "#e8603c", "err-ink": "#190500", "limit": "#c9a6e4", "limit-ink": "#1d0b2b",
    "none": "#4a5360", "none-ink": "#ffffff", "better": "#8cc2f5", "worse": "#f28b66",
}  # fmt: skip
"""The same names in both: of ``static/style.css``, and of ``charts.css`` for better and worse."""

FONT = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif'

_STATUSES = ("pass", "acc", "err", "limit", "none")

_FILLS = {
    "page": "page", "t": "ink", "q": "muted", "head": "head", "b": "better", "w": "worse", "u": "muted",
    **{f"f-{name}": name for name in _STATUSES}, **{f"i-{name}": f"{name}-ink" for name in _STATUSES},
    "f-apart": "pass", "f-infra": "page", "f-lack": "head",
    "i-infra": "ink", "i-notrun": "ink", "i-lack": "muted",
}  # fmt: skip
"""Classes that fill, with the name of their colour."""

_STROKES = {
    "axis": "muted", "grid": "line", "one": "ink", "mark": "ink", "hatch": "muted",
    "sb": "better", "sw": "worse", "su": "muted",
    **{f"f-{name}": "page" for name in _STATUSES},
    "f-apart": "pass", "f-infra": "muted", "f-lack": "muted", "f-notrun": "muted",
}  # fmt: skip
"""Classes that draw lines, with the name of theirs."""

_SHAPES = {
    **dict.fromkeys(("axis", "grid", "one", "sb", "sw", "su", "mark", "hatch", "f-notrun"), "fill:none"),
    "e": "text-anchor:end", "m": "text-anchor:middle", "k": "font-weight:700",
}  # fmt: skip
_WIDTHS = {
    "axis": 1, "grid": 1, "one": 1.5, "sb": 1.5, "sw": 1.5, "su": 1.5, "thin": 0.8, "mark": 1, "hatch": 1.4,
}  # fmt: skip
_MORE = {
    "point": "stroke-width:2.8;stroke-linecap:round",
    "mark": "stroke-dasharray:4 3",
    "f-notrun": "stroke-dasharray:4 3",
    "f-apart": "fill-opacity:.35",
    "faint": "fill-opacity:.15",
    "middle": "fill-opacity:.35",
    "deep": "fill-opacity:.6",
}


def style(size: float) -> str:
    """The style of a picture whose text is ``size`` units high: light, and dark where a reader wants that."""
    dark = _sheet(_colours(DARK))
    light = _sheet(declarations(size))
    return f"text{{font:{size:g}px {FONT}}}{light}@media(prefers-color-scheme:dark){{{dark}}}"


def declarations(size: float) -> Mapping[str, str]:
    """What each class means in light, for programs that are slow at rules."""
    sizes = {"big": f"font-size:{size * 1.35:g}px;font-weight:700", "small": f"font-size:{size * 0.86:g}px"}
    widths = {css: f"stroke-width:{width:g}" for css, width in _WIDTHS.items()}
    parts = (_SHAPES, widths, _MORE, sizes, _colours(LIGHT))
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: ";".join(part[name] for part in parts if name in part) for name in names}


def _colours(colours: Mapping[str, str]) -> dict[str, str]:
    found = {css: f"fill:{colours[name]}" for css, name in _FILLS.items()}
    for css, name in _STROKES.items():
        found[css] = ";".join(part for part in (found.get(css), f"stroke:{colours[name]}") if part)
    return found


def _sheet(rules: Mapping[str, str]) -> str:
    return "".join(f".{css}{{{text}}}" for css, text in rules.items())
