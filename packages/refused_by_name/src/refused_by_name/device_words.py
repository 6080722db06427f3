"""Which words are the type of a device, from ``device_names.ini``, and a word that nobody has heard of."""

from __future__ import annotations

import configparser
import re
from functools import cache
from importlib import resources

NEWCOMER = "newcomer"
"""The type of the device that is asked about: a registered one whose name no source mentions."""
_INDEX = re.compile(r"(:\d+|:)$")


@cache
def _sections() -> dict[str, frozenset[str]]:
    parser = configparser.ConfigParser(allow_no_value=True, delimiters=("=",))
    parser.read_string(resources.files("refused_by_name").joinpath("device_names.ini").read_text("utf-8"))
    return {name: frozenset(parser[name]) for name in parser.sections()}


def accelerators() -> frozenset[str]:
    """Types of devices beside the host's."""
    return _sections()["accelerators"]


def all_names() -> frozenset[str]:
    """Types of all devices."""
    return frozenset().union(*_sections().values())


def device_name(value: object) -> str:
    """The type that a literal such as ``"xyz:0"`` names; empty where it names none."""
    if not isinstance(value, str):
        return ""
    word = _INDEX.sub("", value).lower()
    return word if word in all_names() else ""


@cache
def names_within(word: str) -> frozenset[str]:
    """The types that stand in ``word`` as a part of it, such as in the name of a decorator."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", word)
    return all_names() & {part.lower() for part in parts}
