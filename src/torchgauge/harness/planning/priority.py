"""The priority of a group when there is no time for all, and the most valuable subset.

The value of a case is its tier times its need: never measured, or not lately, or ended otherwise than
expected. A further group of a family, or of a suite and mode, adds less than the one before. Groups are taken
by value for each expected second (greedy, which is right to a constant factor for gains that only diminish:
Khuller, Moss and Naor 1999), so what a run left out is worth more in the next. ``docs/method.md`` has
the rule in words.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torchgauge.clock import DAY_S
from torchgauge.harness.planning.forecast import Forecast
from torchgauge.records import Group
from torchgauge.results.durations import CaseHistory

TIER_WEIGHTS = {"smoke": 4.0, "standard": 2.0, "full": 1.0}
NEVER_MEASURED = 2.0
"""Need of a case that no run has measured; one that was measured a week ago or earlier has half of it."""
STALE_AFTER_S = 7 * DAY_S
LEAST_NEED = 1e-4
"""Need of a case that was measured a minute ago or later: runs that follow each other take turns, too."""
ENDED_BADLY = 1.0
"""What is added to the need of a case that ended otherwise than expected."""
LEAST_SECONDS = 0.5
"""A group costs at least this much: even one that is refused at once starts a process."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PREFIXES = frozenset({"hf", "timm"})
"""Words before a model's name that say from which library it is."""


@dataclass(frozen=True)
class Choice:
    """Groups by value, the most valuable first: those that are expected to fit, and those that are left.

    ``chosen_s`` is what those that fit are expected to take, in seconds.
    """

    chosen: tuple[Group, ...]
    left: tuple[Group, ...]
    chosen_s: float


@dataclass(frozen=True)
class Priority:
    """What decides the value of a group: tiers by suite and model, the history of cases by id, and the time.

    ``now`` is in seconds since the epoch.
    """

    tiers: Mapping[tuple[str, str], str]
    history: Mapping[str, CaseHistory] = field(default_factory=dict)
    now: float = 0.0

    def of_group(self, group: Group) -> float:
        """The value of ``group`` alone: the mean over its cases that are tried; 0 where none is."""
        tried = [planned.case for planned in group.cases if planned.declined is None]
        if not tried:
            return 0.0
        needs = [self.need(case.id) for case in tried]
        tier = self.tiers.get((group.workload.suite, group.workload.model), "full")
        return TIER_WEIGHTS.get(tier, 1.0) * sum(needs) / len(needs)

    def need(self, case: str) -> float:
        """How much a fresh result of ``case`` (an id) would tell."""
        past = self.history.get(case)
        if past is None:
            return NEVER_MEASURED
        stale = min(1.0, max(0.0, self.now - past.at) / STALE_AFTER_S)
        return max(LEAST_NEED, stale * (NEVER_MEASURED / 2 + (ENDED_BADLY if past.unexpected else 0.0)))


def family(model: str) -> str:
    """The first word of a model's name, which models of one architecture mostly share.

    ``resnet50`` and ``hf_Bert_large`` give ``resnet`` and ``bert``, ``BertForMaskedLM`` gives ``bert``.
    """
    words = [word.lower() for word in _WORD.findall(model)]
    named = [word for word in words if word not in _PREFIXES] or words
    return named[0] if named else model


def choose(groups: Sequence[Group], priority: Priority, forecast: Forecast, seconds: float) -> Choice:
    """``groups`` of one device by falling value for each second, cut where ``seconds`` are used up.

    One that does not fit is left, and the next one is tried. The first that takes any time is chosen whatever
    it takes, so that a run with any budget gets on; groups of which nothing is tried take none and come
    first. Equal input gives equal choices.
    """
    cost = [forecast.of_group(group) for group in groups]
    alone = [priority.of_group(group) for group in groups]
    families: Counter[tuple[str, ...]] = Counter()
    suites: Counter[tuple[str, ...]] = Counter()

    def gain(number: int) -> float:
        """Value for each second beside what is chosen already; it never grows."""
        work = groups[number].workload
        again = 1 + families[work.suite, family(work.model), work.mode]
        crowd = math.sqrt(1 + suites[work.suite, work.mode, work.dtype])
        return alone[number] / max(cost[number], LEAST_SECONDS) / again / crowd

    chosen = [number for number, value in enumerate(alone) if value == 0]
    left: list[int] = []
    spent, started = 0.0, False
    heap = [(-gain(number), number) for number, value in enumerate(alone) if value > 0]
    heapq.heapify(heap)
    while heap:
        said, number = heapq.heappop(heap)
        if (now := -gain(number)) > said:  # it has lost since it was put there: it waits for its turn
            heapq.heappush(heap, (now, number))
            continue
        if started and spent + cost[number] > seconds:
            left.append(number)
            continue
        started = True
        spent += cost[number]
        chosen.append(number)
        work = groups[number].workload
        families[work.suite, family(work.model), work.mode] += 1
        suites[work.suite, work.mode, work.dtype] += 1
    return Choice(tuple(groups[number] for number in chosen), tuple(groups[number] for number in left), spent)
