"""What the installed torchao offers: configurations, optimizers and recipes, found in it. Worker side.

Runnable by path in any interpreter: standard library, torch and torchao only. Optimizers are the public ones
of its package, recipes those of its enum. Of configurations what is left out, is so by rule, never by name:

- what no handler of ``quantize_`` knows (the base of others, classes that are gone but for their name);
- what holds other configurations (a field of that type): it says how those are applied, and quantises
  nothing by itself;
- what has an argument without a default: nobody says what it would be;
- what lies in a package for training: its layers hold weights that are still trained.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import pkgutil
import re
import sys
import warnings
from collections.abc import Iterator
from enum import Enum
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

PACKAGE = "torchao"
STABLE, PROTOTYPE = "torchao.quantization", "torchao.prototype"
TRAINING = ("qat", "training")
"""Words in the name of a package that is for training."""
OPTIMIZERS, RECIPES = "torchao.optim", "torchao.float8.config"
COMPILED = "-inductor"
"""What follows the word for a recipe where the model that it made is compiled."""
PACKING = "packing"
"""Part of the name of a field that says how a weight is laid out: each value of its enum is a variant."""
NARROW = (("weight_dtype", "int4"), ("dtype", "uint4"))
"""Fields that choose a weight's bits, with the value that is tried beside the default."""
BITS = {"b": 4, "quant_min": -7.5, "quant_max": 7.5}
"""Fields that only a quantiser which was trained fills in, with those of one in 4 bits."""
_PARTS = re.compile(r"(?<=[A-Za-z])(?=[A-Z][a-z]|\d+bit)")
"""Where the name of an optimizer has its hyphens: ``AdamW-8bit``, ``Adam-Fp8``."""
_WORDS = re.compile(r"U?Int(?:[xN](?![a-z])|\d+)?|[A-Z]+\d+|[A-Z]+(?![a-z])|[A-Z][a-z]*\d*")


@dataclasses.dataclass(frozen=True)
class Offer:
    """A configuration of torchao by the word for it: a class and the arguments that make the variant."""

    word: str
    kind: type
    arguments: MappingProxyType[str, Any]

    @property
    def prototype(self) -> bool:
        """Whether torchao promises nothing of it."""
        return self.kind.__module__.startswith(PROTOTYPE)


def word_of(kind: type) -> str:
    """``int8-weight-only`` of ``Int8WeightOnlyConfig``."""
    return "-".join(_WORDS.findall(kind.__name__.removesuffix("Config"))).lower()


def optimizers() -> dict[str, type]:
    """The optimizers of torchao by word: ``adamw-8bit`` is ``AdamW8bit``."""
    from torch.optim import Optimizer

    return {
        _PARTS.sub("-", name.removesuffix("Optimizer")).lower(): each
        for name, each in vars(import_module(OPTIMIZERS)).items()
        if isinstance(each, type) and issubclass(each, Optimizer) and not name.startswith("_")
    }


def recipes() -> dict[str, Enum]:
    """The recipes of training in float8 by word: ``rowwise-with-gw-hp``."""
    return {_spelled(each): each for each in import_module(RECIPES).Float8LinearRecipeName}


def found(word: str) -> Offer | None:
    """The offer called ``word``; prototypes are imported only where nothing else has the name."""
    return _offers(STABLE).get(word) or _offers(STABLE, PROTOTYPE).get(word)


def offers() -> tuple[Offer, ...]:
    """All of them, stable ones first."""
    known = _offers(STABLE, PROTOTYPE).values()
    return tuple(sorted(known, key=lambda each: (each.prototype, each.word)))


@cache
def _offers(*packages: str) -> dict[str, Offer]:
    for name in packages:
        _import_all(name)
    base = import_module("torchao.core.config").AOBaseConfig
    handlers = import_module("torchao.quantization.transform_module")._QUANTIZE_CONFIG_HANDLER
    made: dict[str, Offer] = {}
    kinds: set[type] = set(_below(base))
    for kind in sorted(kinds, key=lambda each: (each.__module__, each.__name__)):
        if kind in handlers and kind.__module__.startswith(packages) and _by_itself(kind):
            for word, arguments in _variants(kind):
                free = word if word not in made else f"{word}-{_package(kind)}"  # two classes of one name
                made[free] = Offer(free, kind, MappingProxyType(arguments))
    return made


