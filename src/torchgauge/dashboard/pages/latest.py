"""What the query box loads when it is asked for: newest numbers and histories, cell by cell as on the pages.

Each file repeats the order of the matrices: all rows one after the other, with the values of its columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import msgspec
import numpy as np

from torchgauge.dashboard.history import NOTHING_PLANNED, STATUSES, History
from torchgauge.dashboard.latest_results import LatestResults
from torchgauge.dashboard.names import device_id
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.pages.number_text import half_percent
from torchgauge.dashboard.statuses import LOOKS
from torchgauge.dashboard.statuses import NOTHING_PLANNED as BLANK
from torchgauge.records import METRICS

SCHEMA = 1


def metric_shard(latest: LatestResults, metric: str) -> tuple[str, bytes]:
    """The newest number of every case: median in the base unit, half of its interval in percent.

    A number that may not be compared is none here; ``apart`` names the modifier by its place.
    """
    medians: list[float | None] = []
    halves: list[float | None] = []
    apart: dict[str, str] = {}
    for place, entry in enumerate(chain.from_iterable(latest.grid)):
        number = entry.numbers.get(metric) if entry else None
        if entry and number and number["median"] is not None and (doubt := entry.doubt(metric)):
            apart[str(place)], number = doubt, None
        medians.append(_rounded(number["median"], 4) if number else None)
        halves.append(_rounded(half_percent(number), 2) if number else None)
    data = {
        "schema": SCHEMA,
        "metric": metric,
        "unit": METRICS[metric].unit,
        "better": METRICS[metric].better.value,
        "columns": [links.column_anchor(column) for column in latest.columns],
        "median": medians,
        "half": halves,
        "apart": apart,
        "built_differently": [
            i for i, w in enumerate(latest.workloads) if w.name in latest.built_differently
        ],
    }
    return f"latest/{metric}.json", msgspec.json.encode(data)


def history_shards(latest: LatestResults, recent: History) -> Iterator[tuple[str, bytes]]:
    """One file per device: a letter per cell and snapshot, oldest first, ``.`` where nothing was planned."""
    letters = np.full(256, ord(BLANK), np.uint8)
    letters[: len(STATUSES)] = [ord(LOOKS[status].letter) for status in STATUSES]
    texts = letters[recent.status]
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


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else float(f"{value:.{digits}g}")
