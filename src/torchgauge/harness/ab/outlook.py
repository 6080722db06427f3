"""What an A/B run can decide before it has begun: the minutes it will take and the change it could see.

From what the store holds of the same cases: how long their launches took, and how much the log ratio of a
launch scattered. Where nothing is recorded nothing is guessed, and the text says so.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from torchgauge.counted import counted
from torchgauge.records.comparison import ComparisonPlan, Pair
from torchgauge.results import units
from torchgauge.results.comparing.comparison_store import comparison_ids, read_comparisons
from torchgauge.results.comparing.noise import MAX_PRIOR_DF, Prior
from torchgauge.results.comparing.noise_ledger import read_ledger
from torchgauge.results.comparing.pair_evidence import PairEvidence
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.comparing.sequential import LOOKS, Levels, Moderated, detectable, needed
from torchgauge.results.store import Store

FEWEST = LOOKS[0]
"""Launches after which the rule looks first: with fewer, nothing is decided."""
_RECENT = 20
"""A/B runs that are asked how long a launch takes: older machines were others."""


@dataclass(frozen=True)
class PairOutlook:
    """One pair: seconds of a launch, and the noise of its log ratio; None for what no earlier run says.

    ``launches`` is how many it may have, ``deciding`` after how many "unchanged" is likely where nothing
    changed (None: not within them), ``detectable`` the smallest relative change that all of them could show.
    """

    pair_id: str
    control: bool
    launch_s: float | None
    spread: float | None
    launches: int | None = None
    deciding: int | None = None
    detectable: float | None = None
    tolerance: float = 0.0


@dataclass(frozen=True)
class Outlook:
    """All pairs of an A/B run that may have ``max_launches`` launches and ``max_time_s`` seconds."""

    pairs: tuple[PairOutlook, ...]
    max_launches: int
    max_time_s: float | None
    store: str

    @property
    def launch_s(self) -> float | None:
        """Seconds of one launch of all pairs; None where that of one pair is not known."""
        return self._total(lambda _: 1)

    @property
    def likely_s(self) -> float | None:
        """Seconds until each pair is decided, or at its last launch, where nothing changed."""
        return self._total(lambda each: each.launches and (each.deciding or each.launches))

    @property
    def longest_s(self) -> float | None:
        """Seconds of all launches that may be."""
        return self._total(lambda each: each.launches)

    def _total(self, launches: Callable[[PairOutlook], int | None]) -> float | None:
        """Seconds of the ``launches`` of all pairs; None where one has none, or an unknown time."""
        counts = [(each.launch_s, launches(each)) for each in self.pairs]
        known = [seconds * count for seconds, count in counts if seconds is not None and count]
        return sum(known) if known and len(known) == len(counts) else None


def outlook(plan: ComparisonPlan, policy: Policy, store: Store | None, max_time_s: float | None) -> Outlook:
    """What ``plan`` can decide within ``max_time_s``, by what ``store`` (None: there is none yet) knows."""
    took = {} if store is None else _launch_seconds(store)
    noise = {} if store is None else _noise(store, plan.created_at)
    seconds = [took.get(pair.head.id) for pair in plan.pairs]
    known = [each for each in seconds if each is not None]
    fit = None
    if max_time_s is not None and known and len(known) == len(seconds):
        fit = max(1, math.floor(max_time_s / sum(known)))  # the first launch is never refused
    pairs = [
        _of_pair(pair, policy, (launch_s, noise.get(pair.head.id)), plan.max_launches, fit)
        for pair, launch_s in zip(plan.pairs, seconds, strict=True)
    ]
    if max_time_s is not None and fit is None:
        pairs = [PairOutlook(each.pair_id, each.control, each.launch_s, each.spread) for each in pairs]
    return Outlook(tuple(pairs), plan.max_launches, max_time_s, "" if store is None else str(store.path))


def _of_pair(
    pair: Pair, policy: Policy, known: tuple[float | None, Prior | None], most: int, fit: int | None
) -> PairOutlook:
    launch_s, prior = known
    rule = policy.rule(pair)
    levels = PairEvidence(pair, rule, most).levels(rule)
    launches = most if launch_s is None else max(1, min(most, math.floor(rule.max_time_s / launch_s)))
    if fit is not None:
        launches = min(launches, fit)
    if prior is None:
        return PairOutlook(pair.id, pair.control, launch_s, None, launches, tolerance=levels.tolerance)
    small = detectable(_evidence(launches, prior), levels) if launches >= FEWEST else None
    deciding = _deciding(prior, levels, launches)
    return PairOutlook(
        pair.id, pair.control, launch_s, prior.spread, launches, deciding, small, levels.tolerance
    )


def _deciding(prior: Prior, levels: Levels, launches: int) -> int | None:
    """The first look after which "unchanged" is likely where nothing changed; None where none is."""
    enough = needed(_evidence(FEWEST, prior), levels)
    return next((look for look in levels.planned if enough is not None and enough <= look <= launches), None)


def _evidence(launches: int, prior: Prior) -> Moderated:
    """``launches`` that find no change and scatter as earlier ones did."""
    return Moderated(launches, np.array(0.0), np.array(prior.spread), np.array(launches - 1 + prior.df))


def _launch_seconds(store: Store) -> Mapping[str, float]:
    """The median of seconds of a launch by the case of the head, over recent A/B runs."""
    recent = comparison_ids(store)[-_RECENT:]
    table = read_comparisons(store, "launches", recent, ("case_id", "setup_s", "measure_s"))
    found: dict[str, list[float]] = defaultdict(list)
    columns = (table[name].to_pylist() for name in ("case_id", "setup_s", "measure_s"))
    for case_id, setup_s, measure_s in zip(*columns, strict=True):
        if case_id is not None:
            found[case_id].append(setup_s + measure_s)
    return {case_id: median(each) for case_id, each in found.items()}


def _noise(store: Store, now: float) -> Mapping[str, Prior]:
    """The spread of each case's latency, on the class of runner that knows it best: here is not known yet."""
    found: dict[str, Prior] = {}
    for line in read_ledger(store, now).cases:
        for metric, spread, df in line.spreads:
            if metric == "latency" and spread > 0 and df >= 1:
                prior = Prior(spread, min(MAX_PRIOR_DF, df))
                if line.case_id not in found or found[line.case_id].df < prior.df:
                    found[line.case_id] = prior
    return found


