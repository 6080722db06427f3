"""The case of a row of ``results``, as far as the columns of the table hold it, and those columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from torchgauge.records import Case, Configuration, DeviceTarget, Shape, Workload

WORKLOAD = tuple(item.name for item in fields(Workload))
"""Columns that name a workload."""


def case_of(row: Mapping[str, Any]) -> Case:
    """The case of ``row``: enough for its id and for the expectations that select it.

    The configuration has its name and backend only, so the key may be another one than that of the row.
    """
    device = DeviceTarget(row["device"], row["device_index"])
    return Case(workload_of(row), Configuration(row["configuration"], row["backend"]), device)


def workload_of(row: Mapping[str, Any]) -> Workload:
    """The workload of ``row``, which has the columns :data:`WORKLOAD`."""
    return Workload(**{name: row[name] for name in WORKLOAD} | {"shape": _shape(row["shape"])})


def columns_of(workload: Workload) -> dict[str, Any]:
    """The columns :data:`WORKLOAD` of ``workload``."""
    shape = json.dumps(dict(workload.shape)) if workload.shape else "{}"
    return {name: getattr(workload, name) for name in WORKLOAD} | {"shape": shape}


def json_object(text: str | None) -> dict[str, Any]:
    """The JSON object in ``text``, empty for none; what is no object stands whole under ``shape``."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {"shape": text}
    return found if isinstance(found, dict) else {"shape": text}


def _shape(text: str | None) -> Shape:
    found = json_object(text).items()
    return tuple(sorted((name, value if type(value) is int else str(value)) for name, value in found))
