"""What a matrix loads when it is asked for: numbers, histories and what is known of a cell, as on the pages.

Each file repeats the order of the matrices: all rows one after the other, with the values of its columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec
import numpy as np

from torchgauge.dashboard.history import NOTHING_PLANNED, STATUSES, History
from torchgauge.dashboard.latest_results import Entry, LatestResults
from torchgauge.dashboard.names import device_id
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.pages.views import Against, Reader, View
from torchgauge.dashboard.statuses import LOOKS, PARTIAL
from torchgauge.dashboard.statuses import NOTHING_PLANNED as BLANK
from torchgauge.records import Status
from torchgauge.results.hostile_text import first_line

SCHEMA = 1


def own_numbers(view: View) -> bool:
    """Whether the cells of ``view`` have numbers of their own, and are no ratios of those of other cells."""
    return view.against in (Against.NOTHING, Against.BEFORE)


def numbers_of(view: View) -> str:
    """The name of the file with the numbers from which the cells of ``view`` are made."""
    return f"{view.metric}-changes" if view.against is Against.BEFORE else view.metric


def numbers_shard(latest: LatestResults, view: View, read: Reader) -> tuple[str, bytes]:
    """The newest number of every case, as ``read`` reads it, with half of its interval in percent.

    A number that may not be compared is none here; ``apart`` names the modifier by its place. ``out`` has the
    places that enter no mean, by the reason, and ``built`` what was built, by row, a number for each hash.
    """
    readings = [read(entry) if entry else None for entry in chain.from_iterable(latest.grid)]
    out: dict[str, list[int]] = {}
    for place, reading in enumerate(readings):
        if reading and reading.out:
            out.setdefault(reading.out, []).append(place)
    data = {
        "schema": SCHEMA,
        "metric": view.metric,
        "unit": "change" if view.against is Against.BEFORE else view.of.unit,
        "better": view.of.better.value,
        "columns": [links.column_anchor(column) for column in latest.columns],
        "median": [each.value if each and not each.doubt else None for each in readings],
        "half": [each.half if each and not each.doubt else None for each in readings],
        "apart": {str(i): each.doubt for i, each in enumerate(readings) if each and each.doubt},
        "out": out,
        "built": {
            str(i): _built(latest.grid[i])
            for i, workload in enumerate(latest.workloads)
            if workload.name in latest.built_differently
        },
    }
    return f"latest/{numbers_of(view)}.json", msgspec.json.encode(data)


def history_shards(latest: LatestResults, recent: History) -> Iterator[tuple[str, bytes]]:
    """One file per device: a letter per cell and snapshot, oldest first, ``.`` where nothing was planned."""
    letters = np.full(256, ord(BLANK), np.uint8)
    letters[: len(STATUSES)] = [ord(LOOKS[status].letter) for status in STATUSES]
    texts = letters[recent.status]
    texts[(recent.status == STATUSES.index(Status.PASS)) & ~recent.counted] = ord(PARTIAL.letter)
    nothing = BLANK * len(recent.snapshots)
    assert letters[NOTHING_PLANNED] == ord(BLANK)
    for device in latest.devices:
        columns = [column for column in latest.columns if column.device == device]
        first = latest.columns.index(columns[0])
        found = []
        for entries in latest.grid:
            for entry in entries[first : first + len(columns)]:
                row = recent.number_of(entry.newest["case_key"]) if entry else None
                found.append(nothing if row is None else texts[row].tobytes().decode("ascii"))
        data = {
            "schema": SCHEMA,
            "columns": [links.column_anchor(column) for column in columns],
            "snapshots": [snapshot.id for snapshot in recent.snapshots],
            "status": found,
        }
        yield f"latest/history-{device_id(device)}.json", msgspec.json.encode(data)


def _built(row: Sequence[Entry | None]) -> list[int | None]:
    """What each cell of ``row`` built: equal numbers for equal hashes, None where nobody knows."""
    hashes = [entry.shown["realised_hash"] or "" if entry else "" for entry in row]
    numbers = {name: place for place, name in enumerate(dict.fromkeys(filter(None, hashes)))}
    return [numbers.get(name) for name in hashes]


def cell_shards(latest: LatestResults) -> Iterator[tuple[str, bytes]]:
    """One file per device: why each cell ended as it did, when it began and with which build of torch.

    ``reason`` and ``torch`` are places in ``texts``, -1 where there is none; ``at`` is in seconds since the
    epoch, null for what never began.
    """
    for device in latest.devices:
        columns = [column for column in latest.columns if column.device == device]
        first = latest.columns.index(columns[0])
        texts: dict[str, int] = {}
        reason: list[int] = []
        torch: list[int] = []
        at: list[int | None] = []
        for entry in chain.from_iterable(row[first : first + len(columns)] for row in latest.grid):
            row = entry.newest if entry else {}
            for places, text in ((reason, _reason(entry)), (torch, row.get("torch_version") or "")):
                places.append(texts.setdefault(text, len(texts)) if text else -1)
            began = row.get("started_at")
            at.append(int(began.timestamp()) if began else None)
        data = {
            "schema": SCHEMA,
            "columns": [links.column_anchor(column) for column in columns],
            "texts": list(texts),
            "reason": reason,
            "torch": torch,
            "at": at,
        }
        yield f"latest/cells-{device_id(device)}.json", msgspec.json.encode(data)


def _reason(entry: Entry | None) -> str:
    """Why a case did not pass, or what is wrong with its pass, in one line."""
    if entry is None:
        return ""
    row = entry.newest
    said = row["error_message"] or row["reason"] or row["accuracy_detail"] or row["cause"]
    marked = (entry.unchecked, entry.degraded, entry.unsteady)  # the gravest first
    return first_line(said or next(filter(None, marked), ""))
