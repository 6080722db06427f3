"""What the models of a suite need from pip, in the order in which it is installed.

Parent side: facts of data files alone. :mod:`torchgauge.harness.interpreter.install` gives them to pip.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import msgspec

from torchgauge.suites.catalog import DATA, Name
from torchgauge.suites.document import read_document
from torchgauge.suites.lending import RECIPE
from torchgauge.suites.schema import Reason, convert
from torchgauge.suites.suite import ModelEntry

FILE = DATA / "install.yaml"
_NAME = re.compile(r"[A-Za-z0-9]+(?:[-_.]+[A-Za-z0-9]+)*")


class LastFields(msgspec.Struct, forbid_unknown_fields=True):
    """Why a package comes last, and whether pip may build it apart from what is installed."""

    reason: Reason
    isolated: bool = True


class InstallFields(msgspec.Struct, forbid_unknown_fields=True):
    """The body of the data file."""

    suites: dict[Name, tuple[Name, ...]]
    last: dict[Name, LastFields]
    brought: dict[Name, Reason]
    never: dict[Name, Reason]


class InstallFile(msgspec.Struct, forbid_unknown_fields=True):
    """A whole data file."""

    install: InstallFields


@dataclass(frozen=True)
class Need:
    """One package: what pip is told (``texts``), and the models that it is for, none meaning all.

    ``last`` says why it comes after the others, and ``brought`` what else brings it; empty where not so.
    """

    name: str
    texts: tuple[str, ...]
    models: tuple[str, ...] = ()
    last: str = ""
    isolated: bool = True
    brought: str = ""

    @property
    def bare(self) -> bool:
        """Whether any version will do."""
        return all(distribution_of(text) == self.name and _NAME.fullmatch(text) for text in self.texts)


def load_install(path: Path) -> InstallFields:
    """The body of ``path``; raises :class:`DataFileError`."""
    return convert(read_document(path), InstallFile).install


@cache
def bundled_install() -> InstallFields:
    """What ships with the package."""
    return load_install(FILE)


def needs_of(suite: str, entries: Sequence[ModelEntry]) -> tuple[Need, ...]:
    """What the models ``entries`` of ``suite`` need: shared ones first, those that may do harm last."""
    facts = bundled_install()
    found: dict[str, Need] = {}
    for text in facts.suites.get(suite, ()):
        _add(found, text, "")
    for entry in entries:
        for text in (*entry.packages, *_requirements(entry)):
            _add(found, text, entry.name)
    kept = [need for name, need in found.items() if name not in facts.never]
    placed = [
        replace(need, last=last.reason, isolated=last.isolated)
        if (last := facts.last.get(need.name)) is not None
        else replace(need, brought=facts.brought[need.name])
        if need.name in facts.brought
        else replace(need, last="from a repository")
        if any("://" in text for text in need.texts)
        else need
        for need in kept
    ]
    return tuple(sorted(placed, key=lambda need: bool(need.last)))


def distribution_of(text: str) -> str:
    """The name of a requirement or of a repository's address, as package indexes spell it."""
    found = _NAME.match(text) if "://" not in text else None
    if found is None:  # an address: the last part of its path, without revision and suffix
        tail = text.partition("#egg=")[2] or text.partition("://")[2].partition("@")[0].rstrip("/")
        found = _NAME.match(tail.rpartition("/")[2].removesuffix(".git"))
    return re.sub(r"[-_.]+", "-", found[0] if found is not None else text).lower()


def _requirements(entry: ModelEntry) -> Iterable[str]:
    recipe = entry.recipe.get(RECIPE) if entry.of else entry.recipe
    said = recipe.get("requirements", ()) if isinstance(recipe, dict) else ()
    return [str(each) for each in said] if isinstance(said, (list, tuple)) else []


def _add(found: dict[str, Need], text: str, model: str) -> None:
    name = distribution_of(text)
    before = found.get(name, Need(name, ()))
    shared = name in found and not before.models
    models = () if shared or not model else tuple(dict.fromkeys((*before.models, model)))
    texts = {each for each in (*before.texts, text) if each.lower() != name}  # a bare name adds nothing
    found[name] = replace(before, texts=tuple(sorted(texts)) or (name,), models=models)
