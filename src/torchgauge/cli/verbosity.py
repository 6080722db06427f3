"""How much a verb that measures says: ``-q`` errors and the summary, ``-v`` every number of every case."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from torchgauge.errors import UsageError

if TYPE_CHECKING:
    from torchgauge.harness.ab.progress import AbProgress
    from torchgauge.harness.run.progress import Progress

Command = TypeVar("Command", bound=Callable[..., Any])


def verbosity(command: Command) -> Command:
    """Add ``-q`` and ``-v``."""
    for option in (
        click.option("-v", "--verbose", is_flag=True, help="print every number and phase"),
        click.option("-q", "--quiet", is_flag=True, help="print errors and the summary only"),
    ):
        command = option(command)
    return command


def run_progress(options: Mapping[str, Any]) -> Progress:
    """What a campaign tells while it runs, as much as was asked for."""
    from torchgauge.harness.run.progress import Progress, VerboseProgress

    if _checked(options, "quiet"):
        return Progress(Silence())
    return VerboseProgress() if options["verbose"] else Progress()


def ab_progress(options: Mapping[str, Any]) -> AbProgress:
    """The same for an A/B run."""
    from torchgauge.harness.ab.progress import AbProgress, VerboseAbProgress

    if _checked(options, "quiet"):
        return AbProgress(Silence())
    return VerboseAbProgress() if options["verbose"] else AbProgress()


def _checked(options: Mapping[str, Any], name: str) -> bool:
    if options["quiet"] and options["verbose"]:
        raise UsageError("-q and -v are both given", hint="give one of them")
    return bool(options[name])


class Silence(io.StringIO):
    """A stream that keeps nothing of what is written to it."""

    def write(self, text: str) -> int:
        """Forget ``text``."""
        return len(text)
