"""The few elements that pictures are made of; what a store says is made visible, cut and escaped here."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from torchgauge.dashboard.pictures.ink import style
from torchgauge.dashboard.xml_text import escape, xml_line

LONGEST = 300
"""Characters of a name in a title."""

WIDTH_OF_CHARACTER = 0.57
"""Of the widest of the usual fonts, on average and in units of its height."""


@dataclass(frozen=True)
class Frame:
    """The room for a drawing, in pixels; ``height`` 0 lets it be as high as it gets, ``size`` is of text."""

    suffix: str
    width: float
    height: float
    size: float

    @property
    def line(self) -> float:
        """From one line of text to the next."""
        return round(self.size * 1.5)


WIDE = Frame("", 760, 0, 13)
NARROW = Frame("-narrow", 358, 0, 12.5)
CARD = Frame("-card", 1200, 630, 21)
"""On a page, on a phone, and as the image that a link is shown with."""


@dataclass(frozen=True)
class Drawing:
    """An SVG file with its size in pixels."""

    text: str
    width: float
    height: float


def number(value: float) -> str:
    """A coordinate: a tenth of a pixel is enough."""
    text = f"{value:.1f}"
    return text.removesuffix(".0")


def cut(text: str, room: float, size: float) -> str:
    """``text`` with its middle left out where it is wider than ``room``; names differ at both ends."""
    line = xml_line(text, LONGEST)
    most = max(3, int(room / (size * WIDTH_OF_CHARACTER)))
    if len(line) <= most:
        return line
    head = most // 2
    return f"{line[:head]}…{line[len(line) - (most - head - 1) :]}"


def wrapped(text: str, room: float, size: float, most: int) -> list[str]:
    """``text`` in at most ``most`` lines as wide as ``room``; what is left is cut with an ellipsis."""
    lines: list[str] = []
    width = max(8, int(room / (size * WIDTH_OF_CHARACTER)))
    for word in xml_line(text, LONGEST * most).split():
        short = cut(word, room, size)
        if lines and len(lines[-1]) + 1 + len(short) <= width:
            lines[-1] += f" {short}"
        else:
            lines.append(short)
    if len(lines) > most:
        lines = [*lines[: most - 1], f"{lines[most - 1][: width - 1]}…"]
    return lines


@dataclass
class Svg:
    """A drawing in the making, of a ``frame``."""

    frame: Frame
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, css: str = "t") -> None:
        """One line of text, whose base is at ``y``."""
        self.parts.append(f'<text class="{css}" x="{number(x)}" y="{number(y)}">{_plain(text)}</text>')

    def name(self, at: tuple[float, float], text: str, room: float, css: str = "t") -> None:
        """A name, cut to ``room``; the whole of it is its title."""
        size = self.frame.size * (0.86 if "small" in css else 1)
        short, whole = cut(text, room, size), xml_line(text, LONGEST)
        title = "" if short == whole else f"<title>{escape(whole)}</title>"
        self.parts.append(
            f'<text class="{css}" x="{number(at[0])}" y="{number(at[1])}">{title}{escape(short)}</text>'
        )

    def path(self, d: str, css: str) -> None:
        """A path, whose ``d`` is ours."""
        if d:
            self.parts.append(f'<path class="{css}" d="{d}"/>')

    def rect(self, x: float, y: float, width: float, height: float, css: str) -> None:
        """A rectangle."""
        self.parts.append(
            f'<rect class="{css}" x="{number(x)}" y="{number(y)}" width="{number(width)}" '
            f'height="{number(height)}"/>'
        )

    def dot(self, x: float, y: float, radius: float, css: str) -> None:
        """A point."""
        self.parts.append(f'<circle class="{css}" cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"/>')

    def fill(self, box: tuple[float, float, float, float], status: str) -> None:
        """A box in the colour of a status, by the class that it has on pages."""
        self.rect(*box, f"f-{status}")
        if status == "infra":
            x, y, width, height = (number(each) for each in box)
            self.hatched(f"M{x} {y}h{width}v{height}h-{width}z")

    def hatched(self, d: str) -> None:
        """Lines over a path, for what says nothing."""
        if d:
            self.parts.append(f'<path fill="url(#hatching)" d="{d}"/>')

    def heading(self, title: str, says: str, pad: float) -> float:
        """Title and sentence from the top; returns the base of the last line."""
        frame = self.frame
        room, y = frame.width - 2 * pad, pad
        for line in wrapped(title, room, frame.size * 1.42, 2):
            y += frame.size * 1.75
            self.text(pad, y, line, "t big")
        for line in wrapped(says, room, frame.size, 2 if frame.height else 6):
            y += frame.line
            self.text(pad, y, line, "q")
        return y

    def footer(self, text: str, pad: float, y: float) -> None:
        """Small words at the end, in two lines where one is too short."""
        size = self.frame.size * 0.86
        for i, line in enumerate(wrapped(text, self.frame.width - 2 * pad, size, 2)):
            self.text(pad, y + i * size * 1.3, line, "q small")

    def group(self, title: str) -> None:
        """Begin a group that says ``title`` where a reader points at it."""
        self.parts.append(f"<g><title>{_plain(title)}</title>")

    def end(self) -> None:
        """End a group."""
        self.parts.append("</g>")

    def document(self, height: float, title: str, description: str) -> Drawing:
        """The whole file; ``height`` counts where the frame has none of its own."""
        frame = self.frame
        tall = frame.height or math.ceil(height)
        return Drawing(self._text(f"{frame.width:g}", f"{tall:g}", title, description), frame.width, tall)

    def _text(self, width: str, height: str, title: str, description: str) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-labelledby="title desc">'
            f'<title id="title">{_plain(title)}</title><desc id="desc">{_plain(description, 2_000)}</desc>'
            f"<style>{style(self.frame.size)}</style>"
            '<defs><pattern id="hatching" width="6" height="6" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><path class="hatch" d="M0 0V6"/></pattern></defs>'
            f'<rect class="page" width="{width}" height="{height}"/>'
            f"{''.join(self.parts)}</svg>\n"
        )


def _plain(text: str, limit: int = LONGEST) -> str:
    return escape(xml_line(text, limit))
