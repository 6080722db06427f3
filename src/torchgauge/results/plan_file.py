"""The file of a plan, of whatever schema version wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchgauge.errors import DataFileError
from torchgauge.records import SCHEMA_VERSION, Group, Plan, RecordError, from_plain
from torchgauge.results import fast_json
from torchgauge.results.json_file import RESTORE, read_object
from torchgauge.results.migrations import PLAN, check_version, migrate_record

PLANNED_BY = "torchgauge plan SUITE... --json > plan.json makes one"
"""What to try where somebody names a file of a plan that is none."""


def read_plan(path: Path, hint: str = RESTORE) -> Plan:
    """The plan in the file ``path``; raises :class:`DataFileError` where it does not fit its schema."""
    data = read_object(path, hint)
    version = check_version(data.get("schema_version"), str(path))
    data = migrate_record(PLAN, data, version) | {"schema_version": SCHEMA_VERSION}
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


def plan_version(path: Path, hint: str = RESTORE) -> int:
    """The schema version that wrote the plan in the file ``path``; raises as :func:`read_plan`."""
    return check_version(fast_json.field_of(path, "schema_version", hint), str(path))


def _drained(items: list[Any]) -> Iterator[tuple[int, Any]]:
    """The items with their places, each of which the list then lacks."""
    for place in range(len(items)):
        item, items[place] = items[place], None
        yield place, item
