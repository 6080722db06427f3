"""Records out of hostile JSON: the right types, finite numbers, plain text.

msgspec fills the records at the speed of C. Journals are written as ASCII, so that a text which is not plain
needs a backslash and all others need no look.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.plain_text import unplain_field

LINE_BYTES = 1 << 20
"""Most bytes of one record: ten metrics with two thousand samples each, and their texts, have half of it."""
DEPTH = 24
"""Most levels of lists and objects; the records have ten."""
Record = TypeVar("Record")

_FIELD = re.compile(r"[a-z_]{1,24}")
_SAID = re.compile(
    r"Expected `[a-z| ]+`(, got `[a-z]+`)?|Object missing required field `[a-z_]+`|JSON is malformed"
    r"|Input data was truncated|(Number|Integer value) out of range"
)
"""Sentences of msgspec's own; a record that refuses its values quotes them, and says nothing here."""
_PATH = re.compile(r" - at `(\$[a-z_.0-9\[\]]*)`$")


@cache
def _decoder(cls: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(cls)


def decode(raw: bytes, cls: type[Record], what: str, most: int = LINE_BYTES) -> Record:
    """Return the record in the JSON ``raw``, which is called ``what`` and has at most ``most`` bytes.

    Raises :class:`RefusedSetError`.
    """
    if len(raw) > most:
        raise RefusedSetError(Reason.TOO_LARGE, f"{what} has {len(raw)} bytes; the limit is {most}")
    check_text(raw, what)
    try:
        found: Record = _decoder(cast("Any", cls)).decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeError, ValueError, OverflowError) as error:
        raise _refused(error, what) from error
    return found


def check_text(raw: bytes, what: str) -> None:
    """Refuse text that hides, reverses or acts; JSON that is not ASCII is none of our writers'."""
    if not raw.isascii() or b"\x7f" in raw:
        raise RefusedSetError(Reason.TEXT, f"{what} has bytes that are not printable ASCII")
    if b"\\" not in raw:
        return
    try:
        field = unplain_field(msgspec.json.decode(raw))
        if field is not None:
            named = field if _FIELD.fullmatch(field) else "a field"
            raise RefusedSetError(Reason.TEXT, f"{what}: {named} contains characters that cannot be printed")
    except RecursionError as error:
        raise _refused(error, what) from error
    except (msgspec.DecodeError, UnicodeError, ValueError) as error:
        surrogate = b"\\ud" in raw.lower()
        reason = Reason.TEXT if surrogate else _refused(error, what).reason
        raise RefusedSetError(reason, f"{what}: {_words_of(error)}") from error


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
        return RefusedSetError(Reason.DEPTH, f"{what} is nested too deeply")
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
