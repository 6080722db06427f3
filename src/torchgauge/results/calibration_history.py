"""What earlier calibrations of a device say of one made now: as usual, slower, or not to be told.

One history has two sources: the three numbers that every run takes (table ``calibrations``) and the rows of
the suite ``calibration``, which measure those three in the same way and more. A run counts once: of several
numbers of one kind the median is taken.

The judgement is on logarithms. The usual value is the median of the history. Its spread is Qn, the robust
estimator of Rousseeuw and Croux (Alternatives to the median absolute deviation, Journal of the American
Statistical Association 88, 1993), with the factors for small samples of Croux and Rousseeuw (Time-efficient
algorithms for two highly robust estimators of scale, COMPSTAT 1992). Below :data:`ROBUST_FROM` values the
standard deviation stands in: one wild value then makes the verdict cautious. A new value lies around the
usual one with a standard error of ``spread * sqrt(1 + pi / (2 n))`` (the median of n normal values has a
variance of pi / (2 n)), to which the interval of the new value itself is added. Times the quantile of
Student's t with n - 1 degrees of freedom that gives the interval of the change. Slower is what lies beyond
that interval *and* by :data:`FLOOR` or more. By simulation, 1 to 1.5 % of unchanged normal values lie beyond
it on either side, for any n.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from torchgauge.records import Better, Environment, Summary
from torchgauge.results.dataset import read_table
from torchgauge.results.environments import environments_of
from torchgauge.results.log_ratio import variance_of
from torchgauge.results.runner_class import runner_class
from torchgauge.results.store import Store
from torchgauge.results.stored_change import stored_change

NEEDED = 3
"""Earlier calibrations without which nothing is called usual."""
LEVEL = 0.01
"""Probability beyond each end of an interval: a dozen numbers are judged at once."""
FLOOR = 0.05
"""A change below this is nothing to act on: launches of one process on a quiet machine differ by 1 to 2 %."""
WIDEST = math.log(1.5)
"""A history that cannot tell a factor of 1.5 from its noise tells nothing."""
RECENT = 50
"""Runs that make the history: an older machine was another machine."""
ROBUST_FROM = 6
_SMALL = {6: 0.611, 7: 0.857, 8: 0.669, 9: 0.872}
_FROM_RUNS = {"gemm_flops": "gemm", "copy_bytes_per_s": "copy", "launch_s": "launch"}
"""Numbers of a run's own calibration and the parts of the suite that measure the same."""


@dataclass(frozen=True, order=True)
class Series:
    """What is compared over time: a part of the calibration, its dtype and one of its metrics."""

    part: str
    dtype: str
    metric: str


@dataclass(frozen=True)
class Machine:
    """What must be equal for two calibrations to be of one machine; ``torch`` may differ at a price."""

    runner_class: str
    threads: str
    torch: str

    @classmethod
    def of(cls, environment: Environment) -> Machine:
        """The machine that ``environment`` describes."""
        facts = dict(environment.identity)
        return cls(
            runner_class(environment),
            str(facts.get("torch.threads", "")),
            str(facts.get("torch.version", "")),
        )


@dataclass(frozen=True)
class Past:
    """The calibration of one machine in one run."""

    run_id: str
    machine: Machine
    values: Mapping[Series, float]


class Word(str, Enum):
    """What is said of one number."""

    AS_USUAL = "as usual"
    SLOWER = "slower"
    FASTER = "faster"
    TOO_NOISY = "too noisy to tell"
    NO_HISTORY = "no history"
    ABSENT = "absent"


@dataclass(frozen=True)
class Comparison:
    """One number against its history.

    ``change`` is now / usual - 1 with its interval; ``n`` earlier calibrations made the history, of the same
    torch or, where those are too few, of any (``other_torch``).
    """

    word: Word
    n: int = 0
    usual: float | None = None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    other_torch: bool = False


def read_history(store: Store, device: str, without: Iterable[str] = ()) -> list[Past]:
    """The last :data:`RECENT` published runs that calibrated ``device``, oldest first."""
    found: list[Past] = []
    skipped = set(without)
    for run_id in reversed(store.published()):
        if len(found) >= RECENT:
            break
        if run_id in skipped:
            continue
        values = _values(store, run_id, device)
        if not values:
            continue
        here = [each for each in environments_of(store, run_id).values() if each.device == device]
        machines = {Machine.of(each) for each in here}
        if len(machines) == 1:  # where one run saw two machines, nobody knows whose number it is
            found.append(Past(run_id, machines.pop(), values))
    return found[::-1]


def compare(series: Series, now: Summary, machine: Machine, history: Sequence[Past]) -> Comparison:
    """``now`` against the numbers of ``machine`` in ``history``."""
    if now.median is None:
        return Comparison(Word.ABSENT)
    alike = [
        past
        for past in history
        if (past.machine.runner_class, past.machine.threads) == (machine.runner_class, machine.threads)
        and series in past.values
    ]
    same = [past for past in alike if past.machine.torch == machine.torch]
    chosen = same if len(same) >= NEEDED else alike
    if len(chosen) < NEEDED or now.median <= 0:
        return Comparison(Word.NO_HISTORY, len(chosen))
    logs = [math.log(past.values[series]) for past in chosen]
    usual = statistics.median(logs)
    # Half the width of the interval of the change, in logarithms.
    from scipy import special

    n = len(logs)
    within = variance_of(now.low, now.high, now.confidence) or 0.0
    error = math.sqrt(spread(logs) ** 2 * (1 + math.pi / (2 * n)) + within)
    margin = float(special.stdtrit(n - 1, 1 - LEVEL)) * error
    change = math.log(now.median) - usual
    return Comparison(
        _word(change, margin, now.better),
        len(chosen),
        math.exp(usual),
        math.expm1(change),
        math.expm1(change - margin),
        math.expm1(change + margin),
        other_torch=chosen is not same,
    )


def _word(change: float, margin: float, better: Better) -> Word:
    said = stored_change(change, change - margin, change + margin, least=math.log1p(FLOOR), margin=WIDEST)
    worse = better.worse(change)
    if worse is not None and (said.more or said.less):
        return Word.SLOWER if worse else Word.FASTER
    return Word.TOO_NOISY if margin > WIDEST else Word.AS_USUAL


def spread(values: Sequence[float]) -> float:
    """The standard deviation of ``values``: Qn, or for fewer than six of them the classical one."""
    n = len(values)
    if n < ROBUST_FROM:
        return statistics.stdev(values)
    half = n // 2 + 1
    apart = sorted(abs(a - b) for a, b in combinations(values, 2))
    factor = _SMALL.get(n, n / (n + 1.4) if n % 2 else n / (n + 3.8))
    return 2.2219 * factor * apart[half * (half - 1) // 2 - 1]


def _values(store: Store, run_id: str, device: str) -> dict[Series, float]:
    found: dict[Series, list[float]] = defaultdict(list)
    for row in read_table(store, "calibrations", run_id).to_pylist():
        if row["device"] == device:
            for metric, part in _FROM_RUNS.items():
                found[Series(part, "float32", metric)].append(row[metric])
    columns = ("suite", "model", "dtype", "device", "metric", "median")
    for row in read_table(store, "summaries", run_id, columns).to_pylist():
        if (row["suite"], row["device"]) == ("calibration", device):
            found[Series(row["model"], row["dtype"], row["metric"])].append(row["median"])
    medians = {series: [v for v in values if v is not None and v > 0] for series, values in found.items()}
    return {series: statistics.median(values) for series, values in medians.items() if values}
