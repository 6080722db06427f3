"""What a model's entry says of its execution: what runs of it where the user names nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from torchgauge.errors import DataFileError, UnknownNameError, UsageError
from torchgauge.harness.backends.backend import beside
from torchgauge.harness.planning.configurations import configuration, is_known, known_configurations
from torchgauge.harness.planning.selection import DEFAULT_CONFIGURATIONS, DTYPE_ALIASES, DTYPES, Selection
from torchgauge.records import Cause, Configuration, Refusal, Status
from torchgauge.suites.check import CHECK
from torchgauge.suites.document import read_document
from torchgauge.suites.schema import refuse
from torchgauge.suites.suite import ModelEntry, Suite


def configurations_of(entry: ModelEntry, selection: Selection) -> list[Configuration]:
    """The configurations in which ``entry`` runs: those that were named, else its own, else the defaults.

    Raises :class:`UnknownNameError`.
    """
    names = selection.configurations or entry.configurations or DEFAULT_CONFIGURATIONS
    return with_beside(names, selection.configuration_file)


def with_beside(names: Iterable[str], file: str | None) -> list[Configuration]:
    """The configurations called ``names``, each once, with those that they are planned beside before them.

    Raises :class:`UnknownNameError`.
    """
    found: dict[str, Configuration] = {}
    for name in names:
        made = configuration(name, file)
        for each in (*beside(made), name):
            found.setdefault(each, configuration(each, file))
    return list(found.values())


def known_words(suite: Suite, entry: ModelEntry, selection: Selection) -> ModelEntry:
    """``entry`` with those of its configurations and dtypes that are known here.

    One that would run in others is declined: others of its suite go on. What the user names replaces them.
    """
    if entry.framework == CHECK or not (entry.configurations or entry.dtypes):
        return entry
    wrong = [
        each
        for each in problems(entry, tuple(known_configurations(selection.configuration_file)))
        if not getattr(selection, each[0].partition("[")[0])
    ]
    if not wrong:
        return entry
    words = {error.name for _, error in wrong}
    reason = _said(suite, entry, *wrong[0]).in_a_line
    return replace(
        entry,
        configurations=tuple(each for each in entry.configurations if each not in words),
        dtypes=tuple(each for each in entry.dtypes if each not in words),
        declined={"": Refusal(Status.SKIPPED, reason, Cause.MISSING_DATA)},
    )


def check_file(path: Path, entries: tuple[ModelEntry, ...], files: list[str]) -> None:
    """Raise :class:`DataFileError` for a word of ``entries``, of the file at ``path``, that nobody knows.

    Configurations of ``files`` are known beside ours.
    """
    known = dict.fromkeys(name for file in (None, *files) for name in known_configurations(file))
    for index, entry in enumerate(entries):
        for field, error in problems(entry, tuple(known)):
            raise _placed(path, index, field, error)


def problems(entry: ModelEntry, configurations: tuple[str, ...]) -> list[tuple[str, UnknownNameError]]:
    """The words of ``entry`` that are none of ``configurations`` and no dtype, each with its field."""
    return [
        (f"{kind}s[{index}]", UnknownNameError(kind, word, known))
        for kind, words, known in (
            ("configuration", entry.configurations, configurations),
            ("dtype", entry.dtypes, (*DTYPES, *DTYPE_ALIASES)),
        )
        for index, word in enumerate(words)
        if not (is_known(word, known) if kind == "configuration" else word in known)
    ]


def _said(suite: Suite, entry: ModelEntry, field: str, error: UnknownNameError) -> UsageError:
    """``error`` of ``entry`` with its place in the data file of ``suite``, where it has one."""
    data = getattr(suite, "data", None)
    if data is None:
        return error
    return _placed(Path(data), [each.name for each in suite.models()].index(entry.name), field, error)


def _placed(path: Path, index: int, field: str, error: UnknownNameError) -> DataFileError:
    hint = error.hint
    if field.startswith("configurations"):
        hint += "; --config-file FILE adds the configurations of a file"
    return refuse(read_document(path), f"$.models[{index}].{field}", error.message, hint)
