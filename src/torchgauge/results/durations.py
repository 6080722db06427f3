"""How long cases took lately and how they ended, from the published runs of a store.

Jobs are sized, groups are ordered and budgets are filled by it. The newest runs are read first and only until
every case has been seen often enough, so that a store of years costs no more than one of a week.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from torchgauge.errors import DataFileError, UsageError
from torchgauge.records import INCOMPLETE, Scalar
from torchgauge.results.json_file import read_object
from torchgauge.results.store import Store

LAST = 5
"""Runs of a case that count: enough for a median that one bad night does not move."""
MOST_RUNS = 512
"""Runs that are looked at: a week of 64 jobs a night."""
MACHINE_FACTS = ("cpu.model", "cpu.cores_available")
"""Facts of an environment that make seconds comparable; what a parent process can say of its own machine."""
FORM = "torchgauge-durations"
"""What a file of durations says it is."""
WEIGHED = 4
"""Groups that a run must have to say what a second of its rows costs: much of a shorter one is its last,
of which nobody sees the processes for memory and warm compilation end."""
STOOD_STILL = 10.0
"""Wall seconds per second of its rows that no run takes which was not interrupted."""
HISTORY_RUNS = 64
"""Runs that are looked at where more than durations is wanted of each."""
_AT_ONCE = 32
_FEW = 8


@dataclass(frozen=True)
class CaseHistory:
    """A case's latest runs: ``seconds`` of each, newest first; how it ended the last time.

    ``at`` is when that was, in seconds since the epoch; 0 where only durations are known.
    """

    seconds: tuple[float, ...]
    status: str = ""
    unexpected: bool = False
    at: float = 0.0

    @property
    def usual_s(self) -> float:
        """The median of its seconds."""
        return float(median(self.seconds))


@dataclass(frozen=True)
class History:
    """Cases by id, and what runs cost beside them.

    ``startup_s`` passes before the first case. ``wall_ratio`` is the wall time of a run, from its first case
    to the end of its last, for each second that its rows say: processes of their own for memory and warm
    compilation are in no row, and groups that are prepared beside others count twice. None: no run says so.
    """

    cases: Mapping[str, CaseHistory] = field(default_factory=dict)
    startup_s: float | None = None
    wall_ratio: float | None = None
    source: str = ""

    @property
    def seconds(self) -> dict[str, float]:
        """The usual seconds of each case by its id."""
        return {case: held.usual_s for case, held in self.cases.items() if held.seconds}


def recorded_durations(store: str | None, cases: Collection[str]) -> dict[str, list[float]]:
    """As :func:`recent_durations`, of the store at the path ``store``; nothing where none is there yet."""
    if store is None or not is_store(store):
        return {}
    return recent_durations(Store.open(store), cases)


def is_store(path: str | Path) -> bool:
    """Whether a store is at ``path``."""
    return (Path(path) / "store.json").is_file()


def recent_durations(store: Store, cases: Collection[str]) -> dict[str, list[float]]:
    """Seconds that each of ``cases`` (ids) took in the last runs in which it ended, newest run first.

    A case that was not run, or that a broken machine ended, took no time of its own and does not count.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    found: dict[str, list[float]] = defaultdict(list)
    missing = set(cases)
    wanted = pa.array(sorted(missing), pa.string())
    for table in _ended(store, ("case_id", "status", "duration_s"), MOST_RUNS):
        rows = table.filter(pc.is_in(table["case_id"], value_set=wanted))
        for case, seconds in zip(rows["case_id"].to_pylist(), rows["duration_s"].to_pylist(), strict=True):
            if seconds is not None and seconds >= 0 and len(found[case]) < LAST:
                found[case].append(seconds)
                if len(found[case]) == LAST:
                    missing.discard(case)
        if not missing:
            break
    return dict(found)


