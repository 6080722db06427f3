"""A picture: what it is called and says, what it draws, and the table of its numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from torchgauge.dashboard.pictures.svg import CARD, NARROW, WIDE, Drawing, Frame, Svg
from torchgauge.results import units

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext


@dataclass(frozen=True)
class Numbers:
    """The table beside a picture: the same numbers as text.

    ``hrefs`` lead from rows, relative to the root, where there is somewhere to go. ``name`` is the column
    that names a row.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    hrefs: tuple[str, ...] = ()
    name: int = 0


@dataclass(frozen=True)
class Picture:
    """One picture of ``kind``; ``name`` is its file's stem.

    ``says`` is the sentence that it shows, ``description`` what a reader is told who does not see it, and
    ``method`` what it rests on. ``draw`` makes the SVG for a frame, and is None where no file is written. An
    ``empty`` one has nothing to draw, and ``says`` says why; its file does too where its address must last.
    """

    kind: str
    name: str
    title: str
    says: str
    description: str
    method: str = ""
    numbers: Numbers = Numbers()
    draw: Callable[[Frame], Drawing] | None = None
    empty: bool = False

    @property
    def page(self) -> str:
        """Its page, relative to the root."""
        return f"pictures/{self.name}.html"

    @property
    def file(self) -> str:
        """The drawing, relative to the root."""
        return f"pictures/{self.name}.svg"

    @property
    def narrow_file(self) -> str:
        """The drawing for a phone, relative to the root."""
        return f"pictures/{self.name}-narrow.svg"

    @property
    def card_file(self) -> str:
        """The drawing as wide as a card, relative to the root."""
        return f"pictures/{self.name}-card.svg"

    @property
    def image(self) -> str:
        """The same as pixels, which a link to its page is shown with, relative to the root."""
        return f"pictures/{self.name}.png"

    @cached_property
    def wide(self) -> Drawing:
        """The drawing."""
        return self._drawn(WIDE)

    @cached_property
    def narrow(self) -> Drawing:
        """The drawing for a phone."""
        return self._drawn(NARROW)

    @cached_property
    def card(self) -> Drawing:
        """The drawing as wide as a card, for the gallery and for pixels."""
        return self._drawn(CARD)

    def _drawn(self, frame: Frame) -> Drawing:
        assert self.draw is not None, self.says
        return self.draw(frame)


def nothing(kind: str, title: str, why: str, lasting: str = "") -> Picture:
    """Return a picture that has only the reason ``why``, also as the file ``lasting``, which pages embed."""
    draw = partial(_words, title, why) if lasting else None
    return Picture(kind, lasting or kind, title, why, why, draw=draw, empty=True)


def _words(title: str, says: str, frame: Frame) -> Drawing:
    svg = Svg(frame)
    y = svg.heading(title, says, frame.size)
    return svg.document(frame.height or y + frame.line, title, says)


def dated(context: SiteContext) -> str:
    """Of when and of what a picture is: it is seen away from its page."""
    if not context.snapshots:
        return f"torchgauge, {units.day(context.now)}"
    newest = context.snapshots[-1]
    version = f"torch {newest.build.version}, " if newest.build.version else ""
    return f"{version}{newest.date}, 95 % intervals, torchgauge"
