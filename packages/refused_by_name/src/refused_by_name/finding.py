"""One place where a source looks at the name of a device, and what follows for one that it does not name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Effect(str, Enum):
    """What becomes of a device that is not named."""

    RAISES = "raises"
    OTHER_PATH = "another path"
    OPTIMISATION = "only an optimisation"


@dataclass(frozen=True)
class Refusal:
    """``test`` in ``file`` at ``line``, within ``function``: ``names`` are devices that it treats otherwise.

    ``says`` is the message of what is raised, as the source has it; empty where nothing is.
    """

    file: str
    line: int
    function: str
    test: str
    names: tuple[str, ...]
    effect: Effect
    says: str = ""


@dataclass(frozen=True)
class Scanned:
    """All of one package in one version: refusals by file and line, and files that could not be read."""

    package: str
    version: str
    files: int
    refusals: tuple[Refusal, ...]
    unread: tuple[str, ...] = ()

    def of(self, effect: Effect) -> Sequence[Refusal]:
        """Those with one effect."""
        return [each for each in self.refusals if each.effect is effect]
