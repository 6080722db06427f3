"""Older schema versions, read as if they were of today; files are never rewritten.

Why: results outlive the code that wrote them. Every journal (by its stamp), every Parquet file (by its
metadata) and the store as a whole say their version; a step turns version n into n + 1. Version 0 is the
format of the prototype: ``error`` in place of ``failure`` in a result, a column ``device_name`` in place of
``device``, and no ``modifiers``, ``realised_notes``, ``block``, ``observation`` or calibrations. Version 1
had random weights only, configurations without compile mode and pinning, and in a plan the text
``unsupported`` in place of a ``refusal``. Until version 2 two to five samples had an interval, by a bootstrap
that covers less than it says: it is not read. Version 3 had no nodes: one machine measured each run. Until
version 4 some names were private words (:data:`_WORDS_UNTIL_4`), and until version 5 a row knew of one
attempt only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torchgauge.errors import UsageError
from torchgauge.records import SCHEMA_VERSION

Plain = dict[str, Any]
PLAN = "plan"
"""The kind of a ``plan.json``, which is no line of a journal."""
COMPARISON_PLAN = "comparison_plan"
"""The same of an A/B run."""
ArrowTable = Any
"""A ``pyarrow.Table``; not named, so that the journal can be read without pyarrow."""


def check_version(found: object, where: str) -> int:
    """``found`` as a schema version that this code reads; raises :class:`UsageError` for a newer one."""
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise UsageError(f"{where}: the schema version {found!r} is not a version", hint="restore the file")
    if found > SCHEMA_VERSION:
        raise UsageError(
            f"{where} was written by a newer torchgauge (schema version {found}, this one knows "
            f"{SCHEMA_VERSION})",
            hint="upgrade torchgauge to read it",
        )
    return found


def migrate_record(kind: str, data: Plain, version: int) -> Plain:
    """The payload of a journal line of ``kind``, written by schema ``version``, as of today."""
    for step in range(version, SCHEMA_VERSION):
        data = RECORD_STEPS[step](kind, data)
    return data


_APPENDED_SINCE, _RENAMED_IN_5 = 3, ("launches", "steps")


def appended_since(name: str) -> int:
    """The version from which on steps over table ``name`` only append columns: a part of it can be read."""
    return 5 if name in _RENAMED_IN_5 else _APPENDED_SINCE


def migrate_table(name: str, table: ArrowTable, version: int) -> ArrowTable:
    """The Parquet table ``name``, written by schema ``version``, with the columns of today."""
    for step in range(version, SCHEMA_VERSION):
        table = TABLE_STEPS[step](name, table)
    return table


def _record_0_to_1(kind: str, data: Plain) -> Plain:
    if kind != "result":
        return data
    renamed = {("failure" if key == "error" else key): value for key, value in data.items()}
    return renamed | {"schema_version": 1}


def _table_0_to_1(name: str, table: ArrowTable) -> ArrowTable:
    import pyarrow as pa

    renamed = ["device" if column == "device_name" else column for column in table.column_names]
    table = table.rename_columns(renamed)
    rows = table.num_rows
    added: dict[str, dict[str, Any]] = {
        "results": {column: pa.array([[]] * rows, pa.list_(pa.string())) for column in _LISTS_SINCE_1},
        "samples": {"block": pa.nulls(rows, pa.int64())},
        "environments": {"observation": pa.array([0] * rows, pa.int64())},
    }
    for column, values in added.get(name, {}).items():
        table = table.append_column(column, values)
    return table


_LISTS_SINCE_1 = ("modifiers", "realised_notes")


def _record_1_to_2(kind: str, data: Plain) -> Plain:
    """What came with version 2 has defaults; only the plan's words changed."""
    if kind == PLAN:
        return _plan_1_to_2(data)
    return data | {"schema_version": 2} if "schema_version" in data else data


def _plan_1_to_2(plan: Plain) -> Plain:
    def planned(case: Plain) -> Plain:
        reason = case.get("unsupported", "")
        kept = {key: value for key, value in case.items() if key != "unsupported"}
        return kept | {"refusal": {"status": "unsupported", "reason": reason} if reason else None}

    groups = [group | {"cases": [planned(case) for case in group["cases"]]} for group in plan["groups"]]
    return plan | {"groups": groups, "schema_version": 2}


def _table_1_to_2(name: str, table: ArrowTable) -> ArrowTable:
    import pyarrow as pa

    rows = table.num_rows
    if name in ("results", "summaries"):
        table = table.append_column("weights", pa.array(["random"] * rows, pa.string()))
    if name == "results":
        for column in ("configuration_compile", "configuration_pinning"):
            table = table.append_column(column, pa.nulls(rows, pa.string()))
    return table


