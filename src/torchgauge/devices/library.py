"""Which copy of a library an interpreter imports: its folder and a digest of its files.

Why: a version does not identify a copy. An earlier folder on the path or an edited file may have it too.
Standard library only: run as a script, this file prints the copy of each library that its arguments name.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import site
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from importlib.machinery import PathFinder
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
    def text(self) -> str:
        """Return it in words, with three edited files at most."""
        edited = ", ".join(self.edited[:3]) + " and more" * (len(self.edited) > 3)
        parts = (self.version, self.digest, edited and f"edited: {edited}", self.place and f"in {self.place}")
        return " ".join(filter(None, parts))


def library(name: str) -> Library | None:
    """Return the copy of ``name`` that is imported, or would be; None where no file holds one."""
    source = _source(name)
    return None if source is None else _library(name, source)


def shadows(names: Iterable[str]) -> list[str]:
    """Return a sentence for each module of ``names`` that is not the installed one, or hides another copy.

    Folders of the interpreter may hide each other: a virtual environment does so by design.
    """
    sentences = []
    for name in sorted(set(names) - OFTEN_TWICE):
        source = _source(name)
        if source is None or source.parent in _own_folders():
            continue
        others = [_source(name, entry) for entry in sys.path if entry]
        hidden = [other.parent for other in others if other and other.resolve() != source.resolve()]
        owner = _owner(name)
        if hidden:
            sentences.append(f"{name} in {source.parent} hides {name} in {hidden[0]}")
        elif owner is not None and not _belongs(owner, source):
            sentences.append(
                f"{name} is imported from {source.parent}, not from the installed {name} {owner.version}"
            )
    return sentences


@cache  # a host computes it once for all its forks
def _library(name: str, source: Path) -> Library:
    place = "" if source.parent in _own_folders() else str(source.parent)
    owner = _owner(name)
    belongs = owner is not None and _belongs(owner, source)
    record = _record(owner) if owner is not None and belongs else []
    kept = [line for line in record if line[0] != "." and line[-1] != "," and ".dist-info/" not in line]
    version = owner.version if owner is not None and belongs else ""
    if not any(line.startswith(source.name) for line in kept):  # a folder, or an editable install
        files = sorted(source.rglob("*.py")) if source.is_dir() else [source]
        parts = [f"{file.relative_to(source.parent)}\0".encode() + file.read_bytes() for file in files]
        return Library(version, hashlib.sha256(b"".join(parts)).hexdigest()[:12], place=place)
    at = next((source.parent / line[:-2] for line in record if line.endswith("/RECORD,,")), source)
    edited = _edited(source, kept, at.stat())
    text = "\n".join((*kept, *edited.values()))
    return Library(version, hashlib.sha256(text.encode()).hexdigest()[:12], tuple(edited), place)


def _edited(source: Path, record: Iterable[str], written: os.stat_result) -> dict[str, str]:
    """Return path and digest of each Python file of ``source`` that differs from ``record`` or is not in it.

    Files are read where their size differs, or where they changed after the record, which pip writes last.
    ``os.utime`` and copies set the time of a file's content, but not that of its last change.
    """
    home = source.parent
    recorded: dict[str, tuple[str, int]] = {}
    for line in record:
        if ".py,sha256=" in line:
            path, kept, size = line.rsplit(",", 2)
            recorded[path] = kept, int(size)
    inside = {
        f"{folder}{os.sep}{name}".removeprefix(f"{home}{os.sep}").replace(os.sep, "/")
        for folder, _, names in os.walk(source)
        for name in names
        if name.endswith(".py")
    }
    edited = {}
    for path in (*recorded, *sorted(inside - recorded.keys())):
        expected, length = recorded.get(path, ("", -1))
        try:
            status = (home / path).stat()
            late = status.st_mtime_ns > written.st_mtime_ns or status.st_ctime_ns > written.st_ctime_ns
            if status.st_size == length and not late:
                continue
            digest = hashlib.sha256((home / path).read_bytes()).digest()
        except OSError:
            digest = b""
        actual = f"sha256={base64.urlsafe_b64encode(digest).decode().rstrip('=')}"
        if expected != actual:
            edited[path] = actual
    return edited


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
def _owner(name: str) -> metadata.Distribution | None:
    return next(iter(metadata.distributions(name=name)), None)


def _source(name: str, entry: str = "") -> Path | None:
    """Return the folder of a package or the file of a module, on the path or in its folder ``entry``."""
    try:
        spec = PathFinder.find_spec(name, [entry]) if entry else find_spec(name)
    except (ImportError, ValueError):  # a module without a specification
        return None
    if spec is None or not spec.has_location or spec.origin is None:
        return None
    return Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)


@cache
def _own_folders() -> frozenset[Path]:
    """Return the folders of the interpreter from which it imports."""
    paths = sysconfig.get_paths()
    named = [
        *site.getsitepackages(),
        *(paths[name] for name in ("purelib", "platlib", "stdlib")),
    ]
    return frozenset({Path(paths["stdlib"], "lib-dynload"), *map(Path, named)})


if __name__ == "__main__":
    copies = {name: library(name) for name in sys.argv[1:]}
    sys.stdout.write(json.dumps({name: copy.text for name, copy in copies.items() if copy}))
