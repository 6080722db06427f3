"""What a model's entry says of its execution: what runs of it where the user names nothing else."""

from __future__ import annotations

import difflib
from pathlib import Path

from torchgauge.errors import UnknownNameError
from torchgauge.harness.planning.configurations import configuration, known_configurations
from torchgauge.harness.planning.selection import DEFAULT_CONFIGURATIONS, DTYPE_ALIASES, DTYPES, Selection
from torchgauge.records import Configuration
from torchgauge.suites.check import CHECK
from torchgauge.suites.document import read_document
from torchgauge.suites.schema import refuse
from torchgauge.suites.suite import ModelEntry, Suite


def configurations_of(entry: ModelEntry, selection: Selection) -> list[Configuration]:
    """The configurations in which ``entry`` runs: those that were named, else its own, else the defaults.

    Raises :class:`UnknownNameError`.
    """
    names = selection.configurations or entry.configurations or DEFAULT_CONFIGURATIONS
    return [configuration(name, selection.configuration_file) for name in dict.fromkeys(names)]


def check_words(suite: Suite, entry: ModelEntry, file: str | None) -> None:
    """Raise :class:`DataFileError` for a configuration or dtype of ``entry`` that nobody knows.

    ``file`` has configurations beside ours. A suite without a data file raises :class:`UnknownNameError`.
    """
    if entry.framework == CHECK:
        return
    data = getattr(suite, "data", None)
    for problem in problems(entry, tuple(known_configurations(file))):
        if data is None:
            raise UnknownNameError(problem[0], problem[2], problem[3])
        _refuse(Path(data), [each.name for each in suite.models()].index(entry.name), problem)


def check_file(path: Path, entries: tuple[ModelEntry, ...], files: list[str]) -> None:
    """The same for all ``entries`` of the data file at ``path``, with the configurations of ``files``."""
    known = dict.fromkeys(name for file in (None, *files) for name in known_configurations(file))
    for index, entry in enumerate(entries):
        for problem in problems(entry, tuple(known)):
            _refuse(path, index, problem)


Problem = tuple[str, str, str, tuple[str, ...]]
"""What kind of word it is, the field with its index, the word, and those that are known."""


def problems(entry: ModelEntry, configurations: tuple[str, ...]) -> list[Problem]:
    """The words of ``entry`` that are none of ``configurations`` and no dtype."""
    dtypes = (*DTYPES, *DTYPE_ALIASES)
    return [
        (kind, f"{field}[{index}]", word, known)
        for kind, field, words, known in (
            ("configuration", "configurations", entry.configurations, configurations),
            ("dtype", "dtypes", entry.dtypes, dtypes),
        )
        for index, word in enumerate(words)
        if word not in known
    ]


def _refuse(path: Path, index: int, problem: Problem) -> None:
    kind, field, word, known = problem
    close = difflib.get_close_matches(word, known, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"one of: {', '.join(known)}"
    said = f"no {kind} is called {word!r}"
    raise refuse(read_document(path), f"$.models[{index}].{field}", said, hint)
