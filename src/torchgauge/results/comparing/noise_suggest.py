"""A policy made of the noise ledger: a tolerance for every case that is too noisy for the default one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from torchgauge.counted import counted
from torchgauge.results.comparing.noise_ledger import CaseNoise, Ledger
from torchgauge.results.comparing.policy import Rule
from torchgauge.results.units import moment

MIN_LAUNCHES = 10
"""Launches of A/A from which a tolerance is suggested."""

LAUNCHES = 4
"""Launches of a comparison that tolerances are made for, unless somebody says otherwise."""


def tolerance(spread: float, launches: int = LAUNCHES) -> float:
    """The tolerance for a case whose launches spread by ``spread``: three standard errors, at least 3 %."""
    return max(Rule().tolerance, 3 * spread / math.sqrt(launches))


def suggestions(ledger: Ledger, launches: int = LAUNCHES) -> list[dict[str, Any]]:
    """Every case with enough history: its tolerance, spread, launches of A/A and class of runner."""
    return [
        {
            "case_id": name,
            "tolerance": _wanted(case, launches),
            "spread": case.spread,
            "launches": case.launches,
            "runner_class": case.runner_class,
        }
        for name, case in sorted(_known(ledger).items())
    ]


def suggest(ledger: Ledger, now: float, launches: int = LAUNCHES) -> str:
    """The text of a policy: what stands at the default tolerance is counted and not written."""
    known = _known(ledger)
    wide = {name: case for name, case in known.items() if _wanted(case, launches) > Rule().tolerance}
    few = {case.case_id for case in ledger.cases} - known.keys()
    lines = [
        (
            f"# Made by `torchgauge results noise suggest` on {moment(now)}: "
            f"tolerance = max(3 %, 3 * spread / sqrt({launches}))."
        ),
        f"# {counted(len(known) - len(wide), 'case keeps', 'cases keep')} the default tolerance.",
        (
            f"# {counted(len(few), 'case has', 'cases have')} fewer "
            f"than {MIN_LAUNCHES} A/A launches and are left out."
        ),
        "cases:" if wide else "cases: {}",
    ]
    for name, case in sorted(wide.items()):
        reason = (
            f"A/A launches spread by {case.spread or 0:.1%} ({case.launches} launches on {case.runner_class},"
            f" until {moment(now)[:10]})"
        )
        lines += [
            f"  {json.dumps(name)}:",
            f"    tolerance: {_wanted(case, launches):.4f}",
            f"    reason: {json.dumps(reason, ensure_ascii=False)}",
        ]
    return "\n".join(lines) + "\n"


def _known(ledger: Ledger) -> dict[str, CaseNoise]:
    return _noisiest(case for case in ledger.cases if case.launches >= MIN_LAUNCHES and case.spread)


def _wanted(case: CaseNoise, launches: int) -> float:
    assert case.spread is not None
    return math.ceil(tolerance(case.spread, launches) * 1e4) / 1e4


def _noisiest(cases: Iterable[CaseNoise]) -> dict[str, CaseNoise]:
    """One line per case: a policy has no classes of runners, so the noisiest one decides."""
    found: dict[str, CaseNoise] = {}
    for case in cases:
        other = found.get(case.case_id)
        if other is None or (case.spread or 0) > (other.spread or 0):
            found[case.case_id] = case
    return found
