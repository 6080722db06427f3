"""Records to plain JSON values and back, strictly, with the standard library only.

Why our own: cases travel as JSON into interpreters that have neither msgspec nor torchgauge installed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
import typing
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any, TypeVar

from torchgauge.counted import counted

SCHEMA_VERSION = 7
"""Version of every record; ``results/schema_version.py`` refuses each other version."""

LATER = "later"
"""Metadata key of a field added after records were stored.

At its default the field is omitted, so digests of stored plans do not change.
"""

Scalar = typing.Union[str, int, float, bool, None]
Record = TypeVar("Record")
Decoder = Callable[[Any], Any]
_SCALARS = frozenset({type(None), str, int, float, bool})


class RecordError(ValueError):
    """Plain values that do not fit a record; the message starts with the path of the mistake.

    The path is put together while the error travels outwards, so that right values pay nothing for it.
    """

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.problem, self.path = problem, path

    def inside(self, step: str) -> RecordError:
        """This error, seen from one level further out."""
        return RecordError(self.problem, step + self.path)

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}" if self.path else self.problem


def digest(value: object) -> str:
    """Sixteen hex digits of SHA-256 over the canonical JSON of ``value``."""
    return hashlib.sha256(_canonical_text(value).encode()).hexdigest()[:16]


_canonical_text = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def to_plain(value: Any) -> Any:
    """Records, enumerations and tuples as dicts, strings and lists (JSON values)."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is tuple and _SCALARS.issuperset(map(type, value)):
        return list(value)  # thousands of samples at the speed of C
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        fields = _fields(typing.cast(Any, type(value)))
        pairs = ((name, getattr(value, name), default) for name, default in fields)
        return {name: to_plain(item) for name, item, default in pairs if default is None or item != default}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def from_plain(cls: type[Record], data: Any, path: str = "") -> Record:
    """The record of type ``cls`` that ``data`` describes.

    Raises :class:`RecordError` for an unknown or missing field or a value of the wrong type.
    """
    decode: Decoder = _decoder(typing.cast(Any, cls))
    try:
        return typing.cast(Record, decode(data))
    except RecordError as error:
        raise error.inside(path or cls.__name__) from error.__cause__


def prepare(cls: type) -> None:
    """Build the decoder of ``cls`` now, so that forks of this process find it ready."""
    _decoder(typing.cast(Any, cls))


def to_json(value: Any) -> str:
    """One line of JSON; raises ``ValueError`` on a non-finite number."""
    return json.dumps(to_plain(value), separators=(",", ":"), allow_nan=False, ensure_ascii=True)


@cache
def _fields(cls: Any) -> tuple[tuple[str, Any], ...]:
    """Return the name of each field of ``cls``, and the default at which it is left out; None for never."""
    return tuple(
        (item.name, item.default if LATER in item.metadata else None) for item in dataclasses.fields(cls)
    )


@cache
def _decoder(kind: Any) -> Decoder:
    if dataclasses.is_dataclass(kind):
        return _record_decoder(typing.cast(type, kind))
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _union_decoder(args)
    if origin is tuple:
        return _list_decoder(args[0]) if args[1:] == (Ellipsis,) else _tuple_decoder(args)
    if origin is dict or kind is dict:
        return _checked(dict)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum_decoder(kind)
    if kind is float:
        return _float
    if kind in (typing.Any, object):
        return lambda data: data
    return _checked(kind)


def _record_decoder(cls: type) -> Decoder:
    hints = typing.get_type_hints(cls)
    fields = {item.name: _decoder(hints[item.name]) for item in dataclasses.fields(cls)}
    required = frozenset(
        item.name
        for item in dataclasses.fields(cls)
        if item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
    )

    def decode(data: Any) -> Any:
        if type(data) is cls:
            return data  # put there by who has it already
        if not isinstance(data, dict):
            raise RecordError(f"expected an object, found {type(data).__name__}")
        if not data.keys() <= fields.keys():
            raise RecordError("unknown field", f".{min(data.keys() - fields.keys())}")
        if not required <= data.keys():
            raise RecordError("missing field", f".{min(required - data.keys())}")
        values = {}
        for name, value in data.items():
            try:
                values[name] = fields[name](value)
            except RecordError as error:
                raise error.inside(f".{name}") from error.__cause__
        try:
            return cls(**values)
        except ValueError as error:
            raise RecordError(str(error)) from error

    return decode


def _union_decoder(args: tuple[Any, ...]) -> Decoder:
    options = [_decoder(arg) for arg in args if arg is not type(None)]
    plain = _SCALARS.intersection(args)

    def decode(data: Any) -> Any:
        if type(data) in plain:
            return data
        problem: RecordError | None = None
        for option in options:
            try:
                return option(data)
            except RecordError as error:
                problem = problem or error
        raise problem or RecordError(f"unexpected {data!r}")

    return decode


def _list_decoder(item: Any) -> Decoder:
    """A tuple of any length; one of plain numbers or strings is taken whole."""
    decode_item = _decoder(item)
    whole = frozenset({item}) if item in (float, int, str) else None

    def decode(data: Any) -> Any:
        values = _items(data)
        if whole is not None and whole.issuperset(map(type, values)):
            return tuple(values)
        return tuple(_at(index, decode_item, value) for index, value in enumerate(values))

    return decode


def _tuple_decoder(args: tuple[Any, ...]) -> Decoder:
    parts = [_decoder(arg) for arg in args]

    def decode(data: Any) -> Any:
        values = _items(data)
        if len(values) != len(parts):
            raise RecordError(f"expected {counted(len(parts), 'item')}, found {len(values)}")
        return tuple(
            _at(index, part, value) for index, (part, value) in enumerate(zip(parts, values, strict=True))
        )

    return decode


def _at(index: int, decode: Decoder, value: Any) -> Any:
    try:
        return decode(value)
    except RecordError as error:
        raise error.inside(f"[{index}]") from error.__cause__


def _items(data: Any) -> list[Any]:
    if not isinstance(data, (list, tuple)):
        raise RecordError(f"expected a list, found {type(data).__name__}")
    return list(data)


def _enum_decoder(kind: type[Enum]) -> Decoder:
    def decode(data: Any) -> Any:
        try:
            return kind(data)
        except ValueError:
            known = ", ".join(str(item.value) for item in kind)
            raise RecordError(f"{data!r} is not one of {known}") from None

    return decode


def _float(data: Any) -> float:
    if isinstance(data, bool) or not isinstance(data, (int, float)):
        raise RecordError(f"expected a number, found {type(data).__name__}")
    try:
        return float(data)
    except OverflowError as error:
        raise RecordError("expected a number in the range of a float") from error


def _checked(kind: type) -> Decoder:
    def decode(data: Any) -> Any:
        if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
            raise RecordError(f"expected {kind.__name__}, found {type(data).__name__}")
        return data

    return decode
