"""What a person selected: suites, model patterns, modes, configurations, dtypes; and case ids read back."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.records import RANDOM_WEIGHTS, Shape
from torchgauge.suites.own.library import is_library, library_suite
from torchgauge.suites.own.suite import is_own, resolve
from torchgauge.suites.suite import ModelEntry

TIERS = ("smoke", "standard", "full")
"""Each tier holds the ones before it."""
DTYPES = ("float32", "bfloat16", "float16", "amp_bfloat16", "amp_float16")
DEFAULT_MODES = ("inference",)
DEFAULT_CONFIGURATIONS = ("eager", "inductor")
DEFAULT_DTYPES = ("float32",)
DTYPE_ALIASES = {"amp": "amp_bfloat16"}
"""A bare ``amp`` would mean another dtype on each device; what a row says is always explicit."""
_WILD = re.compile(r"[*?\[]")
_CASE_ID = re.compile(
    r"(?P<suite>[^/:@]+)/(?P<model>[^:@\[]+):(?P<mode>[^:]+):(?P<dtype>[^:]+):b(?P<batch>\d+)"
    r":(?P<configuration>[^:@\[]+)@(?P<device>[^\[]+)(?:\[(?P<fields>[^\]]*)\])?"
)


@dataclass(frozen=True)
class Selection:
    """A selection of cases; ``models`` are names, globs or ``/regex/``, empty for the whole tier.

    ``batch`` replaces that of every model, whatever its profile says. ``processes`` replaces that size where
    a model has it, so that several processes compute it.
    Empty ``modes``, ``configurations`` and ``dtypes`` stand for what each entry says, else for the defaults.
    """

    suites: tuple[str, ...]
    devices: tuple[str, ...]
    models: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    tier: str = "smoke"
    size: str = "small"
    batch: int | None = None
    batch_profile: str | None = None
    weights: str = RANDOM_WEIGHTS
    configuration_file: str | None = None
    shard: str = "1/1"
    processes: int | None = None


@dataclass(frozen=True)
class CaseName:
    """The parts of a case id; ``shape`` and ``seed`` come from its bracketed fields."""

    suite: str
    model: str
    mode: str
    dtype: str
    batch: int
    configuration: str
    device: str
    size: str = "small"
    seed: int | None = None
    weights: str = RANDOM_WEIGHTS
    shape: Shape = ()


def suites_and_models(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return suites and patterns of words: ``suite``, ``suite/model``, ``file.py::function``, ``hf:name``.

    The suite of a file is its path. Beside models, a whole suite is the pattern ``suite/``: its tier. Raises
    :class:`UsageError` for a file that is missing.
    """
    suites: list[str] = []
    models: list[str] = []
    whole: list[str] = []
    for word in words:
        if is_library(word):
            library, model = library_suite(word)
            suites.append(word)
            models.append(f"{library.name}/{model}")
            continue
        if is_own(word):
            own, model = resolve(word)
            suites.append(str(own.file))
            (models if model else whole).append(f"{own.name}/{model or '*'}")
            continue
        suite, slash, _ = word.partition("/")
        suites.append(suite)
        (models if slash else whole).append(word if slash else f"{suite}/")
    return tuple(dict.fromkeys(suites)), (*models, *(whole if models else ()))


def parse_case_id(text: str) -> CaseName:
    """The parts of ``text``; raises :class:`UsageError` where it is no case id."""
    found = _CASE_ID.fullmatch(text)
    if found is None:
        raise UsageError(
            f"{text!r} is not a case id",
            hint="suite/model:mode:dtype:bN:config@device[field=value], as `results show` prints it",
        )
    size, weights, seed = "small", RANDOM_WEIGHTS, None
    shape: list[tuple[str, int | str]] = []
    for item in filter(None, (found["fields"] or "").split(",")):
        key, _, value = item.partition("=")
        if key == "size":
            size = value
        elif key == "weights":
            weights = value
        elif number := re.fullmatch(r"-?[0-9]+", value):
            if key == "seed":
                seed = int(number[0])
            else:
                shape.append((key, int(number[0])))
        elif key == "seed" or not (key and value):
            raise UsageError(f"{text!r}: field {item!r} is not a number", hint="write it as name=number")
        else:
            shape.append((key, value))
    parts = ("suite", "model", "mode", "dtype")
    names = {part: found[part] for part in parts}
    return CaseName(
        **names,
        batch=int(found["batch"]),
        configuration=found["configuration"],
        device=found["device"],
        size=size,
        seed=seed,
        weights=weights,
        shape=tuple(sorted(shape)),
    )


def select_models(
    suite: str, entries: Sequence[ModelEntry], patterns: Sequence[str], tier: str
) -> list[ModelEntry]:
    """Return the entries that match any pattern; without patterns, or with ``suite/``, those of the ``tier``.

    Raises :class:`UnknownNameError` for a plain name that the suite does not have.
    """
    chosen = chooser(patterns)
    tiers = TIERS[: TIERS.index(tier) + 1] if not patterns or f"{suite}/" in patterns else ()
    return [entry for entry in entries if set(entry.tiers) & set(tiers) or chosen(f"{suite}/{entry.name}")]


def chooser(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether any of ``patterns`` matches a name that is written ``suite/model``."""
    matchers = [_matcher(pattern) for pattern in patterns]
    return lambda name: any(matcher(name) for matcher in matchers)


def check_plain_names(known: dict[str, Sequence[ModelEntry]], patterns: Sequence[str]) -> None:
    """Raise :class:`UnknownNameError` for a pattern without wildcards that names no model of ``known``."""
    names = {entry.name for entries in known.values() for entry in entries}
    full = {f"{suite}/{entry.name}" for suite, entries in known.items() for entry in entries}
    full |= {f"{suite}/" for suite in known}
    for pattern in patterns:
        if not is_wild(pattern) and pattern not in names and pattern not in full:
            suites = ", ".join(sorted(known))
            raise UnknownNameError(
                "model", pattern, names, hint=f"torchgauge suites show NAME lists the models of {suites}"
            )


def is_wild(pattern: str) -> bool:
    """Whether ``pattern`` is a glob or a ``/regex/`` and not a plain name."""
    return bool(_WILD.search(pattern)) or (len(pattern) > 2 and pattern[0] == pattern[-1] == "/")


def parse_shard(text: str) -> tuple[int, int]:
    """``(i, n)`` of ``"i/n"``; raises :class:`UsageError` unless 1 <= i <= n."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"{text!r} is not a shard", hint="for example --shard 2/4")
    return int(found[1]), int(found[2])


def _matcher(pattern: str):  # type: ignore[no-untyped-def]
    if len(pattern) > 2 and pattern[0] == pattern[-1] == "/":
        try:
            expression = re.compile(pattern[1:-1])
        except re.error as error:
            raise UsageError(
                f"{pattern!r} is not a regular expression: {error}", hint="fix the pattern"
            ) from error
        return lambda name: bool(expression.search(name))
    glob = pattern if "/" in pattern else f"*/{pattern}"
    return lambda name: fnmatch.fnmatchcase(name, glob) or name.partition("/")[2] == pattern
