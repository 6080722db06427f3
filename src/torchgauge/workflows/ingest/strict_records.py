"""Records out of hostile JSON: exact fields, finite bounded numbers, plain text.

Each record class has a twin, made from its annotations, that msgspec fills at the speed of C: unknown fields
are refused and, since our writer writes every field, missing ones too. Of a key that is there twice every
reader here takes the last one. Journals are written as ASCII, so that a text which is not plain needs a
backslash and all others need no look.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Annotated, Any, Union

import msgspec

from torchgauge.records.codec import LATER
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.plain_text import unplain_field

LINE_BYTES = 1 << 20
"""Most bytes of one record: ten metrics with two thousand samples each, and their texts, have half of it."""
TEXT_CHARACTERS = 64 << 10
"""Most characters of one text: a log's excerpt is 4 KiB, a traceback less than this."""
ITEMS = 100_000
"""Most items of one list."""
MOST = 2.0**53
"""Largest number and count: beyond it a float skips integers. Rates may be larger."""
LARGEST = 1e24
"""Largest float: a yottaflop per second is no device."""
DEPTH = 24
"""Most levels of lists and objects; the records have ten."""

_FIELD = re.compile(r"[a-z_]{1,24}")
_SAID = re.compile(
    r"Expected `[a-z| ]+`(, got `[a-z]+`| of length [<>=]+ [0-9]+)?"
    r"|Object missing required field `[a-z_]+`|[A-Za-z ]+"
)
_PATH = re.compile(r" - at `(\$[a-z_.0-9\[\]]*)`$")
_FLOAT = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
_INT = Annotated[int, msgspec.Meta(ge=-int(MOST), le=int(MOST))]
_STR = Annotated[str, msgspec.Meta(max_length=TEXT_CHARACTERS)]
_PLAIN: Mapping[Any, Any] = {float: _FLOAT, int: _INT, str: _STR, bool: bool, type(None): None}


@cache
def twin(cls: type, raw: str = "") -> Any:
    """Return the strict msgspec structure of the record ``cls``; later fields may be left out, no others.

    The records in the list ``raw`` stay as they are, of :class:`msgspec.Raw`.
    """
    hints = typing.get_type_hints(cls)
    later = _later(cls)
    kinds = {name: _strict(hint) for name, hint in hints.items() if name != raw}
    if raw:
        kinds[raw] = Annotated[tuple[msgspec.Raw, ...], msgspec.Meta(max_length=ITEMS)]
    fields: list[Any] = [
        (item.name, kinds[item.name], *([later[item.name]] if item.name in later else []))
        for item in dataclasses.fields(cls)
    ]
    # without the collector's care: records hold no cycles, and it would look through all rows so far
    return msgspec.defstruct(
        cls.__name__,
        fields,
        frozen=True,
        forbid_unknown_fields=True,
        omit_defaults=True,
        kw_only=True,
        gc=False,
    )


def _later(cls: type) -> dict[str, Any]:
    """Return the defaults at which records leave fields of ``cls`` out, by name."""
    return {item.name: item.default for item in dataclasses.fields(cls) if LATER in item.metadata}


@cache
def _decoder(cls: type) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(twin(cls))


def decode(raw: bytes, cls: type, what: str) -> Any:
    """The twin of ``cls`` in the JSON ``raw``, called ``what``; raises :class:`RefusedSetError`.

    ``raw`` is one record as :func:`torchgauge.records.to_json` or ``json.dumps`` writes it.
    """
    if len(raw) > LINE_BYTES:
        raise RefusedSetError(Reason.TOO_LARGE, f"{what} has {len(raw)} bytes; at most {LINE_BYTES}")
    return decode_large(raw, cls, what)


def decode_large(raw: bytes, cls: type, what: str) -> Any:
    """:func:`decode` for a record that is a whole file, whose size was looked at before."""
    check_text(raw, what)
    try:
        found = _decoder(cls).decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeError, ValueError) as error:
        raise _refused(error, what) from error
    return found


def decode_outline(raw: bytes, cls: type, field: str, what: str) -> Any:
    """:func:`decode_large` for a file most of which is the list ``field``, whose records stay as they are.

    They are of :class:`msgspec.Raw`, for :func:`decode` one by one: a large file never is a large tree.
    """
    _check_ascii(raw, what)
    try:
        found = msgspec.json.Decoder(twin(cls, field)).decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeError, ValueError) as error:
        raise _refused(error, what) from error
    _refuse_unplain(msgspec.to_builtins(msgspec.structs.replace(found, **{field: ()})), what)
    return found


def check_text(raw: bytes, what: str) -> None:
    """Refuse text that hides, reverses or acts; JSON that is not ASCII is none of our writers'."""
    _check_ascii(raw, what)
    if b"\\" not in raw:
        return
    try:
        _refuse_unplain(msgspec.json.decode(raw), what)
    except RecursionError as error:
        raise _refused(error, what) from error
    except (msgspec.DecodeError, UnicodeError, ValueError) as error:
        surrogate = b"\\ud" in raw.lower()
        reason = Reason.TEXT if surrogate else _refused(error, what).reason
        raise RefusedSetError(reason, f"{what}: {_words_of(error)}") from error


def _check_ascii(raw: bytes, what: str) -> None:
    if not raw.isascii() or b"\x7f" in raw:
        raise RefusedSetError(Reason.TEXT, f"{what} has bytes that are not printable ASCII")


def _refuse_unplain(value: Any, what: str) -> None:
    field = unplain_field(value)
    if field is not None:
        named = field if _FIELD.fullmatch(field) else "a field"
        raise RefusedSetError(Reason.TEXT, f"{what}: the text of {named} is not plain")


def check_depth(value: object, what: str) -> None:
    """Refuse JSON values that are nested too deep, in a field that may hold any."""
    level: list[object] = [value]
    for _ in range(DEPTH):
        level = [
            item
            for each in level
            if isinstance(each, (list, dict))
            for item in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise RefusedSetError(Reason.DEPTH, f"{what} is nested more than {DEPTH} levels deep")


def _refused(error: Exception, what: str) -> RefusedSetError:
    text, words = str(error), _words_of(error)
    if isinstance(error, RecursionError):
        return RefusedSetError(Reason.DEPTH, f"{what} is nested too deep")
    if "out of range" in text or re.search(r"Expected `(float|int)` [<>]", text):
        return RefusedSetError(Reason.NUMBER, f"{what}: {words}")
    if isinstance(error, msgspec.ValidationError):
        return RefusedSetError(Reason.SCHEMA, f"{what}: {words}")
    return RefusedSetError(Reason.JSON, f"{what}: {words}")


def _words_of(error: Exception) -> str:
    """What ``error`` says and where, without the words of the set that it quotes."""
    text = str(error)
    said, path = _SAID.match(text), _PATH.search(text)
    return (said[0].strip() if said else "it is wrong") + (f" at {path[1]}" if path else "")


def _strict(kind: Any) -> Any:
    """The strict form of a field's type."""
    if dataclasses.is_dataclass(kind):
        return twin(typing.cast(type, kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        return Union[tuple(_strict(arg) for arg in args)]
    if origin is tuple and args[1:] == (Ellipsis,):
        item: Any = _strict(args[0])
        return Annotated[tuple[item, ...], msgspec.Meta(max_length=ITEMS)]
    if origin is tuple:
        return tuple[tuple(_strict(arg) for arg in args)]  # type: ignore[misc]  # a type made at run time
    return kind
