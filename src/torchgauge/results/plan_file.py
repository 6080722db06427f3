"""The file of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchgauge.errors import DataFileError
from torchgauge.records import Group, Plan, RecordError, from_plain
from torchgauge.results.json_file import RESTORE, read_object
from torchgauge.results.schema_version import check_version

PLANNED_BY = "torchgauge plan SUITE... --json > plan.json writes a plan"
"""What to try where somebody names a file of a plan that is none."""


def read_plan(path: Path, hint: str = RESTORE) -> Plan:
    """Return the plan in the file ``path``.

    Raises :class:`DataFileError` where it does not fit its schema and :class:`OtherSchemaError` for a plan of
    another schema version.
    """
    data = read_object(path, hint)
    check_version(data.get("schema_version"), str(path))
    groups = data.get("groups")
    try:
        if not isinstance(groups, list):
            return from_plain(Plan, data)
        plan = from_plain(Plan, data | {"groups": []})
        # one group after another, so that the records take the place of the values they are made of
        decoded = tuple(from_plain(Group, item, f"Plan.groups[{i}]") for i, item in _drained(groups))
        return replace(plan, groups=decoded)
    except RecordError as error:
        raise DataFileError(str(path), str(error), hint=RESTORE) from error


def _drained(items: list[Any]) -> Iterator[tuple[int, Any]]:
    """The items with their places, each of which the list then lacks."""
    for place in range(len(items)):
        item, items[place] = items[place], None
        yield place, item
