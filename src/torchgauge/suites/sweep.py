"""The sweep of a model: the product of its axes, less what is excluded, each point a workload of its own."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence

from torchgauge.counted import counted
from torchgauge.records import Shape
from torchgauge.suites.document import Document
from torchgauge.suites.schema import refuse

Value = int | str
MOST_POINTS = 10_000
"""Workloads of one model: a night of all suites has about as many cases."""
_AXIS = re.compile(r"[a-z][a-z0-9_]*")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*")
_TAKEN = frozenset({"size", "seed", "weights"})
"""Fields of a case id that are no shape."""


def points(
    document: Document,
    at: str,
    axes: Mapping[str, Sequence[Value]],
    exclude: Sequence[Mapping[str, Value]],
    shape: Mapping[str, int],
) -> tuple[Shape, ...]:
    """All points of ``axes`` that no entry of ``exclude`` describes, in the order of the file.

    An entry excludes the points that have all of its values. ``at`` is the path of the model in ``document``
    and ``shape`` its sizes outside of the sweep. Raises :class:`DataFileError` with the path of a mistake.
    """
    count = math.prod(map(len, axes.values())) if axes else 0
    if count > MOST_POINTS:
        raise refuse(document, f"{at}.axes", f"has {counted(count, 'point')}", f"use at most {MOST_POINTS:,}")
    for name, values in axes.items():
        _check_axis(document, f"{at}.axes.{name}", name, values, shape)
    _check_excluded(document, f"{at}.exclude", axes, exclude)
    found = (
        [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())] if axes else []
    )
    kept = [point for point in found if not any(each.items() <= point.items() for each in exclude)]
    if found and not kept:
        raise refuse(document, f"{at}.exclude", "excludes all points of the sweep", "exclude fewer points")
    return tuple(tuple(sorted(point.items())) for point in kept)


def _check_axis(
    document: Document, at: str, name: str, values: Sequence[Value], shape: Mapping[str, int]
) -> None:
    if not _AXIS.fullmatch(name) or name in _TAKEN:
        raise refuse(document, at, f"{name!r} is not the name of an axis", "use a word such as seq or heads")
    if name in shape:
        raise refuse(document, at, f"{name!r} is both an axis and a key of the shape", "keep one of the two")
    if not values:
        raise refuse(document, at, "an axis without a value", "list at least one value")
    for index, value in enumerate(values):
        if value in values[:index]:
            raise refuse(document, f"{at}[{index}]", f"{value!r} is listed twice", "keep one of the two")
        if isinstance(value, str) and not _WORD.fullmatch(value):
            raise refuse(
                document,
                f"{at}[{index}]",
                f"{value!r} is not a word",
                "use letters, digits and _.+- after a letter",
            )


def _check_excluded(
    document: Document,
    at: str,
    axes: Mapping[str, Sequence[Value]],
    exclude: Sequence[Mapping[str, Value]],
) -> None:
    for index, each in enumerate(exclude):
        if not each:
            raise refuse(document, f"{at}[{index}]", "excludes everything", "set an axis and its value")
        for name, value in each.items():
            if name not in axes:
                known = ", ".join(axes) or "none"
                raise refuse(
                    document,
                    f"{at}[{index}].{name}",
                    f"{name!r} is not an axis of the model",
                    f"axes: {known}",
                )
            if value not in axes[name]:
                known = ", ".join(map(str, axes[name]))
                raise refuse(
                    document, f"{at}[{index}].{name}", f"{value!r} is not in the axis", f"one of: {known}"
                )
