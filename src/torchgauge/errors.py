"""The exception tree.

::

    TorchgaugeError
    ├── UsageError            a person's mistake: exit 2
    │   ├── UnknownNameError  a name that no plugin has, with suggestions
    │   ├── DataFileError     malformed YAML or JSON: file, line and path of the field
    │   └── OtherSchemaError  a file that another version of torchgauge wrote
    ├── NothingSelectedError  a selection that matches no case: exit 5
    ├── InfrastructureError   the environment broke: exit 3
    ├── NoNetworkError        a case needs a download that cannot be had: status skipped
    ├── MissingDataError      a case needs weights or data that are not there: status skipped
    ├── MissingPackageError   a case needs a package, or another version of one: status skipped
    ├── NotOfferedError       upstream's code does not do what the case asks for: status unsupported
    ├── UnobservableError     what a model returned cannot be compared: status error
    ├── ClockContradictionError  clocks that time a device contradict each other: status infra
    ├── PluginError           a plugin that breaks the rules of its seam: status error
    ├── DamagedJournalError   a journal or table that cannot be trusted: exit 3
    │   └── DamagedTableError of a run or a month, which is read no more
    └── DashboardError        a site that would not be true to its store: exit 3 (dashboard room)

A failing case is a ``Status``, never one of these; a build function raises those that name what a case
lacks, and the worker turns them into its status. Every message says what, where and what to try.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class TorchgaugeError(Exception):
    """Base of all errors that torchgauge raises on purpose; ``hint`` says what to try."""

    exit_code = 3

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  try: {self.hint}" if self.hint else self.message

    @property
    def in_a_line(self) -> str:
        """What is wrong and what to try, as the reason of a row."""
        return f"{self.message}; try: {self.hint}" if self.hint else self.message


def add_note(error: BaseException, text: str) -> None:
    """Attach ``text`` to ``error``: what a reader of its reason has to know of the circumstances."""
    error.torchgauge_note = text  # type: ignore[attr-defined]


def note_on(error: BaseException) -> str:
    """What :func:`add_note` attached to ``error``; empty where nothing was."""
    return str(getattr(error, "torchgauge_note", ""))


class UsageError(TorchgaugeError):
    """A person's mistake: what is wrong, where, and what to try."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name that nothing answers to; carries close matches."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str = "") -> None:
        self.name, names = name, sorted(known)
        self.suggestions = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        meant = f"; did you mean {' or '.join(self.suggestions)}?" if self.suggestions else ""
        super().__init__(f"unknown {kind} {name!r}{meant}", hint=hint or f"one of: {listed or '(none)'}")


class DataFileError(UsageError):
    """A data file that does not fit its schema: file, line where known, path of the field."""

    def __init__(
        self, file: str, problem: str, *, line: int | None = None, field: str = "", hint: str = ""
    ) -> None:
        self.file, self.line, self.field = file, line, field
        where = file if line is None else f"{file}:{line}"
        at = f" at `{field}`" if field else ""
        super().__init__(f"{where}{at}: {problem}", hint=hint)


class OtherSchemaError(UsageError):
    """A file of a store whose schema version is not today's; the message names both versions."""


class NothingSelectedError(TorchgaugeError):
    """A selection that matches no case."""

    exit_code = 5


class InfrastructureError(TorchgaugeError):
    """The environment broke (disk, lost device, missing interpreter): not the model's fault."""

    exit_code = 3


class NoNetworkError(TorchgaugeError):
    """Something that a case needs would have to be downloaded, and cannot be."""


class MissingDataError(TorchgaugeError):
    """Weights or data that a case needs are not there."""


class MissingPackageError(TorchgaugeError):
    """A package that a case needs is missing or does not fit: the case is skipped."""


class NotOfferedError(TorchgaugeError):
    """Upstream's code does not do what the case asks for, whatever its phase: the case is unsupported."""


class TooLargeError(TorchgaugeError):
    """A model that needs more memory than there is: how much both are. Nothing of it was made."""


class UnobservableError(TorchgaugeError):
    """What a model returned cannot be compared, or holds nothing to compare: nobody could call it right."""


class NotRunError(TorchgaugeError):
    """Steps of a case that did not enter the code that its configuration names."""


class JudgeError(TorchgaugeError):
    """torchgauge's comparison raised an exception: whether the result is right is unknown."""


class ClockContradictionError(TorchgaugeError):
    """The clocks that a device is timed by contradict each other: which, and by how much."""


class PluginError(TorchgaugeError):
    """A plugin that breaks the rules of its seam: what it did, and its name."""


class DamagedJournalError(TorchgaugeError):
    """A journal whose middle cannot be read; the message names the line."""

    exit_code = 3


class DamagedTableError(DamagedJournalError):
    """A table that cannot be read: ``path``, and ``runs`` that it belongs to, one unless it is of a month."""

    def __init__(self, path: Path, problem: str, *, hint: str, runs: tuple[str, ...] = ()) -> None:
        self.path, self.runs, self.problem = path, runs or (path.stem,), problem
        super().__init__(f"{path} cannot be read: {problem}", hint=hint)
