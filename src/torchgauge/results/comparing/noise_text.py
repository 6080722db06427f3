"""The noise ledger for a terminal."""

from __future__ import annotations

from torchgauge.clock import DAY_S
from torchgauge.results import document
from torchgauge.results.comparing.noise_ledger import AlarmRate, Ledger
from torchgauge.results.comparing.quarantine import CLEAN_NIGHTS, WINDOW_DAYS
from torchgauge.results.document import ours


def ledger_text(ledger: Ledger, now: float) -> str:
    """The false-alarm rate first, then one line per case, what is in quarantine first."""
    order = sorted(ledger.cases, key=lambda case: (not case.quarantine, case.case_id, case.runner_class))
    return document.terminal(
        "results/comparing/noise",
        ledger=ledger,
        cases=order,
        rate=lambda alarms: ours(rate(alarms)),
        window=WINDOW_DAYS,
        wanted=CLEAN_NIGHTS,
        today=int(now // DAY_S),
    )


def rate(alarms: AlarmRate) -> str:
    """A rate with its interval, such as ``1 of 40 (2.5 % [0.1 %, 13.2 %])``."""
    if alarms.rate is None or alarms.low is None or alarms.high is None:
        return "no A/A comparison, so the noise is unknown"
    percent = f"{alarms.rate:.1%} [{alarms.low:.1%}, {alarms.high:.1%}]"
    return (
        f"{alarms.alarms} of {alarms.trials} ({percent}); {alarms.decided} of {alarms.trials} have a verdict"
    )
