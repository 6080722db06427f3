"""The noise ledger as lines of text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from torchgauge.results.comparing.noise_ledger import DAY_S, AlarmRate, CaseNoise, Ledger
from torchgauge.results.comparing.quarantine import CLEAN_NIGHTS, WINDOW_DAYS


def ledger_lines(ledger: Ledger, now: float) -> Iterator[str]:
    """The false-alarm rate first, then one line per case, what is in quarantine first."""
    if not ledger.comparisons:
        yield "no A/B run is in this store yet; every `torchgauge ab` adds to the ledger"
        return
    yield f"{ledger.comparisons} A/B runs; false alarms on unchanged code, with a 95 % interval:"
    yield f"  all time:      {rate(ledger.alarms)}"
    yield f"  last {WINDOW_DAYS} days:  {rate(ledger.recent)}"
    yield ""
    yield f"{'spread':>8} {'A/A launches':>12} {'alarms':>9}  case"
    classes = {case.runner_class for case in ledger.cases}
    for case in sorted(ledger.cases, key=lambda case: (not case.quarantine, case.case_id, case.runner_class)):
        spread = "-" if case.spread is None else f"{case.spread:.2%}"
        alarms = f"{case.alarms.alarms}/{case.alarms.trials}"
        where = f"  ({case.runner_class})" if len(classes) > 1 else ""
        yield f"{spread:>8} {case.launches:>12} {alarms:>9}  {case.case_id}{where}"
        if case.quarantine:
            yield f"{'':>31}  in quarantine {_since(case, now)}: {case.quarantine}"


def rate(alarms: AlarmRate) -> str:
    """A rate with its interval, such as ``1 of 40 (2.5 % [0.1 %, 13.2 %])``."""
    if alarms.rate is None or alarms.low is None or alarms.high is None:
        return "no A/A comparison, so nothing is known"
    percent = f"{alarms.rate:.1%} [{alarms.low:.1%}, {alarms.high:.1%}]"
    return f"{alarms.alarms} of {alarms.trials} ({percent}); {alarms.decided} of them were decided"


def _since(case: CaseNoise, now: float) -> str:
    days = int(now // DAY_S) - (case.quarantined_on or 0)
    return f"for {days} days, {case.clean_nights} of {CLEAN_NIGHTS} clean nights"