def read_history(
    store: Store, cases: Collection[str], *, machine: Mapping[str, Scalar] | None = None
) -> History:
    """What the store knows of ``cases`` (ids) and of the other cases of their suites.

    Where ``machine`` says what this machine is (:data:`MACHINE_FACTS`), seconds that other machines took
    count only for cases that never ran on one like it. A case that never started took no time.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    suites = pa.array(sorted({case.partition("/")[0] for case in cases}), pa.string())
    here: dict[str, list[float]] = defaultdict(list)
    elsewhere: dict[str, list[float]] = defaultdict(list)
    newest: dict[str, tuple[str, bool, float]] = {}
    missing = set(cases)
    startups: list[float] = []
    ratios: list[float] = []
    for table in _ended(store, _COLUMNS, HISTORY_RUNS, _FEW):
        started = pc.and_(pc.is_valid(table["started_at"]), pc.is_in(table["suite"], value_set=suites))
        rows = table.filter(started).to_pylist()
        alike = _alike(store, sorted({row["run_id"] for row in rows}), machine)
        for row in rows:
            case = row["case_id"]
            newest.setdefault(case, (row["status"], row["unexpected"], row["started_at"].timestamp()))
            held = here if alike is None or row["environment_id"] in alike else elsewhere
            if len(held[case]) < LAST:
                held[case].append(row["duration_s"])
            if len(here[case]) == LAST:
                missing.discard(case)
        _weigh_runs(rows, startups, ratios)
        if not missing:
            break
    known = {
        case: CaseHistory(tuple(here[case] or elsewhere[case]), *ending) for case, ending in newest.items()
    }
    return History(
        known,
        float(median(startups[:LAST])) if startups else None,
        float(median(ratios[:LAST])) if ratios else None,
        str(store.path),
    )


def read_durations_file(path: Path) -> History:
    """The history in a file that :func:`durations_json` wrote: durations alone, the same on every machine.

    Raises :class:`DataFileError` where it is none.
    """
    hint = "torchgauge plan ... --store STORE --save-durations FILE writes a durations file"
    if not path.exists():
        raise UsageError(f"there is neither a store nor a file at {path}", hint=hint)
    data = read_object(path, hint)
    if data.get("form") != FORM or not isinstance(data.get("seconds"), dict):
        raise DataFileError(
            str(path),
            f'not a durations file: it must contain "form": "{FORM}" and an object "seconds"',
            hint=hint,
        )
    cases: dict[str, CaseHistory] = {}
    for case, seconds in data["seconds"].items():
        if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
            raise DataFileError(str(path), f"{case}: {seconds!r} are not seconds", hint=hint)
        cases[case] = CaseHistory((float(seconds),))
    return History(cases, source=str(path))


def durations_json(seconds: Mapping[str, float]) -> str:
    """``seconds`` by case id as the text of a file that every shard can be given."""
    rounded = {case: round(value, 3) for case, value in sorted(seconds.items())}
    return json.dumps({"form": FORM, "seconds": rounded}, indent=1) + "\n"


_COLUMNS = (
    *("run_id", "case_id", "suite", "status", "unexpected", "duration_s"),
    *("started_at", "run_created_at", "environment_id"),
)


def _ended(store: Store, columns: tuple[str, ...], most_runs: int, at_once: int = _AT_ONCE) -> Iterator[Any]:
    """Rows of cases that ended, some runs at a time, the newest runs first."""
    newest = sorted(store.published(), reverse=True)[:most_runs]  # an id begins with its time
    if not newest:
        return
    import pyarrow as pa
    import pyarrow.compute as pc

    from torchgauge.results.dataset import read_table

    unfinished = pa.array(sorted(status.value for status in INCOMPLETE), pa.string())
    for start in range(0, len(newest), at_once):
        table = read_table(store, "results", newest[start : start + at_once], columns)
        yield table.filter(pc.invert(pc.is_in(table["status"], value_set=unfinished)))


def _alike(store: Store, runs: list[str], machine: Mapping[str, Scalar] | None) -> frozenset[str] | None:
    """Ids of the environments in ``runs`` whose machine is like ``machine``; None where nobody asks."""
    if machine is None:
        return None
    from torchgauge.results.dataset import read_table

    facts: dict[str, dict[str, str]] = defaultdict(dict)
    table = read_table(store, "environments", runs, ("environment_id", "key", "value", "kind"))
    for row in table.to_pylist():
        if row["kind"] == "identity" and row["key"] in MACHINE_FACTS:
            facts[row["environment_id"]][row["key"]] = row["value"]
    wanted = {key: json.dumps(machine[key]) for key in MACHINE_FACTS if key in machine}
    return frozenset(each for each, held in facts.items() if held.items() >= wanted.items())


def _weigh_runs(rows: list[dict[str, Any]], startups: list[float], ratios: list[float]) -> None:
    """Note what each run in ``rows`` took before its first case, and for each second that its rows say."""
    runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        runs[row["run_id"]].append(row)
    for held in runs.values():
        groups: dict[Any, float] = defaultdict(float)  # its rows begin together, and share its time
        for row in held:
            groups[row["started_at"]] += row["duration_s"]
        first = min(groups)
        startups.append(max(0.0, (first - held[0]["run_created_at"]).total_seconds()))
        wall = max((at - first).total_seconds() + seconds for at, seconds in groups.items())
        # Not until the last group began: it is prepared while others are measured, and may begin with them.
        # A run that stood still between an interruption and its resumption says nothing.
        said = sum(groups.values())
        if len(groups) >= WEIGHED and said > 0 and (ratio := wall / said) < STOOD_STILL:
            ratios.append(ratio)
