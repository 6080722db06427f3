"""The environments of a store: what their identities say, and in what two of them differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchgauge.dashboard.history import History
from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.plain_rows import Row, plain_rows
from torchgauge.records import Status
from torchgauge.results import units
from torchgauge.results.dataset import read_table
from torchgauge.results.hostile_text import first_line

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

MOST_READ = 64
"""Runs whose environments are read for the last pass of cases that pass no longer; a file per run."""

_INDEXED = re.compile(r"(.+)\.(\d+)", re.DOTALL)
_WHOLE = re.compile(r"[0-9]{1,18}").fullmatch

Identity = Mapping[str, str]

_MACHINE = ("device.model", "cpu.model", "cpu", "machine")
"""Facts that name a machine, the most telling first."""


@dataclass(frozen=True)
class Difference:
    """One fact in which environments differ; ``values`` has one text per side, empty where it is not said."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class LastPass:
    """When a case passed for the last time, and in which environment; ``environment_id`` may be unknown."""

    date: str
    environment_id: str


class EnvironmentIndex:
    """Identities by plugin and id, and which environment a plugin had in a run."""

    def __init__(self, tables: Iterable[Sequence[Row]]) -> None:
        """``tables`` are the rows of ``environments``, run by run."""
        self._identities: dict[tuple[str, str], dict[str, str]] = {}
        self._in_run: dict[tuple[str, str], str] = {}
        for rows in tables:
            for row in rows:
                key = row["device"], row["environment_id"]
                identity = self._identities.setdefault(key, {})
                self._in_run[row["run_id"], row["device"]] = row["environment_id"]
                if row["kind"] == "identity":
                    identity[row["key"]] = fact(row["value"])

    def identity(self, device: str, environment_id: str) -> Identity | None:
        """What is known of an environment of ``device``; None where nothing is."""
        for name in (device, plugin_of(device)):
            if (name, environment_id) in self._identities:
                return self._identities[name, environment_id]
        return None

    def in_run(self, run_id: str, device: str) -> str:
        """The id of the environment that ``device`` had last in a run; empty where it is not known."""
        return self._in_run.get((run_id, device)) or self._in_run.get((run_id, plugin_of(device)), "")


def fact(text: str) -> str:
    """A JSON value as a person reads it; text that is no JSON as it stands."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def machine_of(identity: Identity) -> str:
    """What names the machine, in one short line: the first fact that is known; empty where none is."""
    return first_line(next((identity[key] for key in _MACHINE if identity.get(key)), ""), 60)


def readable(identity: Identity) -> list[tuple[str, str]]:
    """The facts by name, with bytes in units that people read."""
    return [
        (key, units.quantity(float(value), "B") if key.endswith("_bytes") and _WHOLE(value) else value)
        for key, value in sorted(identity.items())
    ]


def plugin_of(device: str) -> str:
    """The plugin's name of a device: environments and calibrations know no index."""
    found = _INDEXED.fullmatch(device)
    return found[1] if found else device


def differences(sides: Sequence[Identity]) -> tuple[Difference, ...]:
    """The facts in which ``sides`` are not all equal, by key."""
    keys = sorted({key for side in sides for key in side})
    rows = ((key, tuple(side.get(key, "") for side in sides)) for key in keys)
    return tuple(Difference(key, values) for key, values in rows if len(set(values)) > 1)


class LastPasses:
    """When and where cases that pass no longer passed for the last time, in the recent snapshots."""

    def __init__(self, context: SiteContext) -> None:
        """Of all cases in ``context`` that do not pass; reads what is missing of the runs where they did."""
        self._history = context.recent
        self._places = _last_passes(context.recent, context.latest.entries.values())
        wanted = {run for place in set(self._places.values()) for run in self._runs(place)}
        published = set(context.store.published())
        order = [info.run_id for info in context.runs if info.run_id in wanted & published]
        missing = [run for run in order if run not in context.environments][:MOST_READ]
        more: dict[str, list[Row]] = {}
        for row in plain_rows(read_table(context.store, "environments", missing)):
            more.setdefault(row["run_id"], []).append(row)
        self.environment_index = EnvironmentIndex([*context.environments.values(), *more.values()])

    def _runs(self, place: int) -> tuple[str, ...]:
        return self._history.snapshots[place].runs

    def of(self, entry: Entry) -> LastPass | None:
        """The last pass of a case that does not pass; None where it passes, or never passed in the window."""
        place = self._places.get(entry.newest["case_key"])
        if place is None:
            return None
        found = (
            self.environment_index.in_run(run, entry.column.device) for run in reversed(self._runs(place))
        )
        return LastPass(self._history.snapshots[place].date, next((name for name in found if name), ""))


def _last_passes(history: History, entries: Iterable[Entry]) -> dict[str, int]:
    found = {}
    for entry in entries:
        if entry.status is Status.PASS:
            continue
        row = history.number_of(entry.newest["case_key"])
        if row is None:
            continue
        passes = history.passed[row].nonzero()[0]
        if len(passes):
            found[entry.newest["case_key"]] = int(passes[-1])
    return found
