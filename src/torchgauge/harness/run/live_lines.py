"""Lines on a stream for a person, and on a terminal a live one below them that says what runs now."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TextIO, TypeVar

from torchgauge.clock import SYSTEM_CLOCK, Clock
from torchgauge.results.hostile_text import visible
from torchgauge.results.terminal_width import LEAST, terminal_width

BAR_COLUMNS = 16
TICK_S = 1.0
"""Seconds between two looks of the live line at the clock."""
ASKING = "listing the interpreter's devices"
PLANNING = "planning: listing the interpreter's devices and models"


Lines = TypeVar("Lines", bound="LiveLines")
Given = ParamSpec("Given")


def ends_no_case(
    method: Callable[Concatenate[Lines, Given], None],
) -> Callable[Concatenate[Lines, Given], None]:
    """``method``, which shows something: where it fails that is said once, and no more is shown.

    Executors call it between rows: what it raised would be taken for a failure of theirs, and end cases that
    have nothing to do with it. A stream that is gone (``OSError``) is its caller's affair.
    """

    @wraps(method)
    def call(self: Lines, /, *given: Given.args, **named: Given.kwargs) -> None:
        if self.failed:
            return
        try:
            method(self, *given, **named)
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, it is not about what is measured
            self.failed = True
            words = f"{type(error).__name__}: {error}"
            with suppress(Exception):  # it may be what fails; the summary is still to come
                self.say(f"note: progress cannot be shown ({words}); rows are still stored")

    return call


class LiveLines:
    """Lines on a stream, stderr unless given; on a terminal above one that says what runs now."""

    bar: Any = None
    doing = "the first process"
    """What runs now, in words."""
    failed = False
    """Whether showing something has failed."""
    _shown = 0.0

    def __init__(self, stream: TextIO | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self.stream = stream or sys.stderr
        self._raw = getattr(self.stream, "stream", self.stream)  # where the live line may move the cursor
        self.clock = clock
        self.began = clock.steady()
        self.timed: set[str] = set()
        """What is being timed now, and gets no neighbour that draws."""

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None where there is none, and lines have the length that they need."""
        return None if self.bar is None else int(self.bar.console.width)

    @contextmanager
    def during(self, words: str = PLANNING) -> Iterator[None]:
        """On a terminal show ``words`` beside something that moves, while nothing is measured."""
        if not self.stream.isatty():
            yield
            return
        from rich.text import Text

        with self._console().status(Text(f"{words} ...", no_wrap=True, overflow="ellipsis")):
            yield

    def begin(self, total: int | None = None, doing: str = "starting") -> None:
        """Start the clock and, on a terminal, draw the live line: with a bar where there is a ``total``."""
        self.began = self.clock.steady()
        if not self.stream.isatty():
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column

        bar = (BarColumn(bar_width=BAR_COLUMNS), MofNCompleteColumn()) if total is not None else ()
        rest = Column(no_wrap=True, overflow="ellipsis", ratio=1)  # what does not fit ends in three dots
        self.bar = Progress(
            *bar,
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}{task.description}", markup=False, table_column=rest),
            console=self._console(),
            transient=True,
            expand=True,
            auto_refresh=False,  # a thread would draw while something is timed; `tick` does not
        )
        self.bar.start()
        self.task = self.bar.add_task(doing, total=total, left="")
        self.bar.refresh()

    def _console(self) -> Any:
        from rich.console import Console

        console = Console(file=self._raw)
        if console.width < LEAST:  # Rich follows the size of any wider terminal
            console.width = terminal_width(self.stream)
        return console

    @ends_no_case
    def show(self, /, **changes: Any) -> None:
        """Change the live line: ``description``, ``completed`` or ``left``."""
        self.doing = changes.get("description", self.doing)
        if self.bar is not None:
            shown = {name: visible(it) if isinstance(it, str) else it for name, it in changes.items()}
            self.bar.update(self.task, refresh=True, **shown)

    @ends_no_case
    def tick(self) -> None:
        """Let the live line's clock go on, once a second at most, and not while anything is timed."""
        if self.bar is None or self.timed or self.clock.steady() - self._shown < TICK_S:
            return
        self._shown = self.clock.steady()
        self.bar.refresh()

    def hear(self, name: str, timed: bool) -> None:
        """Know whether ``name`` is being timed now."""
        if timed:
            self.timed.add(name)
        else:
            self.timed.discard(name)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return self.clock.steady() - self.began

    @ends_no_case
    def note(self, text: str) -> None:
        """Pass a note on."""
        self.say(f"note: {text}")

    def say(self, text: str) -> None:
        """Write one line at once, above the live one; what would act on the terminal is left out."""
        text = visible(text)
        if self.bar is not None:
            self.bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
            return
        self.stream.write(text + "\n")
        self.stream.flush()

    def stop(self) -> None:
        """Leave the terminal as it was, whatever happened; called last, and at least once."""
        if self.bar is not None:
            with suppress(Exception):  # it draws once more, and the summary is still to come
                self.bar.stop()
