"""Refusals by name as a document, JSON and CSV. The source of a package is nobody's: none may act."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from torchgauge.harness.refused.finding import Effect, Refusal, Scanned
from torchgauge.harness.refused.lifted import Lifted
from torchgauge.records import to_plain
from torchgauge.results import document
from torchgauge.results.csv_text import csv_text

CSV_HEADER = ("package", "version", "file", "line", "function", "effect", "names", "test", "says")
SHOWN = 400
"""Rows of places that raise in a document; the machine forms have all of every effect."""


def terminal_of(found: Sequence[Scanned], lifted: Sequence[Lifted] = ()) -> str:
    """All packages as a person reads them on a terminal."""
    return document.terminal("harness/refused/refused", **_words(found, lifted))


def markdown_of(found: Sequence[Scanned], lifted: Sequence[Lifted] = ()) -> str:
    """All packages as one Markdown document."""
    return document.markdown("harness/refused/refused", **_words(found, lifted))


def as_plain(found: Sequence[Scanned], lifted: Sequence[Lifted] = ()) -> dict[str, Any]:
    """Everything as JSON values."""
    return {"packages": [to_plain(each) for each in found], "lifted": [to_plain(each) for each in lifted]}


def csv_of(found: Sequence[Scanned]) -> str:
    """One line for each place."""
    rows = (
        (
            each.package,
            each.version,
            r.file,
            r.line,
            r.function,
            r.effect.value,
            " ".join(r.names),
            r.test,
            r.says,
        )
        for each in found
        for r in each.refusals
    )
    return csv_text(CSV_HEADER, rows)


def by_folder(refusals: Sequence[Refusal]) -> list[tuple[str, int]]:
    """How many of ``refusals`` lie in each second folder, such as ``torch/nn``, the most first."""
    names = sorted("/".join(each.file.split("/")[:2]) for each in refusals)
    counts = [(name, len(list(same))) for name, same in groupby(names)]
    return sorted(counts, key=lambda each: (-each[1], each[0]))


def _words(found: Sequence[Scanned], lifted: Sequence[Lifted]) -> dict[str, Any]:
    return {"found": found, "lifted": lifted, "Effect": Effect, "by_folder": by_folder, "shown": SHOWN}
