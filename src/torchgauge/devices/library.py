"""Which copy of a library an interpreter imports: its place and a digest of its files.

Why: a version names neither. A folder earlier on the path, and a file that is edited in place, keep it.
Standard library only: an interpreter that runs this file prints the copy of each library it is given.
"""

from __future__ import annotations

import base64
import hashlib
import json
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

OFTEN_TWICE = frozenset({"torchgauge", "sitecustomize", "usercustomize"})
"""Modules of which a path holds several copies by design."""


class Library(NamedTuple):
    """The copy of a library that is imported.

    ``version`` is that of the distribution that the copy belongs to, empty where there is none. ``edited``
    are files that differ from its record. ``place`` is the folder that holds the copy, empty for folders of
    the interpreter.
    """

    version: str
    digest: str
    edited: tuple[str, ...] = ()
    place: str = ""

    @property
    def mark(self) -> str:
        """Return version, digest and edited files."""
        names = ", ".join(self.edited[:3]) + (" and more" if len(self.edited) > 3 else "")
        return " ".join(filter(None, (self.version, self.digest, names and f"edited: {names}")))

    @property
    def text(self) -> str:
        """Return the mark and the place."""
        return f"{self.mark} in {self.place}" if self.place else self.mark


def library(name: str) -> Library | None:
    """Return the copy of ``name`` that is imported, or would be; None where no file holds one."""
    source = _source(_spec(name))
    return None if source is None else _library(name, source)


def shadows(names: Iterable[str]) -> list[str]:
    """Return a sentence for each module of ``names`` that is not the installed one, or hides another copy.

    Folders of the interpreter may hide each other: a virtual environment does so by design.
    """
    sentences = []
    for name in sorted(set(names) - OFTEN_TWICE):
        source = _source(_spec(name))
        if source is None or source.parent in _own_folders():
            continue
        others = [_source(PathFinder.find_spec(name, [entry])) for entry in sys.path if entry]
        hidden = [other for other in others if other and other.resolve() != source.resolve()]
        if hidden:
            sentences.append(f"{name} in {_short(source.parent)} hides {name} in {_short(hidden[0].parent)}")
        elif (owner := _distribution(name)) and not _belongs(owner, source):
            sentences.append(f"{name} in {_short(source.parent)} is not that of {name} {owner.version}")
    return sentences


@cache  # a host computes it once for all its forks
def _library(name: str, source: Path) -> Library:
    place = "" if source.parent in _own_folders() else _short(source.parent)
    owner = _distribution(name)
    if owner is None or not _belongs(owner, source):
        return Library("", _digest_of_files(source), place=place)
    record = [line for line in _record(owner) if not line.startswith("..")]  # scripts name their interpreter
    kept = [line for line in record if line[-1] != "," and ".dist-info/" not in line]
    if not any(line.startswith(source.name) for line in kept):  # an editable install
        return Library(owner.version, _digest_of_files(source), place=place)
    hasher, edited = hashlib.sha256("\n".join(kept).encode()), []
    at = next((source.parent / line[:-2] for line in record if line.endswith("/RECORD,,")), source)
    for path, content in _edited(source.parent, kept, at.stat().st_mtime_ns):
        edited.append(path)
        hasher.update(content)
    return Library(owner.version, hasher.hexdigest()[:12], tuple(edited), place)


def _edited(home: Path, record: Iterable[str], written: int) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each Python file that differs from ``record``.

    Files are read where their size differs, or where they are newer than the record, which pip writes last.
    """
    for line in record:
        if ".py,sha256=" not in line:
            continue
        path, digest, size = line.rsplit(",", 2)
        try:
            status = (home / path).stat()
            if status.st_size == int(size) and status.st_mtime_ns <= written:
                continue
            content = (home / path).read_bytes()
        except OSError:
            content = b""
        actual = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        if digest != f"sha256={actual}":
            yield path, content


def _digest_of_files(source: Path) -> str:
    """Return the digest of the Python files of a copy that has no record."""
    hasher = hashlib.sha256()
    for file in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
        hasher.update(f"{file.relative_to(source.parent)}\0".encode() + file.read_bytes())
    return hasher.hexdigest()[:12]


def _belongs(owner: metadata.Distribution, source: Path) -> bool:
    """Return whether ``source`` is what the distribution ``owner`` installed."""
    url = json.loads(owner.read_text("direct_url.json") or "{}")
    if url.get("dir_info", {}).get("editable"):
        return source.is_relative_to(unquote(urlsplit(url["url"]).path))
    if source.parent != Path(str(owner.locate_file(""))):
        return False
    names, record = (f"{source.name}/", f"{source.name},"), _record(owner)
    return not record or any(line.startswith(names) for line in record)


@cache
def _record(owner: metadata.Distribution) -> list[str]:
    return (owner.read_text("RECORD") or "").splitlines()


@cache
def _distribution(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def _spec(name: str) -> ModuleSpec | None:
    try:
        return find_spec(name)
    except (ImportError, ValueError):  # a module without a specification
        return None


def _source(spec: ModuleSpec | None) -> Path | None:
    """Return the folder of a package or the file of a module, as it lies on the path."""
    if spec is None or not spec.has_location or spec.origin is None:
        return None
    return Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)


@cache
def _own_folders() -> frozenset[Path]:
    """Return the folders of the interpreter from which it imports."""
    paths = sysconfig.get_paths()
    standard = Path(paths["stdlib"])
    named = [*site.getsitepackages(), paths["purelib"], paths["platlib"], paths["platstdlib"]]
    return frozenset({standard, standard / "lib-dynload", *map(Path, named)})


def _short(folder: Path) -> str:
    home = Path.home()
    return f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)


if __name__ == "__main__":
    copies = {name: library(name) for name in sys.argv[1:]}
    sys.stdout.write(json.dumps({name: copy.text for name, copy in copies.items() if copy}))