def outlook_lines(found: Outlook) -> list[str]:
    """The outlook in words: time first, then what it can see, then what is not known."""
    within = "" if found.max_time_s is None else f" within {units.duration(found.max_time_s)}"
    where = f"{found.store} has no earlier A/B run" if found.store else "the store does not exist yet"
    lines = []
    for what, missing in (
        ("the duration of a launch", [each for each in found.pairs if each.launch_s is None]),
        ("the smallest detectable change", [each for each in found.pairs if each.spread is None]),
    ):
        if missing:
            lines.append(f"{what} is unknown for {_some(missing, found.pairs)} ({where})")
    return [*_time_lines(found, within), *_change_lines(found, within), *lines]


def _time_lines(found: Outlook, within: str) -> list[str]:
    if found.launch_s is None or found.likely_s is None or found.longest_s is None:
        return [f"time: not known{within}"]
    one = f"a launch of {counted(len(found.pairs), 'pair')} takes about {units.duration(found.launch_s)}"
    fit = max(each.launches or 0 for each in found.pairs)
    if found.max_time_s is not None:
        return [f"time: {one}, which leaves time for {counted(fit, 'launch')}{within}"]
    likely, longest = units.duration(found.likely_s), units.duration(found.longest_s)
    return [f"time: {one}; about {likely} if nothing changed, {longest} at most ({counted(fit, 'launch')})"]


def _change_lines(found: Outlook, within: str) -> list[str]:
    lines = []
    asked = [each for each in found.pairs if not each.control] or list(found.pairs)
    short = [each for each in asked if each.launches is not None and each.launches < FEWEST]
    if short:
        lines.append(
            f"{_some(short, asked)}: fewer than {FEWEST} launches{within}, which are too few for a verdict"
        )
    told = [each for each in asked if each.detectable is not None]
    if told:
        sizes = sorted(each.detectable or 0.0 for each in told)
        worst = max(told, key=lambda each: each.detectable or 0.0)
        text = f"smallest detectable change: {_percent(sizes[0])}"
        if len(told) > 1:
            text += f" to {_percent(sizes[-1])}, median {_percent(median(sizes))}"
            text += f"; the noisiest is {worst.pair_id}"
        lines.append(text)
    open_ = [each for each in told if each.deciding is None]
    if open_:
        lines.append(f"{_some(open_, asked)} will probably stay undecided if nothing changed")
    return lines


def _some(these: Sequence[PairOutlook], those: Sequence[PairOutlook]) -> str:
    return these[0].pair_id if len(these) == 1 else f"{len(these)} of {counted(len(those), 'pair')}"


def _percent(value: float) -> str:
    return f"{100 * value:.2g} %" if value < 1 else f"{100 * value:.0f} %"


def outlook_plain(found: Outlook) -> dict[str, object]:
    """The outlook as JSON values; None is "not known"."""
    return {
        "max_launches": found.max_launches,
        "max_time_s": found.max_time_s,
        "launch_s": found.launch_s,
        "likely_s": found.likely_s,
        "longest_s": found.longest_s,
        "pairs": [vars(each) for each in found.pairs],
    }
