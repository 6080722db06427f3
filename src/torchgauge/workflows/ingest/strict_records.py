"""Records out of hostile JSON: exact fields, finite bounded numbers, no key twice, plain text.

Each record class has a twin, made from its annotations, that msgspec fills at the speed of C: unknown fields
are refused and, since our writer writes every field, missing ones too. A key that is there twice shows in the
count of keys, because with exact fields nothing else can add any. Journals are written as ASCII, so that a
text which is not plain needs a backslash and all others need no look.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Annotated, Any, Union

import msgspec
import numpy as np

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


_ENCODER = msgspec.json.Encoder()


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
    _check_keys(raw, found, cls, what)
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
    _check_quotes(raw, found, what)
    return found


def _check_keys(raw: bytes, found: Any, cls: type, what: str) -> None:
    """Refuse ``raw``, of which ``found`` was decoded, where a key is in it twice.

    Every key ends in ``":``, where no white space stands before a colon; if there are as many of them as the
    record has fields, each field came once. Texts with colons may look like more keys: then the quotation
    marks are counted, of which a key has two, and which ``found`` has as many of when it is written again.
    """
    wanted = _keys_of(cls)
    if wanted is not None:
        octets = np.frombuffer(raw, np.uint8)  # a tenth of the time of the methods of bytes
        before = octets[np.flatnonzero(octets == ord(":")) - 1]
        blank = bool((before <= ord(" ")).any())
        if not blank and np.count_nonzero(before == ord('"')) == wanted(found):
            return
    _check_quotes(raw, found, what)


def _check_quotes(raw: bytes, found: Any, what: str) -> None:
    if _quotes(raw) != _quotes(_ENCODER.encode(found)):
        raise RefusedSetError(Reason.DUPLICATE_KEY, f"{what} has a key twice")


def _quotes(raw: bytes) -> int:
    """Quotation marks in JSON that begin or end a text."""
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")  # a run of backslashes is paired from its left
    return raw.count(b'"')


@cache
def _keys_of(cls: type) -> Callable[[Any], int] | None:
    """What counts the keys of a record of ``cls`` with all records in it; None where it holds free JSON."""
    hints = typing.get_type_hints(cls)
    constant, nested, later = 0, [], _later(cls)
    for item in dataclasses.fields(cls):
        constant += item.name not in later
        kind, many, optional = _record_in(hints[item.name])
        if kind is dict:
            return None
        if kind is None:
            continue
        inner = _keys_of(kind)
        if inner is None:
            return None
        fixed = None if _nests(kind) or _later(kind) else len(dataclasses.fields(kind))
        if fixed is not None and not many and not optional:
            constant += fixed
        else:
            nested.append((item.name, inner, many, fixed))

    def count(found: Any) -> int:
        total: int = constant + sum(getattr(found, name) != default for name, default in later.items())
        for name, inner, many, fixed in nested:
            value = getattr(found, name)
            if many:
                total += len(value) * fixed if fixed is not None else sum(map(inner, value))
            elif value is not None:
                total += fixed if fixed is not None else inner(value)
        return total

    return count


def _record_in(kind: Any) -> tuple[Any, bool, bool]:
    """The record class (or ``dict``) in a field's type, whether it is a list, and whether it may be null."""
    args = typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return kind, False, False
    if kind is dict or typing.get_origin(kind) is dict:
        return dict, False, False
    if typing.get_origin(kind) is tuple and args[1:] == (Ellipsis,) and dataclasses.is_dataclass(args[0]):
        return args[0], True, False
    records = [arg for arg in args if dataclasses.is_dataclass(arg)]
    return (records[0], False, True) if records else (None, False, False)


def _nests(cls: type) -> bool:
    """Whether a record of ``cls`` has records in it."""
    return any(_record_in(hint)[0] is not None for hint in typing.get_type_hints(cls).values())


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
