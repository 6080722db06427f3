"""What options take that is more than a word: lists, times, amounts of memory, and pairs."""

from __future__ import annotations

import math
import re
from typing import Any

import click

from torchgauge.errors import UsageError


class CommaList(click.ParamType[tuple[str, ...]]):
    """``a,b,c`` as a tuple; ``optional``: an empty text is an input of a workflow that nobody filled in."""

    name = "LIST"

    def __init__(self, *, optional: bool = False) -> None:
        """Refuse a list of nothing, which would be one of all, unless it is ``optional``."""
        self.optional = optional

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...]:
        """Split at commas; white space around items is dropped."""
        if isinstance(value, tuple):
            return value
        if len(str(value)) > 2 and str(value)[0] == str(value)[-1] == "/":
            return (str(value),)  # one regular expression, whatever commas it holds
        found = tuple(item.strip() for item in str(value).split(",") if item.strip())
        if not found and not self.optional:
            self.fail(f"{value!r} is an empty list; leave the option out for its default", param, ctx)
        return found


THREADS = click.IntRange(1, 4096)
"""More than any machine has cores; torch ends the process that is asked for millions."""
LEAST_WORKER = 32 << 20
"""Bytes; a Python that has imported nothing of ours takes a third of it, and torch several times as much."""


class Seconds(click.ParamType[float]):
    """A duration such as ``90``, ``90s``, ``30m`` or ``1.5h`` in seconds."""

    name = "DURATION"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Read a positive number with or without a unit."""
        if isinstance(value, (int, float)):
            return float(value)
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", str(value).strip())
        if found is None or float(found[1]) <= 0:
            self.fail(f"{value!r} is not a duration; try: 90s, 30m or 1.5h", param, ctx)
        return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]]


def named(_context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """``value``, the name of one store or of several; an empty one would be the folder of now.

    Raises :class:`UsageError`; a shell makes it of a variable that is not set.
    """
    if "" in (value if isinstance(value, tuple) else (value,)):
        option = next((each for each in parameter.opts if each.startswith("--")), "")
        raise UsageError(f"{option or 'STORE'} is empty, but must be a folder", hint=f"{option} DIR".strip())
    return value


class FiniteRange(click.FloatRange):
    """A range of numbers, to which neither ``nan`` nor ``inf`` belongs."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Read a number that is one."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class Bytes(click.ParamType[int]):
    """An amount of memory such as ``4G``, ``512MiB`` or a number of bytes, in bytes; G is 1024^3."""

    name = "SIZE"

    def __init__(self, least: int) -> None:
        """Refuse less than ``least`` bytes."""
        self.least = least

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Read a positive number with or without a unit."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:iB|B)?", str(value).strip(), re.IGNORECASE)
        if found is None:
            self.fail(f"{value!r} is not an amount of memory; try: 4G, 512M or a number of bytes", param, ctx)
        size = int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))
        if size < self.least:
            self.fail(
                f"{value!r} is less than the {self.least >> 20} MiB that a worker needs; try: 4G or 512M",
                param,
                ctx,
            )
        return size


def moment_of(text: str) -> float | None:
    """A date, or days back such as ``90d``, in seconds since the epoch; None for what is neither."""
    from datetime import datetime, timezone

    from torchgauge.clock import DAY_S, SYSTEM_CLOCK

    if re.fullmatch("[0-9]{1,9}d?", text):
        return max(0.0, SYSTEM_CLOCK.now() - DAY_S * int(text.removesuffix("d")))
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).timestamp()


def since(_context: click.Context, _parameter: click.Parameter, value: str | None) -> float:
    """The option of that name where it is nothing but a time; 0 where it is not given."""
    found = moment_of(value) if value else 0.0
    if found is None:
        raise click.BadParameter(f"{value!r} is neither a date nor a number of days; try: 2026-08-01 or 90d")
    return found


def pairs(_context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE, each name once, as a dictionary."""
    found = [each.partition("=") for each in value]
    for name, sign, _ in found:
        if not (name and sign) or [each[0] for each in found].count(name) > 1:
            raise click.BadParameter("give each option once, as NAME=VALUE")
    return {name: text for name, _, text in found}
