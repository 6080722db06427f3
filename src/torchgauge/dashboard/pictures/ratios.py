"""Ratios as they are drawn: each with its interval, and what has none with the reason."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from torchgauge.dashboard.pages import geomean
from torchgauge.dashboard.pages.number_text import TIMES, digits
from torchgauge.dashboard.statuses import LOOKS
from torchgauge.records import Status, Workload


class Tone(Enum):
    """What may be said of a ratio: its interval leaves 1 out on the good side, on the bad, or does not."""

    BETTER = "b"
    WORSE = "w"
    OPEN = "u"


class Edge(Enum):
    """On which side of the axis stands what has no ratio; nowhere where both sides lack it."""

    LEFT = "left"
    RIGHT = "right"
    NOWHERE = ""


@dataclass(frozen=True)
class Ratio:
    """One ratio with the ends of its interval; ``label`` is what the picture calls ``name``.

    ``sides`` are the numbers that it is made of, as text, ``beside`` what is said next to it and ``href``
    where it leads, from the root. What is not ``sure`` is drawn hollow.
    """

    name: str
    ratio: float
    low: float
    high: float
    tone: Tone
    sides: tuple[str, ...] = ()
    beside: str = ""
    href: str = ""
    label: str = ""
    sure: bool = True


@dataclass(frozen=True)
class Lack:
    """A name without a ratio: ``code`` says why in a word, ``css`` is its colour."""

    name: str
    edge: Edge
    code: str
    css: str = "lack"
    sides: tuple[str, ...] = ()
    href: str = ""
    label: str = ""


@dataclass(frozen=True)
class RatioGroup:
    """Ratios under one caption, least first; ``mean`` is their geometric mean with its interval."""

    caption: str
    ratios: tuple[Ratio, ...]
    lacks: tuple[Lack, ...] = ()
    mean: tuple[float, float, float] | None = None

    def count(self, tone: Tone) -> int:
        """How many ratios are of ``tone``."""
        return sum(each.tone is tone for each in self.ratios)

    @property
    def lacking(self) -> str:
        """Why names have no ratio, such as ``3 err, 2 unsteady``."""
        return why_lacking(self.lacks)


def why_lacking(lacks: Iterable[Lack]) -> str:
    """Why names have no ratio, such as ``3 err, 2 unsteady``."""
    return ", ".join(f"{count} {code}" for code, count in Counter(each.code for each in lacks).most_common())


@dataclass(frozen=True)
class RatioChart:
    """All that is drawn on one axis: ``better`` is its right end, above 1.

    ``columns`` are heads of the table: of the name and of the sides. ``footer`` says of when it is.
    ``ends`` is how many names of each end of a group are written; those between are drawn close together.
    With ``lacks_in_words`` what has no ratio is counted and not written name by name.
    """

    title: str
    columns: tuple[str, ...]
    groups: tuple[RatioGroup, ...]
    footer: str
    says: str = ""
    worse: str = "slower"
    better: str = "faster"
    gain: str = "speed-up"
    ends: int = 12
    lacks_in_words: bool = False

    def text(self, ratio: float) -> str:
        """A ratio as it is written."""
        return f"{digits(ratio, None)}{TIMES}"

    def interval(self, low: float, high: float) -> str:
        """Both ends of an interval as they are written."""
        return f"[{self.text(low)}, {self.text(high)}]".replace(TIMES, "")

    def mean_text(self, group: RatioGroup) -> str:
        """The mean with its interval; empty where there is none."""
        if group.mean is None:
            return ""
        return f"{self.text(group.mean[0])} {self.interval(*group.mean[1:])}"


def labels_of(workloads: Sequence[Workload]) -> dict[str, str]:
    """What each workload is called in a picture, by its name: no more than tells them apart."""
    found: dict[str, str] = {workload.name: workload.name for workload in workloads}
    for short in reversed(_SHORT):
        counts = Counter(short(workload) for workload in workloads)
        found |= {each.name: short(each) for each in workloads if counts[short(each)] == 1}
    return found


_SHORT: tuple[Callable[[Workload], str], ...] = (
    lambda workload: workload.model,
    lambda workload: f"{workload.model} {workload.mode}",
    lambda workload: f"{workload.suite}/{workload.model} {workload.mode}",
)


def tone_of(low: float, high: float) -> Tone:
    """By the interval of a ratio alone."""
    return Tone.OPEN if low <= 1 <= high else Tone.BETTER if low > 1 else Tone.WORSE


def lack_of(name: str, edge: Edge, status: Status) -> Lack:
    """What ended otherwise than with a pass."""
    look = LOOKS[status]
    return Lack(name, edge, look.code, look.css)


def group_of(caption: str, found: Iterable[Ratio | Lack]) -> RatioGroup:
    """Return what was ``found``, least first, with the mean of the ratios if there are three or more."""
    both = list(found)
    ratios = sorted(
        (each for each in both if isinstance(each, Ratio)), key=lambda each: (each.ratio, each.name)
    )
    lacks = tuple(each for each in both if isinstance(each, Lack))
    found_mean = geomean.mean_of([each.ratio for each in ratios])
    mean = None
    if found_mean is not None and found_mean.low and found_mean.high and math.isfinite(found_mean.high):
        mean = found_mean.estimate, found_mean.low, found_mean.high
    return RatioGroup(caption, tuple(ratios), lacks, mean)


def counts_text(group: RatioGroup, better: str, worse: str) -> str:
    """How many are better, worse and neither, such as ``23 faster, 4 slower, 7 undecided``."""
    parts = (
        (group.count(Tone.BETTER), better),
        (group.count(Tone.WORSE), worse),
        (group.count(Tone.OPEN), "undecided"),
        (len(group.lacks), "without a ratio"),
    )
    return ", ".join(f"{count} {word}" for count, word in parts if count)
