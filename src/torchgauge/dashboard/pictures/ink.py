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

_SHAPES = (
    ".axis,.grid,.one,.sb,.sw,.su,.hatch,.mark,.f-notrun{fill:none}"
    ".grid,.axis{stroke-width:1}.one{stroke-width:1.5}.sb,.sw,.su{stroke-width:1.5}"
    ".thin{stroke-width:.8}.mark{stroke-width:1;stroke-dasharray:4 3}"
    ".f-notrun{stroke-dasharray:4 3}.f-apart{fill-opacity:.35}"
    ".hatch{stroke-width:1.4}"
    ".e{text-anchor:end}.m{text-anchor:middle}.k{font-weight:700}"
)


def style(size: float) -> str:
    """The style of a picture whose text is ``size`` units high: light, and dark where a reader wants that."""
    sizes = (
        f"text{{font:{size:g}px {FONT}}}.big{{font-size:{size * 1.35:g}px;font-weight:700}}"
        f".small{{font-size:{size * 0.86:g}px}}"
    )
    dark = _rules(DARK)
    return f"{_SHAPES}{sizes}{_rules(LIGHT)}@media(prefers-color-scheme:dark){{{dark}}}"


def _rules(colours: Mapping[str, str]) -> str:
    fills = "".join(f".{css}{{fill:{colours[name]}}}" for css, name in _FILLS.items())
    return fills + "".join(f".{css}{{stroke:{colours[name]}}}" for css, name in _STROKES.items())