_TOO_FEW = ("bootstrap-percentile", "single")
"""Methods until version 2 of the interval of fewer than six samples."""


def _record_2_to_3(kind: str, data: Plain) -> Plain:
    def without(summary: Plain) -> Plain:
        few = summary["method"] in _TOO_FEW
        return summary | {"low": None, "high": None, "method": "too-few"} if few else summary

    if kind == "result":
        data = data | {"summaries": [without(each) for each in data["summaries"]]}
    return data | {"schema_version": 3} if "schema_version" in data else data


def _table_2_to_3(name: str, table: ArrowTable) -> ArrowTable:
    import pyarrow as pa
    import pyarrow.compute as pc

    if name != "summaries":
        return table
    few = pc.is_in(table["method"], value_set=pa.array(_TOO_FEW, pa.string()))
    for column, value in (("low", None), ("high", None), ("method", "too-few")):
        kept = pc.if_else(few, pa.scalar(value, table[column].type), table[column])
        table = table.set_column(table.column_names.index(column), column, kept)
    return table


def _record_3_to_4(_kind: str, data: Plain) -> Plain:
    """What came with version 4 has defaults."""
    return data | {"schema_version": 4} if "schema_version" in data else data


def _table_3_to_4(name: str, table: ArrowTable) -> ArrowTable:
    import pyarrow as pa

    if name != "calibrations":
        return table
    return table.append_column("node", pa.nulls(table.num_rows, pa.string()))


_WORDS_UNTIL_4 = {
    "ahead": "prefetch",
    "cut": "sharding",
    "quad": "abba_block",
    "quads": "abba_blocks",
    "poison_package": "conflicting_package",
}
"""Names of fields and columns, and a cause, with what they are called since."""


def _renamed(data: Plain) -> Plain:
    return {_WORDS_UNTIL_4.get(name, name): value for name, value in data.items()}


def _record_4_to_5(kind: str, data: Plain) -> Plain:
    """Words of the field; nothing else changed."""
    if kind == "result":
        data = data | {"cause": _WORDS_UNTIL_4.get(data["cause"], data["cause"])}
    elif kind == "launch":
        data = data | {"blocks": [_renamed(each) for each in data["blocks"]]}
    elif kind in (PLAN, COMPARISON_PLAN):
        data = data | {"settings": _renamed(data["settings"])}
        if data.get("schedule"):
            data["schedule"] = _renamed(data["schedule"])
        if "provenance" in data:
            named = (
                each | {"name": _WORDS_UNTIL_4.get(each["name"], each["name"])} for each in data["provenance"]
            )
            data["provenance"] = list(named)
    return data | {"schema_version": 5} if "schema_version" in data else data


def _table_4_to_5(name: str, table: ArrowTable) -> ArrowTable:
    import pyarrow.compute as pc

    if name in _RENAMED_IN_5:
        return table.rename_columns([_WORDS_UNTIL_4.get(column, column) for column in table.column_names])
    if name == "results" and "cause" in table.column_names:
        causes = table["cause"]
        said = pc.equal(causes, "poison_package")
        told = pc.if_else(said, "conflicting_package", causes.cast("string"))
        return table.set_column(table.column_names.index("cause"), "cause", told)
    return table


def _record_5_to_6(_kind: str, data: Plain) -> Plain:
    """What came with version 6 has defaults."""
    return data | {"schema_version": 6} if "schema_version" in data else data


def _table_5_to_6(name: str, table: ArrowTable) -> ArrowTable:
    import pyarrow as pa

    if name != "results":
        return table
    table = table.append_column("attempt", pa.array([1] * table.num_rows, pa.int64()))
    return table.append_column("attempts", pa.nulls(table.num_rows, pa.string()))


RECORD_STEPS: Mapping[int, Callable[[str, Plain], Plain]] = {
    0: _record_0_to_1,
    1: _record_1_to_2,
    2: _record_2_to_3,
    3: _record_3_to_4,
    4: _record_4_to_5,
    5: _record_5_to_6,
}
TABLE_STEPS: Mapping[int, Callable[[str, ArrowTable], ArrowTable]] = {
    0: _table_0_to_1,
    1: _table_1_to_2,
    2: _table_2_to_3,
    3: _table_3_to_4,
    4: _table_4_to_5,
    5: _table_5_to_6,
}
