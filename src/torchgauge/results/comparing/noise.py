"""What history knows of the noise of a case: the prior of its spread, and whether it is in quarantine.

The ledger that this comes from is in ``noise_ledger.py``; a judge needs only this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torchgauge.records import Environment
from torchgauge.records.comparison import Pair
from torchgauge.results.runner_class import runner_class

if TYPE_CHECKING:
    from torchgauge.results.store import Store

MAX_PRIOR_DF = 20.0
"""Degrees of freedom that history is worth at most: spreads of days differ more than one pool says."""


@dataclass(frozen=True)
class Prior:
    """What history knows of one launch.

    ``spread`` is the standard deviation of its log ratio and ``df`` the degrees of freedom it is worth.
    """

    spread: float
    df: float


@dataclass
class NoiseHistory:
    """History of one class of runner: priors by case id and metric, reasons of quarantine by case id."""

    priors: Mapping[tuple[str, str], Prior] = field(default_factory=dict)
    quarantine: Mapping[str, str] = field(default_factory=dict)
    runner_class: str = ""

    @classmethod
    def empty(cls) -> NoiseHistory:
        """No history at all."""
        return cls()

    def prior(self, pair: Pair, metric: str = "latency") -> Prior | None:
        """What is known of ``metric`` (``latency`` or ``latency_wall``) of the pair's head."""
        return self.priors.get((pair.head.id, metric))

    def quarantined(self, pair: Pair) -> str:
        """Why the pair's head is in quarantine; empty where it is not."""
        return self.quarantine.get(pair.head.id, "")


def noise_of(store: Store, environments: Iterable[Environment], now: float) -> NoiseHistory:
    """Return the history of every class of runner among ``environments``; case ids name their device."""
    classes = sorted({runner_class(each) for each in environments})
    found = [noise_history(store, each, now) for each in classes]
    return NoiseHistory(
        priors={key: prior for each in found for key, prior in each.priors.items()},
        quarantine={case: reason for each in found for case, reason in each.quarantine.items()},
        runner_class="; ".join(classes),
    )


def noise_history(store: Store, runner_class: str, now: float) -> NoiseHistory:
    """The history of ``runner_class`` in ``store`` as of ``now`` (seconds since the epoch)."""
    from torchgauge.results.comparing.noise_ledger import read_ledger

    ledger = read_ledger(store, now, runner_class)
    priors: dict[tuple[str, str], Prior] = {}
    for case in ledger.cases:
        for metric, spread, df in case.spreads:
            if df >= 1 and spread > 0:
                priors[case.case_id, metric] = Prior(spread, min(MAX_PRIOR_DF, df))
    quarantine = {case.case_id: case.quarantine for case in ledger.cases if case.quarantine}
    return NoiseHistory(priors, quarantine, runner_class)
