"""Which operators an interpreter's torch has, asked of a child process once and then kept. Parent side.

Why a child and no data file: the database differs from version to version, and only the wheel that will run
knows its own. The answer depends on the files of torch only, so it is cached by their version and time.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from torchgauge.suites.kept_answer import Question, places_of

CHILD = Path(__file__).with_name("database.py")
"""Imports torch and the standard library only, so that any interpreter can run it from where it lies."""
DATABASE = Path("testing", "_internal", "common_methods_invocations.py")
"""The file of torch on which the answer depends."""


class Operator(msgspec.Struct, frozen=True):
    """One entry of the database; ``dtypes`` and ``backward`` by device type, ``""`` for every other one."""

    name: str
    dtypes: dict[str, tuple[str, ...]]
    backward: dict[str, tuple[str, ...]]
    out: bool
    inplace: bool


class Catalogue(msgspec.Struct, frozen=True):
    """All entries of one wheel; ``missing`` is the package without which there are none."""

    torch: str
    missing: str = ""
    operators: tuple[Operator, ...] = ()


def catalogue_of(python: str | None = None, *, cache: Path | None = None) -> Catalogue:
    """The operators of ``python`` (None: our own interpreter); the first time takes a child and seconds.

    Raises :class:`InfrastructureError` where its torch cannot be imported even without extensions.
    """
    path = python or sys.executable
    places = places_of(path, "torch")
    question = Question(CHILD, Catalogue, "operator database")
    return question.answered(path, places, [Path(places[0].file).parent / DATABASE], cache)
