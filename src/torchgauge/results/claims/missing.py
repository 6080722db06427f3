"""The commands that measure what a claim lacks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from torchgauge.records import INCOMPLETE
from torchgauge.results.claims.answer import Where
from torchgauge.results.claims.claim import MEASURES, Claim, Side
from torchgauge.results.claims.member import MISSING, Member, MemberState
from torchgauge.results.claims.stored import EAGER

MOST_NAMED = 30
"""Models that a command names; where more are missing it asks for the whole tier."""
_PLAIN = re.compile(r"[\w.+-]+/[\w.+-]+")


def commands_for(
    members: Sequence[Member], claim: Claim, where: Sequence[Where], size: str, store: str
) -> tuple[str, ...]:
    """One command per side that has to be measured; none where nothing is missing.

    ``members`` are those that a suite lists. Only names that a selection can hold are in a command. Models
    that failed or were refused are not missing, and neither are those that passed without the number; those
    whose number is in doubt are.
    """
    missing = [member for member in members if _is_missing(member)]
    sides = claim.question.sides
    if sides is None:
        return (shlex.join(_words(missing, claim, where[0], size, store)),) if missing else ()
    found = []
    for name, side, place in zip(("base", "head"), sides, where, strict=True):
        here = [member for member in missing if member.missing_side in ("", name)]
        if here:
            found.append(_of_side(_words(here, claim, place, size, store), side, place))
    return tuple(dict.fromkeys(found))


def _is_missing(member: Member) -> bool:
    says_nothing = member.status is None or member.status in INCOMPLETE or bool(member.missing_side)
    lacks = says_nothing if member.state is MemberState.NOT_MEASURED else member.state in MISSING
    return lacks and _PLAIN.fullmatch(member.name) is not None


def _of_side(words: list[str], side: Side, place: Where) -> str:
    """The command for one side: with which interpreter, and on which machine."""
    version = place.torch[0] if place.torch else side.torch
    if side.torch:
        words = [*words, "--python", f"PYTHON_WITH_TORCH_{version.upper()}"]
    on = [
        f"{key} {value}" for key, value in side.given.items() if key in ("system", "machine", "environment")
    ]
    return shlex.join(words) + (f"   # on {', '.join(on)}" if on else "")


def _words(missing: Sequence[Member], claim: Claim, place: Where, size: str, store: str) -> list[str]:
    select = claim.select
    suites = list(dict.fromkeys(member.suite for member in missing))
    words = ["torchgauge", "run", *suites, "--device", _plain(place.device)]
    words += ["--mode", select.mode, "--dtype", select.dtype, "--config", _configurations(claim, place)]
    if size and size != "small":
        words += ["--size", size]
    if len(missing) <= MOST_NAMED:
        words += ["--models", ",".join(member.name for member in missing)]
    elif select.models:
        words += ["--models", ",".join(select.models)]
    else:
        words += ["--tier", select.tier]
    return [*words, "--store", store]


def _plain(name: str) -> str:
    """A device as the command line takes it; a placeholder where none is known."""
    return "DEVICE" if not name or any(sign in name for sign in "*?, ") else name


def _configurations(claim: Claim, place: Where) -> str:
    """The configuration, with eager beside it where the measure is taken against it."""
    question = claim.question
    names = place.configuration or claim.select.configurations[0]
    needs_eager = question.measure == "speedup" or (
        bool(question.measure) and MEASURES[question.measure].against_eager
    )
    first = [EAGER] if needs_eager and names != EAGER else []
    return ",".join([*first, names.replace(" ", "")])
