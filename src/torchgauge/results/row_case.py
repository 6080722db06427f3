"""The case of a row of ``results``, as far as the columns of the table hold it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from torchgauge.records import Case, Configuration, DeviceTarget, Workload


def case_of(row: Mapping[str, Any]) -> Case:
    """The case of ``row``: enough for its id and for the expectations that select it.

    The configuration has its name and backend only, so the key may be another one than that of the row.
    """
    found = json.loads(row["shape"]) if row["shape"] else {}
    shape = tuple(sorted((key, int(str(value))) for key, value in found.items()))
    workload = Workload(
        row["suite"], row["model"], row["mode"], row["dtype"], row["batch"], row["size"],
        shape, row["seed"], row["weights"],
    )  # fmt: skip
    device = DeviceTarget(row["device"], row["device_index"])
    return Case(workload, Configuration(row["configuration"], row["backend"]), device)
