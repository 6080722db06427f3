"""Suites, configurations, dtypes and file names: ours and those of PyTorch's runners.

Upstream's nightly dashboard names a file
``{backend}_{variant}_{suite}_{dtype}_{mode}_{device}_{accuracy|performance}.csv``; its expected files are
``{anything}_{suite}_{inference|training}.csv``, and those that we write begin with device, configuration and
dtype. Models have the same names on both sides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from torchgauge.records import AUTOCAST, Configuration, DeviceTarget
from torchgauge.results.hostile_text import plain_name
from torchgauge.suites.document import read_document
from torchgauge.suites.schema import convert

BUNDLED = Path(__file__).parent / "data" / "upstream.yaml"
AMP = "amp"
MODES = {"eval": "inference", "train": "training", "inference": "inference", "training": "training"}
"""Modes by the names that any of upstream's runners uses."""

_SUITE = r"(?P<suite>(?!models_)[a-z0-9-]+(?:_models)?)"
_DTYPE = r"(?P<dtype>amp_bfloat16|amp_float16|amp|float32|bfloat16|float16)"
_MODE = r"(?P<mode>inference|training)"
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"(?P<configuration>.+?)_{_SUITE}_{_DTYPE}_{_MODE}_(?P<device>.+)_(?:accuracy|performance)",
        rf"(?P<device>[^_]+)_(?P<configuration>.+?)_{_DTYPE}_{_SUITE}_{_MODE}",
        rf"(?:.*_)?{_SUITE}_{_MODE}",
        r"(?:accuracy|speedup)_(?P<configuration>.+)",
    )
)


class UpstreamNames(msgspec.Struct, forbid_unknown_fields=True):
    """The bundled data file."""

    suites: dict[str, str]
    configurations: dict[str, str]
    autocast: dict[str, str]
    other_autocast: str


@dataclass(frozen=True)
class Context:
    """What a file leaves to its name or to the person who imports it; an empty field is not known."""

    suite: str = ""
    mode: str = ""
    dtype: str = ""
    device: str = ""
    configuration: str = ""

    def over(self, other: Context) -> Context:
        """This context, and ``other``'s fields where this one is empty."""
        return Context(*(mine or theirs for mine, theirs in zip(_values(self), _values(other), strict=True)))


def _values(context: Context) -> tuple[str, ...]:
    return (context.suite, context.mode, context.dtype, context.device, context.configuration)


def context_of_name(name: str) -> Context:
    """What the file name ``name`` says, in our words."""
    stem = name.rpartition(".")[0] or name
    found = next((match.groupdict() for form in _FORMS if (match := form.fullmatch(stem))), {})
    return Context(
        our_suite(found.get("suite", "")),
        found.get("mode", ""),
        found.get("dtype", ""),
        found.get("device", ""),
        our_configuration(found.get("configuration", "")),
    )


def file_name(context: Context, kind: str) -> str:
    """Upstream's name of a file of ``kind``: ``accuracy``, ``performance``, or empty for an expected file."""
    configuration = _names().configurations.get(context.configuration, context.configuration)
    suite, dtype = upstream_suite(context.suite), upstream_dtype(context.dtype, context.device)
    if not kind:
        return f"{plain_name(f'{context.device}_{configuration}_{dtype}_{suite}_{context.mode}')}.csv"
    return f"{plain_name(f'{configuration}_{suite}_{dtype}_{context.mode}_{context.device}_{kind}')}.csv"


def our_suite(name: str) -> str:
    """Our suite for upstream's."""
    return {theirs: ours for ours, theirs in _names().suites.items()}.get(name, name)


def upstream_suite(name: str) -> str:
    """Upstream's suite for ours."""
    return _names().suites.get(name, name)


def our_configuration(name: str) -> str:
    """Our configuration for upstream's backend and variant."""
    return {theirs: ours for ours, theirs in _names().configurations.items()}.get(name, name)


def our_dtype(name: str, device: str) -> str:
    """``name`` with ``amp`` made precise: the dtype that autocast takes on ``device``."""
    return _autocast(device) if name == AMP else name


def upstream_dtype(name: str, device: str) -> str:
    """``amp`` where that is what it means on ``device``."""
    return AMP if name.startswith(AUTOCAST) and name == _autocast(device) else name


def execution(name: str, known: dict[str, Configuration]) -> Configuration:
    """The configuration called ``name``: ours where we know it, else upstream's, with its backend."""
    if name in known:
        return known[name]
    compilers = sorted((each for each in known if name.startswith(f"{each}_")), key=len)
    return Configuration(name, compilers[-1] if compilers else name)


def target(device: str) -> DeviceTarget:
    """The device that ``name`` or ``name.index`` means."""
    name, dot, index = device.rpartition(".")
    return (
        DeviceTarget(name, int(index))
        if dot and index.isascii() and index.isdigit()
        else DeviceTarget(device)
    )


def _autocast(device: str) -> str:
    names = _names()
    return names.autocast.get(device, names.other_autocast)


@cache
def _names() -> UpstreamNames:
    return convert(read_document(BUNDLED), UpstreamNames)
