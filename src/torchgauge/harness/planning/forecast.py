"""How long a group will probably take: from recorded durations of its cases, else from cases like them.

Sizing of shards, the order of a run and what fits into a budget all ask here, so that they agree. The answer
is a function of what is given and of nothing else: two machines with the same durations forecast the same.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from torchgauge.errors import UsageError
from torchgauge.harness.planning.selection import parse_case_id
from torchgauge.records import Case, Group, PlannedCase
from torchgauge.suites.suite import Suite

NEAREST = 5
"""Recorded cases of one suite, mode, configuration and size that stand for one that never ran."""
LIKE_FACTOR = 1.25
"""A case that never ran is taken for a little longer than those like it: better early than late.

On 259 recorded cases of two suites on a processor, each left out in turn, the median of the five nearest in
parameters is off by a factor of 1.2 to 1.8 and a little low; twice the median of the suite is off by 2."""
UNKNOWN_FACTOR = 2.0
"""The same where only other modes or suites are recorded."""
UNKNOWN_S = 30.0
"""Seconds of a case where nothing at all is recorded."""
UNKNOWN_CHECK_S = 1.0
"""The same for a check, which times nothing."""
STARTUP_S = 20.0
"""Seconds before the first group where no run says: the host imports torch, the machine is calibrated."""
CLOSING_S = 10.0
"""Seconds after the last group: the machine is calibrated again, the tables are written."""

Kind = tuple[str, str, str, str]
"""Suite, mode, configuration and size."""


@dataclass(frozen=True)
class Forecast:
    """Expected seconds; ``recorded`` maps case ids to what they usually take.

    ``parameters`` counts those of a model by suite and model, as far as the catalogue says. ``wall_ratio`` is
    the wall time of a run for each second that its rows say, ``startup_s`` passes before its first group.
    """

    recorded: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[tuple[str, str], int] = field(default_factory=dict)
    wall_ratio: float = 1.0
    startup_s: float = STARTUP_S
    source: str = ""

    def of_group(self, group: Group) -> float:
        """Wall seconds of ``group``; cases that are not even tried take none."""
        return self.wall_ratio * sum(self.of_planned(planned, group.checks) for planned in group.cases)

    def of_planned(self, planned: PlannedCase, check: bool = False) -> float:
        """Seconds that the row of ``planned`` will say; none where it is not even tried."""
        if planned.declined is not None:
            return self.recorded.get(planned.case.id, 0.0)
        return self.of_case(planned.case, check)

    def of_case(self, case: Case, check: bool = False) -> float:
        """Seconds of ``case``: as recorded, else as those like it took."""
        known = self.recorded.get(case.id)
        if known is not None:
            return known
        work = case.workload
        kind = (work.suite, work.mode, case.configuration.name, work.size)
        key = (kind, self.parameters.get((work.suite, work.model)))
        if key not in self._guesses:
            guess = self._guess(*key)
            self._guesses[key] = (UNKNOWN_CHECK_S if check else UNKNOWN_S) if guess is None else guess
        return self._guesses[key]

    def knows(self, group: Group) -> bool:
        """Whether the duration of every case of ``group`` that is tried is recorded."""
        return all(
            planned.declined is not None or planned.case.id in self.recorded for planned in group.cases
        )

    @cached_property
    def _guesses(self) -> dict[tuple[Kind, int | None], float]:
        return {}

    @cached_property
    def _alike(self) -> dict[tuple[str, ...], list[tuple[int | None, float]]]:
        """Parameters and seconds of the recorded cases by kind, by suite and mode, by suite, and of all."""
        found: dict[tuple[str, ...], list[tuple[int | None, float]]] = defaultdict(list)
        for text, seconds in sorted(self.recorded.items()):
            try:
                name = parse_case_id(text)
            except UsageError:
                continue  # of a suite that writes its ids in its own way
            size = self.parameters.get((name.suite, name.model))
            kind = (name.suite, name.mode, name.configuration, name.size)
            for key in (kind, kind[:2], kind[:1], ()):
                found[key].append((size, seconds))
        return found

    def _guess(self, kind: Kind, parameters: int | None) -> float | None:
        """Seconds of a case of ``kind`` that never ran; None where nothing is recorded."""
        if alike := self._alike.get(kind):
            return LIKE_FACTOR * _of_nearest(alike, parameters)
        for key in (kind[:2], kind[:1], ()):
            if others := self._alike.get(key):
                return UNKNOWN_FACTOR * median(seconds for _, seconds in others)
        return None


def parameters_of(suites: Mapping[str, Suite]) -> dict[tuple[str, str], int]:
    """Numbers of parameters by suite and model, as far as the suites' data say them."""
    return {
        (name, entry.name): entry.parameters
        for name, suite in suites.items()
        for entry in suite.models()
        if entry.parameters
    }


def expected_seconds(groups: Iterable[Group], forecast: Forecast) -> dict[str, float]:
    """Seconds of every case of ``groups`` by its id, without what no row says."""
    return {
        planned.case.id: forecast.of_planned(planned, group.checks)
        for group in groups
        for planned in group.cases
    }


def _of_nearest(alike: list[tuple[int | None, float]], parameters: int | None) -> float:
    """The median of the cases nearest in parameters, on a logarithmic scale; of all where none are known."""
    sized = [(size, seconds) for size, seconds in alike if size]
    if not parameters or len(sized) < NEAREST:
        return float(median(seconds for _, seconds in alike))
    distances = [
        (abs(math.log(size / parameters)), number, seconds) for number, (size, seconds) in enumerate(sized)
    ]
    return float(median(seconds for _, _, seconds in heapq.nsmallest(NEAREST, distances)))
