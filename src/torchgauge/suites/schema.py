"""Check a strict document against a msgspec structure and say exactly where it does not fit.

Every judgement in a data file says where it comes from: a :data:`Reason`, a :data:`Link` and a :data:`Date`.
"""

from __future__ import annotations

import copy
import difflib
import re
import threading
from typing import Annotated, Any, TypeVar

import msgspec

from torchgauge.errors import DataFileError
from torchgauge.suites.document import Document, shown

T = TypeVar("T")
Reason = Annotated[str, msgspec.Meta(min_length=10)]
Link = Annotated[str, msgspec.Meta(pattern=r"^https?://\S+$")]
Date = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$")]
_ONE_AT_A_TIME = threading.Lock()
"""msgspec 0.22 learns a type while it first converts to it; a second thread then crashes the process.

The runners of a device are such threads, and read data files when they need them.
"""
_AT = re.compile(r"^(?P<problem>.*) - at `(?P<path>\$.*)`$", re.DOTALL)
_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<name>.*)`$")
_ENUM = re.compile(r"^Invalid enum value ")
_MISSING = re.compile(r"^Object missing required field `(?P<name>.*)`$")
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>[^\]]*)\]")


def convert(document: Document, kind: type[T]) -> T:
    """The structure that ``document`` describes; raises :class:`DataFileError` for the first mistake."""
    try:
        with _ONE_AT_A_TIME:
            return msgspec.convert(document.value, kind)
    except msgspec.ValidationError as error:
        raise _explained(document, kind, str(error)) from None


def refuse(
    document: Document, path: str, problem: str, hint: str = "", kind: type[DataFileError] = DataFileError
) -> DataFileError:
    """The error (a ``kind``) for ``problem`` at ``path`` of ``document``: for rules that no type can say."""
    field = shown(document.whole_path(path))
    return kind(document.file, problem, line=document.line_of(path), field=field, hint=hint)


_NUMBER = re.compile(r"Expected `str[^`]*`, got `(int|float)`")
"""What is said of a text that YAML reads as a number."""
_KINDS = "docs/reference/yaml.md describes each field"


def _explained(document: Document, kind: Any, message: str) -> DataFileError:
    match = _AT.match(message)
    problem, path = (match["problem"], match["path"]) if match else (message, "$")
    if unknown := _UNKNOWN.match(problem):
        name = unknown["name"]
        here = _structure_of(_type_at(kind, path))  # none where the path leads to another type
        known = [item.encode_name for item in here.fields] if here is not None else []
        close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        meant = f"; did you mean {' or '.join(close)}?" if close else ""
        at = _with_keys(document, kind, message, path)
        return refuse(
            document, f"{at}.{name}", f"unknown field {name!r}{meant}", f"one of: {', '.join(known)}"
        )
    if missing := _MISSING.match(problem):
        return refuse(document, path, f"the field {missing['name']!r} is missing", _KINDS)
    hint = 'write it in quotes, as in "1234567"' if _NUMBER.match(problem) else _KINDS
    if _ENUM.match(problem) and (values := _values_of(_type_at(kind, path))):
        hint = f"one of: {', '.join(values)}"
    return refuse(
        document, _with_keys(document, kind, message, path), problem[:1].lower() + problem[1:], hint
    )


def _with_keys(document: Document, kind: Any, message: str, path: str) -> str:
    """``path`` with the key that msgspec hides behind ``[...]``: the one that alone gives ``message``."""
    parent, hidden, rest = path.partition("[...]")
    if not hidden:
        return path
    whole = copy.deepcopy(document.value)
    mapping: Any = whole
    for step in _STEP.finditer(parent.removeprefix("$")):
        mapping = mapping[step["name"] or int(step["index"])]
    everything = dict(mapping)
    for key, value in everything.items():
        mapping.clear()
        mapping[key] = value
        try:
            with _ONE_AT_A_TIME:
                msgspec.convert(whole, kind)
        except msgspec.ValidationError as error:
            if str(error) == message:
                return f"{parent}.{key}{rest}"
    return path


def _type_at(kind: Any, path: str) -> Any:
    """Return the type that ``kind`` has at ``path``; None where the path leads out of what is known."""
    with _ONE_AT_A_TIME:
        here: Any = msgspec.inspect.type_info(kind)
    for step in _STEP.finditer(path.removeprefix("$")):
        here = _below(here, step["name"])
    return here


def _values_of(here: Any) -> list[str]:
    """Return the values that the literals and enumerations of a type allow."""
    found: list[str] = []
    for each in getattr(here, "types", (here,)):
        if isinstance(each, msgspec.inspect.LiteralType):
            found += (str(value) or '""' for value in each.values)
        elif isinstance(each, msgspec.inspect.EnumType):
            found += (str(member.value) for member in each.cls)
    return found


def _below(here: Any, name: str | None) -> Any:
    structure = _structure_of(here)
    if name is not None and structure is not None:
        return next((item.type for item in structure.fields if item.encode_name == name), None)
    inner = (
        getattr(each, "item_type", None) or getattr(each, "value_type", None)
        for each in getattr(here, "types", (here,))
    )
    return next(filter(None, inner), None)


def _structure_of(here: Any) -> Any:
    options = getattr(here, "types", (here,))
    return next((item for item in options if isinstance(item, msgspec.inspect.StructType)), None)
