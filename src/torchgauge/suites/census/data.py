"""The kept census: one compressed file per set of package versions. Standard library only.

A file is JSON under gzip. Operators are written once, as a table; a model holds places in that table, as
differences between neighbours. Equal recordings give equal bytes: everything is sorted and nothing in a
file knows the hour.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from torchgauge.errors import InfrastructureError
from torchgauge.suites.census.record import ModelCensus

FOLDER = Path(__file__).with_name("data")
SUFFIX = ".json.gz"
FORMAT = 1
Pair = tuple[str, str]


@dataclass(frozen=True)
class CensusData:
    """A whole recording.

    ``versions`` maps packages to the versions that were recorded, without local parts such as ``+cpu``.
    ``opinfo`` maps an aten operator with its overload to the names of the entries of PyTorch's operator
    database whose samples dispatch it: those whose verdicts are evidence for the operator. ``parts`` maps an
    operator that PyTorch can make of others to those others, as they were seen: what a backend without a
    kernel for it needs instead.
    """

    versions: Mapping[str, str]
    models: tuple[ModelCensus, ...]
    opinfo: Mapping[str, frozenset[str]] = field(default_factory=dict)
    parts: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The versions as one word, which names the file."""
        return "_".join(f"{package}-{version}" for package, version in sorted(self.versions.items()))

    def of(
        self, suite: str, model: str, mode: str, path: str, dtype: str | None = None
    ) -> ModelCensus | None:
        """The census of one model; without ``dtype`` that of the first dtype, ``float32`` before others."""
        found = [
            each
            for each in self.models
            if (each.suite, each.model, each.mode, each.path) == (suite, model, mode, path)
            and dtype in (None, each.dtype)
        ]
        return min(found, key=lambda each: (each.dtype != "float32", each.dtype), default=None)

    def differing(self, installed: Mapping[str, str]) -> dict[str, tuple[str, str]]:
        """Packages of which ``installed`` has another version: the recorded one, and the installed or ""."""
        pairs = {name: (version, plain(installed.get(name, ""))) for name, version in self.versions.items()}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def load(path: Path | None = None, installed: Mapping[str, str] | None = None) -> CensusData:
    """The census in ``path``; without one, of those that ship, the one nearest to what is ``installed``.

    ``installed`` is by default what this interpreter has. Raises :class:`InfrastructureError` where there is
    no census, or a file that is none.
    """
    if path is not None:
        return read(path)
    kept = [read(each) for each in sorted(FOLDER.glob(f"*{SUFFIX}"))]
    if not kept:
        raise InfrastructureError(f"{FOLDER} contains no census", hint="torchgauge ops census --record")
    return min(kept, key=lambda data: len(data.differing(installed or installed_versions(data.versions))))


def kept_packages() -> tuple[str, ...]:
    """The packages whose versions the census files that ship are of, as their names say."""
    parts = (part for each in FOLDER.glob(f"*{SUFFIX}") for part in each.name.split("_"))
    return tuple(sorted({part.partition("-")[0] for part in parts}))


def read(path: Path) -> CensusData:
    """The census in ``path``; raises :class:`InfrastructureError`."""
    try:
        return _from_document(json.loads(gzip.decompress(path.read_bytes())))
    except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError) as error:
        raise InfrastructureError(
            f"{path} is not a census: {error or type(error).__name__}",
            hint="torchgauge ops census --record --out FILE writes one",
        ) from error


def to_bytes(data: CensusData) -> bytes:
    """``data`` as a file holds it; the same bytes for the same census."""
    table = sorted({p for each in data.models for p in (*each.operators, *each.received)})
    place = {pair: number for number, pair in enumerate(table)}
    words = sorted(
        {name for kind in (data.opinfo, data.parts) for names in kind.values() for name in names}
        | {*data.opinfo, *data.parts}
    )
    word = {name: number for number, name in enumerate(words)}

    def shorten(mapping: Mapping[str, frozenset[str]]) -> list[list[int]]:
        return [[word[name], *_steps(word[each] for each in mapping[name])] for name in sorted(mapping)]

    document = {
        "format": FORMAT,
        "versions": dict(sorted(data.versions.items())),
        "table": table,
        "models": [
            [
                each.suite,
                each.model,
                each.mode,
                each.dtype,
                each.path,
                each.problem,
                each.recorded_on,
                _steps(place[pair] for pair in each.operators),
                _steps(place[pair] for pair in each.received),
            ]
            for each in sorted(data.models, key=_order)
        ],
        "words": words,
        "opinfo": shorten(data.opinfo),
        "parts": shorten(data.parts),
    }
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=True)
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of ``packages`` in this interpreter, without local parts; what is not installed is absent."""
    found = {}
    for package in packages:
        try:
            found[package] = plain(metadata.version(package))
        except metadata.PackageNotFoundError:
            continue
    return found


def plain(version: str) -> str:
    """``2.13.0`` of ``2.13.0+cpu``: the builds of one version dispatch alike."""
    return version.partition("+")[0]


def _from_document(document: dict[str, Any]) -> CensusData:
    if document["format"] != FORMAT:
        raise ValueError(f"its format is {document['format']}, not {FORMAT}")
    table: list[Pair] = [(name, dtype) for name, dtype in document["table"]]
    words: list[str] = document["words"]

    def lengthen(rows: list[list[int]]) -> dict[str, frozenset[str]]:
        return {words[name]: frozenset(words[each] for each in _places(steps)) for name, *steps in rows}

    models = tuple(
        ModelCensus(
            suite=suite,
            model=model,
            mode=mode,
            dtype=dtype,
            path=path,
            problem=problem,
            recorded_on=recorded_on,
            operators=frozenset(table[number] for number in _places(operators)),
            received=frozenset(table[number] for number in _places(received)),
        )
        for suite, model, mode, dtype, path, problem, recorded_on, operators, received in document["models"]
    )
    return CensusData(document["versions"], models, lengthen(document["opinfo"]), lengthen(document["parts"]))


def _order(each: ModelCensus) -> tuple[str, ...]:
    return (each.suite, each.model, each.mode, each.dtype, each.path)


def _steps(places: Iterable[int]) -> list[int]:
    """Places in ascending order, each as its distance from the one before."""
    ordered = sorted(places)
    return [here - before for before, here in zip([0, *ordered], ordered, strict=False)]


def _places(steps: Iterable[int]) -> list[int]:
    found, at = [], 0
    for step in steps:
        at += step
        found.append(at)
    return found
