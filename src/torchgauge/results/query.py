"""The filter language of ``torchgauge results query``: ``field=value`` and its kin, never evaluated as code.

A condition is a field, one of ``= != > >= < <=`` and a value. ``*`` and ``?`` in the value of ``=`` and
``!=`` match any text and any one character. An empty value means null. Values of one field joined by several
``=`` are alternatives; all other conditions must hold together. A null is unequal to every value and neither
larger nor smaller than any. A list field equals a value where it contains it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Any

import pandas as pd
import pyarrow as pa

from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.records import Cause, Modifier, Phase, Status
from torchgauge.results import frames
from torchgauge.results.dataset import Runs, read_table
from torchgauge.results.frames import frame_of
from torchgauge.results.store import Store
from torchgauge.results.table_file import Where
from torchgauge.results.tables import RESULTS, SUMMARIES, TABLES, Column, Table
from torchgauge.suites.pattern import as_expression

_CONDITION = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(==|!=|>=|<=|=|>|<)\s*(.*?)\s*", re.DOTALL)
_ORDER: Mapping[str, Callable[[Any, Any], Any]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_WORDS: Mapping[str, type[Enum]] = {"status": Status, "cause": Cause, "phase": Phase, "modifiers": Modifier}
"""Columns of a closed list of words."""
_EXAMPLE = "status=crash, model=bert*, duration_s>60, cause!=, run_created_at>=2025-01-31"


@dataclass(frozen=True)
class Condition:
    """One parsed condition on a column."""

    column: Column
    operator: str
    value: str


def query(
    store: Store,
    conditions: Iterable[str] = (),
    table: str = "results",
    run: Runs = None,
    columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """The rows of ``table`` that meet ``conditions``, with all columns or only ``columns``.

    Of a compacted month only its parts are read that may hold such rows.

    Raises :class:`UsageError` for a condition that cannot be read or a value that does not fit its field,
    and :class:`UnknownNameError`, with suggestions, for an unknown field or table.
    """
    if table not in TABLES:
        raise UnknownNameError("table", table, TABLES)
    parsed = [parse_condition(text, TABLES[table]) for text in conditions]
    shown = _shown(TABLES[table], columns)
    read = tuple(dict.fromkeys((*shown, *(each.column.name for each in parsed))))
    told = tuple(name for name in TABLES[table].names if name in read or name in ("run_id", "case_key"))
    frame = frame_of(read_table(store, table, run, told, _where(parsed)))
    if table == SUMMARIES.name and "modifiers" in read:
        frame = frames.with_modifiers(store, frame, run)
    return frame[_mask(frame, parsed)].reset_index(drop=True)[list(shown)]


def _shown(table: Table, columns: Sequence[str] | None) -> tuple[str, ...]:
    """``columns``, or all of them; raises :class:`UnknownNameError` for one that is not there."""
    known = (*table.names, *(("modifiers",) if table is SUMMARIES else ()))
    for name in columns or ():
        if name not in known:
            raise UnknownNameError("column", name, known)
    return tuple(columns or known)


def parse_condition(text: str, table: Table) -> Condition:
    """``text`` as a condition on a column of ``table``."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a condition", hint=f"write field=value, such as {_EXAMPLE}")
    name, sign, value = match.groups()
    columns = {column.name: column for column in table.columns}
    if table is SUMMARIES:
        columns["modifiers"] = next(column for column in RESULTS.columns if column.name == "modifiers")
    if name not in columns:
        raise UnknownNameError(f"field of {table.name}", name, columns)
    sign = "=" if sign == "==" else sign
    column = columns[name]
    if sign in _ORDER:
        if pa.types.is_list(column.type) or pa.types.is_boolean(column.type) or not value:
            raise UsageError(
                f"{text!r}: {name} cannot be ordered, or the value is empty", hint=f"{name}={value}"
            )
        _typed(column, value)
    elif value and not _is_glob(value):
        _typed(column, value)
        words = [each.value for each in _WORDS.get(name, ())]
        if words and value not in words:
            raise UnknownNameError(f"value of {name}", value, words)
    return Condition(column, sign, value)


def _where(conditions: Iterable[Condition]) -> Where:
    """The columns that must hold one of some words: what of ``conditions`` spares reading other rows."""
    words: dict[str, set[str]] = {}
    open_ended = {"modifiers"}
    for condition in conditions:
        if condition.operator == "=":
            words.setdefault(condition.column.name, set()).add(condition.value)
            plain = pa.types.is_string(condition.column.type) and condition.value
            if not plain or _is_glob(condition.value):
                open_ended.add(condition.column.name)
    return tuple((name, frozenset(of)) for name, of in sorted(words.items()) if name not in open_ended)


def _mask(frame: pd.DataFrame, conditions: Iterable[Condition]) -> pd.Series[bool]:
    mask = pd.Series(True, index=frame.index)
    alternatives: dict[str, pd.Series[bool]] = {}
    for condition in conditions:
        found = _found(frame[condition.column.name], condition)
        if condition.operator == "=":
            name = condition.column.name
            alternatives[name] = alternatives[name] | found if name in alternatives else found
        else:
            mask &= found
    for found in alternatives.values():
        mask &= found
    return mask


def _found(values: pd.Series[Any], condition: Condition) -> pd.Series[bool]:
    column, text = condition.column, condition.value
    if condition.operator in _ORDER:
        found = _ORDER[condition.operator](values, _typed(column, text))
        return _certain(found)
    if pa.types.is_list(column.type):
        pattern = re.compile(as_expression(text))
        matches = [
            any(pattern.fullmatch(item) for item in items) if text else not items for items in values.tolist()
        ]
        equal = pd.Series(matches, index=values.index, dtype=bool)
    elif not text:
        equal = values.isna()
    elif _is_glob(text):
        equal = _certain(values.astype("string").str.fullmatch(as_expression(text)))
    else:
        equal = _certain(values == _typed(column, text))
    return equal if condition.operator == "=" else ~equal


def _certain(found: pd.Series[Any]) -> pd.Series[bool]:
    return found.astype("boolean").fillna(False).astype(bool)


def _is_glob(value: str) -> bool:
    return "*" in value or "?" in value


def _typed(column: Column, value: str) -> Any:
    """``value`` as the type of ``column``; raises :class:`UsageError` where it does not fit."""
    kind, expected = column.type, "a number"
    try:
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return float(value)
        if pa.types.is_boolean(kind):
            expected = "true or false"
            return {"true": True, "false": False}[value.lower()]
        if pa.types.is_timestamp(kind):
            expected = "a time such as 2025-01-31 or 2025-01-31T12:00:00+00:00 (UTC without an offset)"
            moment = datetime.fromisoformat(value)
            return pd.Timestamp(moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc))
    except (ValueError, KeyError):
        raise UsageError(f"{value!r} is not a value for {column.name}", hint=f"write {expected}") from None
    return value