def _package(kind: type) -> str:
    return kind.__module__.split(".")[-2].replace("_", "-")


def _import_all(package: str) -> None:
    """Import everything below ``package`` that can be; what needs other packages is not offered here."""
    root = import_module(package)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for each in pkgutil.walk_packages(root.__path__, f"{package}.", onerror=lambda _: None):
            if not _is_script(each.name):
                with contextlib.suppress(Exception):
                    import_module(each.name)


def _is_script(name: str) -> bool:
    """Whether a module is a program or a test rather than a part of a library."""
    parts = name.split(".")
    return any(each.startswith(("test", "__main__")) or each in _PROGRAMS for each in parts)


_PROGRAMS = frozenset({"scripts", "benchmarks", "examples", "tutorials"})


def _below(base: type) -> Iterator[type]:
    below: list[type] = base.__subclasses__()
    for each in below:
        yield each
        yield from _below(each)


def _by_itself(kind: type) -> bool:
    return not (_for_training(kind) or _holds(kind) or any(_is_missing(each) for each in fields_of(kind)))


def _is_missing(argument: Any) -> bool:
    return argument.default is argument.default_factory is dataclasses.MISSING


def _for_training(kind: type) -> bool:
    words = re.split(r"[._]", kind.__module__)
    return any(each in words for each in TRAINING)


def _holds(kind: type) -> bool:
    """Whether a field of ``kind`` is another configuration, or a table of them."""
    said = [str(each.type) for each in fields_of(kind)]
    base = import_module("torchao.core.config").AOBaseConfig
    names = {"AOBaseConfig", *(each.__name__ for each in _below(base))}
    return any(name in names for text in said for name in re.findall(r"\w+", text))


def _variants(kind: type) -> Iterator[tuple[str, dict[str, Any]]]:
    """The word and arguments of ``kind`` as it is, in each packing, and in few bits where it has a choice."""
    import torch

    word = word_of(kind)
    unsaid = {each.name for each in fields_of(kind) if each.default is None}
    if unsaid >= BITS.keys():
        yield f"{word}-int4", dict(BITS)
        return
    yield word, {}
    chosen: Any
    each: Any
    for each in fields_of(kind):
        usual = each.default
        choices: Any = next((one for one in (each.type, type(usual)) if _is_enum(one)), ())
        for member in choices if PACKING in each.name else ():
            if member != usual:
                yield f"{word}-{_spelled(member)}", {each.name: member}
        for field, dtype in NARROW:
            if each.name == field and isinstance(usual, torch.dtype) and usual.is_floating_point is False:
                chosen = getattr(torch, dtype, None)
                if chosen is not None and chosen is not usual:
                    yield f"{word}-{dtype}", {field: chosen}


def fields_of(kind: type) -> tuple[Any, ...]:
    """The arguments of a configuration; some have none."""
    return dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()


def _is_enum(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def _spelled(member: Enum) -> str:
    return str(member.value).lower().replace("_", "-")


def version() -> str:
    """That of the installed torchao."""
    return metadata.version(PACKAGE)


def listing() -> dict[str, Any]:
    """What the parent is told; ``missing`` is the package without which there is nothing."""
    try:
        known = [("torchao", each.word, each.prototype) for each in offers()]
    except ModuleNotFoundError as error:
        return {"version": "", "missing": error.name or PACKAGE, "offers": []}
    with contextlib.suppress(ImportError, AttributeError):  # of another version
        known += [("optim", word, False) for word in optimizers()]
    with contextlib.suppress(ImportError, AttributeError):
        known += [("float8", f"{word}{form}", False) for word in recipes() for form in ("", COMPILED)]
    told = [{"backend": name, "word": word, "prototype": early} for name, word, early in known]
    return {"version": version(), "missing": "", "offers": told}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(listing()), encoding="utf-8")
