"""What the page of comparisons reads beside the snapshots: the noise of every case, and environments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from torchgauge.dashboard.arrow_columns import Floats
from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.contrast import ASSUMED, FLOOR
from torchgauge.dashboard.epoch import Epoch
from torchgauge.dashboard.history import NOTHING_PLANNED, STATUSES, History
from torchgauge.dashboard.names import device_id
from torchgauge.dashboard.pages.environments import fact
from torchgauge.dashboard.pages.noise import series_thresholds
from torchgauge.dashboard.plain_rows import plain_rows
from torchgauge.dashboard.snapshots import Snapshot
from torchgauge.dashboard.statuses import SAYS_NOTHING
from torchgauge.results.dataset import read_table
from torchgauge.results.store import Store

SCHEMA = 1

_SAYS_NOTHING = np.array([s in SAYS_NOTHING for s in STATUSES] + [True] * (256 - len(STATUSES)))


def noise(context: SiteContext, metrics: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Thresholds and realised hashes of all cases of a device, by number; null where unknown."""
    recent = context.recent
    found = {name: thresholds_of(recent, name) for name in metrics}
    hashes = realised(context)
    sizes: dict[str, int] = {}
    for case in context.case_index:
        sizes[case.device] = max(sizes.get(case.device, 0), case.number + 1)
    by_device: dict[str, list[int]] = {}
    for row, case in enumerate(recent.cases):
        by_device.setdefault(case.device, []).append(row)
    letters = {device: ["."] * size for device, size in sizes.items()}
    for case in context.case_index:
        letters[case.device][case.number] = case.workload.subject.value[0]
    for device, size in sorted(sizes.items()):
        rows = by_device.get(device, [])
        numbers = [recent.cases[row].number for row in rows]
        thresholds = {}
        for name, values in found.items():
            array = np.full(size, np.nan)
            array[numbers] = values[rows]
            thresholds[name] = array.tolist()
        built: list[str | None] = [None] * size
        for row, number in zip(rows, numbers, strict=True):
            built[number] = (hashes.get(recent.cases[row].key) or "")[:8] or None
        data = {
            "schema": SCHEMA,
            "device": device,
            "assumed": ASSUMED,
            "floor": FLOOR,
            "thresholds": thresholds,
            "realised": built,
            "subject": "".join(letters[device]),
            "newest": recent.snapshots[spoke[-1]].id if (spoke := heard(recent, rows)) else None,
        }
        yield f"latest/noise-{device_id(device)}.json", msgspec.json.encode(data)


def thresholds_of(recent: History, metric: str) -> Floats:
    """The thresholds of all cases, as the file has them: what is prepared is judged by the same ones."""
    return np.round(series_thresholds(recent, metric), 5)


def realised(context: SiteContext) -> Mapping[str, str]:
    """The hash of what was built for a case, by its key; empty where nobody knows."""
    return {
        entry.newest["case_key"]: entry.shown["realised_hash"] or ""
        for entry in context.latest.entries.values()
    }


Identities = dict[str, dict[str, str]]


def environments(epoch: Epoch) -> Iterator[tuple[str, bytes]]:
    """``snapshots/ID/environments.json`` of every snapshot: what every plugin said last."""
    snapshots = epoch.window.snapshots
    found, devices = identities(epoch.store, snapshots), _planned_devices(epoch.window)
    for snapshot in snapshots:
        data = {
            "schema": SCHEMA,
            "snapshot": snapshot.id,
            "devices": devices[snapshot.id],
            "environments": found[snapshot.id],
        }
        yield f"snapshots/{snapshot.id}/environments.json", msgspec.json.encode(data)


def _planned_devices(window: History) -> dict[str, list[str]]:
    """The ids of the devices with anything planned, by snapshot: those that have files of it."""
    rows: dict[str, list[int]] = {}
    for row, case in enumerate(window.cases):
        rows.setdefault(case.device, []).append(row)
    there = {device: (window.status[own] != NOTHING_PLANNED).any(axis=0) for device, own in rows.items()}
    return {
        snapshot.id: [device_id(device) for device in sorted(there) if there[device][place]]
        for place, snapshot in enumerate(window.snapshots)
    }


def identities(store: Store, snapshots: Sequence[Snapshot]) -> dict[str, Identities]:
    """Identities by snapshot and plugin; of several runs of a snapshot, the newest that has one."""
    order = {run: place for place, run in enumerate(run for snapshot in snapshots for run in snapshot.runs)}
    by_run: dict[str, Identities] = {}
    if order:
        for row in plain_rows(read_table(store, "environments", sorted(order))):
            if row["kind"] == "identity":
                plugins = by_run.setdefault(row["run_id"], {})
                plugins.setdefault(row["device"], {})[row["key"]] = fact(row["value"])
    found = {}
    for snapshot in snapshots:
        sides: Identities = {}
        for run in sorted(snapshot.runs, key=order.__getitem__):
            sides |= by_run.get(run, {})
        found[snapshot.id] = sides
    return found


def heard(recent: History, rows: Sequence[int]) -> list[int]:
    """Places of the snapshots in which something was said of the cases in ``rows``."""
    found: list[int] = np.flatnonzero((~_SAYS_NOTHING[recent.status[rows]]).any(axis=0)).tolist()
    return found
