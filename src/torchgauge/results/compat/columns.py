"""Which columns a comparison has: a device with the newest torch that measured it, or the one asked for.

Why one torch per device: a column that mixes versions would be true of none of them, and a store of nightly
runs would have a column for every night. Other versions are named in a note and can be asked for as
``DEVICE@VERSION``.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from torchgauge.counted import counted
from torchgauge.errors import NothingSelectedError
from torchgauge.records import Environment
from torchgauge.results.compat.reading import Reading
from torchgauge.results.compat.table import Column
from torchgauge.results.latest import Row
from torchgauge.results.runner_class import runner_class


@dataclass(frozen=True)
class Choice:
    """The columns with the rows of each, oldest first, and sentences on what was chosen."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Row, ...], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Measured:
    """Rows by device and version of torch; ``versions`` has the newest first."""

    rows: dict[str, dict[str, list[Row]]]

    @cached_property
    def versions(self) -> dict[str, list[str]]:
        return {
            device: sorted(found, key=lambda torch: found[torch][-1]["at"], reverse=True)
            for device, found in self.rows.items()
        }


def choose_columns(reading: Reading, wanted: Sequence[str]) -> Choice:
    """One column per name in ``wanted``: ``DEVICE`` or ``DEVICE@TORCH``; all devices where it is empty.

    A name that no row answers to becomes a column without rows and a note. Raises
    :class:`NothingSelectedError` where no name has rows.
    """
    measured = _Measured(_by_device(reading.rows))
    if not measured.rows:
        raise NothingSelectedError(
            "; ".join(("the stores hold no results of a published run", *reading.notes)),
            hint="torchgauge check --device DEVICE --store DIR",
        )
    names = tuple(dict.fromkeys(wanted)) or tuple(sorted(measured.rows))
    columns, rows, notes = [], [], []
    for name in names:
        device, torch, note = _resolve(name, measured, names)
        found = tuple(measured.rows.get(device, {}).get(torch, ())) if torch is not None else ()
        columns.append(_column(name, device, found, reading.environments))
        rows.append(found)
        notes += [note] if note else []
        if len(columns[-1].machines) > 1:
            notes.append(
                f"{name}: rows are from {counted(len(columns[-1].machines), 'machine')}, "
                "the newest row of each case is shown"
            )
    if not any(rows):
        known = ", ".join(sorted(measured.rows))
        raise NothingSelectedError(
            f"none of {', '.join(names)} was ever measured in these stores", hint=f"--devices {known}"
        )
    return Choice(tuple(columns), tuple(rows), tuple(notes))


def _by_device(rows: Sequence[Row]) -> dict[str, dict[str, list[Row]]]:
    """Rows by device and torch; a row that no torch is known of goes with its run's, else the newest's."""
    of_run = {(row["run_id"], row["target"]): row["torch_version"] for row in rows if row["torch_version"]}
    newest = {row["target"]: row["torch_version"] for row in rows if row["torch_version"]}
    found: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        target = row["target"]
        torch = row["torch_version"] or of_run.get((row["run_id"], target)) or newest.get(target, "")
        found.setdefault(target, {}).setdefault(torch, []).append(row)
    return found


def _resolve(name: str, measured: _Measured, names: Sequence[str]) -> tuple[str, str | None, str]:
    """Device, torch (None: no rows) and a note for one of the ``names`` of the command line."""
    device, version = name, ""
    if name not in measured.versions and "@" in name:
        device, _, version = name.partition("@")
    if device not in measured.versions:
        close = difflib.get_close_matches(device, measured.versions, n=1, cutoff=0.75)
        meant = f"; did you mean {close[0]}?" if close else ""
        known = ", ".join(sorted(measured.versions))
        return device, None, f"{device} was never measured in these stores{meant}; measured devices: {known}"
    versions = measured.versions[device]
    if version:
        if version in versions:
            return device, version, ""
        known = ", ".join(f"{device}@{each}" for each in versions)
        return device, None, f"{name} was never measured in these stores; measured versions: {known}"
    newest, *older = versions
    others = [each for torch in older if (each := f"{device}@{torch}") not in names]
    if not others:
        return device, newest, ""
    ask = f"--devices {','.join(others[:5])}" + (",..." if len(others) > 5 else "")
    return device, newest, f"{device} is shown with torch {newest}; for other versions: {ask}"


def _column(name: str, device: str, rows: Sequence[Row], environments: dict[str, Environment]) -> Column:
    newest_first = list(reversed(rows))
    where = dict.fromkeys(row["environment_id"] for row in newest_first)
    known = [environments[each] for each in where if each in environments]
    models = (str(dict(found.identity).get("device.model") or "") for found in known)
    return Column(
        name=name,
        device=device,
        torch=next((row["torch_version"] for row in newest_first if row["torch_version"]), ""),
        packages=tuple(dict.fromkeys(each for found in known for each in _packages(found))),
        models=tuple(dict.fromkeys(filter(None, models))),
        machines=tuple(dict.fromkeys(_machine(found) for found in known)),
        stores=tuple(dict.fromkeys(row["store"] for row in newest_first)),
        runs=len({row["run_id"] for row in rows}),
        rows=len(rows),
        newest_at=newest_first[0]["at"] if rows else None,
    )


def _machine(environment: Environment) -> str:
    """The class of the machine without the device in it."""
    host = tuple(pair for pair in environment.identity if pair[0] != "device.model")
    return runner_class(replace(environment, device="", identity=host)).rstrip(", ")


def _packages(environment: Environment) -> list[str]:
    """Versions of what makes the device work, as far as its environment tells."""
    facts = dict(environment.identity)
    found = [str(value) for key, value in sorted(facts.items()) if key.startswith("extension.")]
    for key, word in (("device.module_version", "module"), ("device.driver", "driver")):
        if facts.get(key):
            found.append(f"{word} {facts[key]}")
    return found
