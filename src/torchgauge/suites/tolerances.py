"""Which accuracy tolerance a workload has, from ``data/tolerances.yaml``.

Keyed by accuracy class, which names a kind of operation or a whole network, by dtype and by mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated

import msgspec

from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.records import AUTOCAST, Tolerance, Workload
from torchgauge.suites.catalog import DATA, Name
from torchgauge.suites.check import CHECK
from torchgauge.suites.document import read_document
from torchgauge.suites.lending import as_lender_knows
from torchgauge.suites.pattern import matches
from torchgauge.suites.schema import Date, Link, Reason, convert
from torchgauge.suites.suite import ModelEntry

DTYPES = ("float64", "float32", "float16", "bfloat16", f"{AUTOCAST}float16", f"{AUTOCAST}bfloat16")
EAGER = "eager"
"""The backend of the baseline."""
Positive = Annotated[float, msgspec.Meta(gt=0)]


class DtypeFields(msgspec.Struct, forbid_unknown_fields=True):
    """Tolerances of one accuracy class and dtype; modes that are not listed use ``inference``."""

    inference: Positive
    training: Positive
    rmse_multiplier: Annotated[float, msgspec.Meta(ge=1)]


class ClassFields(msgspec.Struct, forbid_unknown_fields=True):
    """One accuracy class: where its values come from, and the values of each dtype."""

    reason: Reason
    link: Link
    date: Date
    float64: DtypeFields
    float32: DtypeFields
    float16: DtypeFields
    bfloat16: DtypeFields


class ExceptionFields(msgspec.Struct, forbid_unknown_fields=True):
    """Another tolerance for some models; all from ``model`` to ``configuration`` are patterns.

    After ``expires``, a date, it still holds, and ``torchgauge validate`` asks to look at it again.
    """

    suite: Name
    model: Name
    reason: Reason
    link: Link
    date: Date
    mode: Name | None = None
    dtype: Name | None = None
    backend: Name | None = None
    configuration: Name | None = None
    tolerance: Positive | None = None
    rmse_multiplier: Annotated[float, msgspec.Meta(ge=1)] | None = None
    expires: Date | None = None


class ToleranceFields(msgspec.Struct, forbid_unknown_fields=True):
    """A whole tolerance file."""

    classes: dict[Name, ClassFields]
    exceptions: tuple[ExceptionFields, ...] = ()


@dataclass(frozen=True)
class ToleranceTable:
    """The tolerances of one file."""

    file: str
    fields: ToleranceFields

    def tolerance_for(
        self, workload: Workload, entry: ModelEntry, backend: str = EAGER, configuration: str = EAGER
    ) -> Tolerance:
        """The tolerance of ``workload``: that of its class, dtype and mode, or of the first exception.

        Exceptions for a lent model are those of its suite, where none is for the workload itself.
        Raises :class:`UsageError` for an accuracy class or a dtype that the file does not have.
        """
        values = self._values(workload, entry)
        value = values.training if workload.mode == "training" else values.inference
        multiplier = values.rmse_multiplier
        source = f"{self.file}: {entry.accuracy_class}, {workload.dtype}, {workload.mode}"
        run_by = (backend, configuration)
        exception = self.exception_for(workload, *run_by)
        if exception is None and entry.of:
            exception = self.exception_for(as_lender_knows(workload, entry.recipe)[0], *run_by)
        if exception is not None:
            value = exception.tolerance or value
            multiplier = exception.rmse_multiplier or multiplier
            source = f"{self.file}: exception of {exception.date} ({exception.reason}; {exception.link})"
        return Tolerance(absolute=value, relative=value, rmse_multiplier=multiplier, source=source)

    def exception_for(
        self, workload: Workload, backend: str = EAGER, configuration: str = EAGER
    ) -> ExceptionFields | None:
        """The first exception that fits ``workload`` run so; None where there is none."""
        fitting = (
            item
            for item in self.fields.exceptions
            if matches(item.suite, workload.suite)
            and matches(item.model, workload.model)
            and matches(item.mode, workload.mode)
            and matches(item.dtype, workload.dtype)
            and matches(item.backend, backend)
            and matches(item.configuration, configuration)
        )
        return next(fitting, None)

    def notes(self, models: Mapping[str, Sequence[ModelEntry]], today: date) -> list[str]:
        """What is out of date: exceptions that have expired, that no model meets, or that change nothing.

        ``models`` are those of every suite that is installed, by suite.
        """
        used: dict[int, bool] = {}
        named = ((item.backend or EAGER, item.configuration or EAGER) for item in self.fields.exceptions)
        ways = dict.fromkeys([(EAGER, EAGER), *named])  # a pattern fits itself
        for (workload, entry), way in product(_workloads(models), ways):
            exception = self.exception_for(workload, *way)
            if exception is not None and entry.accuracy_class in self.fields.classes:
                changed = self._changes(exception, workload, entry)
                used[id(exception)] = used.get(id(exception), False) or changed
        found = []
        for exception in self.fields.exceptions:
            name = f"{self.file}: the exception for {exception.suite}/{exception.model}"
            if exception.expires is not None and exception.expires < today.isoformat():
                found.append(f"{name} expired on {exception.expires}: measure again, then renew or remove it")
            if exception.suite not in models and not any(mark in exception.suite for mark in "*?"):
                found.append(f"{name} names a suite that is not installed")
            elif id(exception) not in used:
                found.append(f"{name} is not used: it is never the first match for a model, mode and dtype")
            elif not used[id(exception)]:
                found.append(f"{name} changes nothing: its accuracy class has the same values")
        return found

    def _changes(self, exception: ExceptionFields, workload: Workload, entry: ModelEntry) -> bool:
        values = self._values(workload, entry)
        value = values.training if workload.mode == "training" else values.inference
        multiplier = values.rmse_multiplier
        return (exception.tolerance or value, exception.rmse_multiplier or multiplier) != (value, multiplier)

    def _values(self, workload: Workload, entry: ModelEntry) -> DtypeFields:
        if entry.accuracy_class not in self.fields.classes:
            raise UnknownNameError(
                f"accuracy class of {workload.suite}/{entry.name}", entry.accuracy_class, self.fields.classes
            )
        dtype = workload.dtype.removeprefix(AUTOCAST)  # products are rounded as if all were in it
        values = getattr(self.fields.classes[entry.accuracy_class], dtype, None)
        if not isinstance(values, DtypeFields):
            raise UsageError(
                f"no tolerance for the dtype {workload.dtype!r} in {self.file}",
                hint="one of: float64, float32, float16, bfloat16",
            )
        return values


def load_tolerances(path: Path) -> ToleranceTable:
    """The tolerances that ``path`` declares; raises :class:`DataFileError`."""
    return ToleranceTable(path.name, convert(read_document(path), ToleranceFields))


def tolerance_for(
    workload: Workload, entry: ModelEntry, backend: str = EAGER, configuration: str = EAGER
) -> Tolerance:
    """The tolerance of ``workload`` run so in the data file that ships with the package."""
    return _bundled().tolerance_for(workload, entry, backend, configuration)


@cache
def _bundled() -> ToleranceTable:
    return load_tolerances(DATA / "tolerances.yaml")


def _workloads(models: Mapping[str, Sequence[ModelEntry]]) -> Iterator[tuple[Workload, ModelEntry]]:
    """Every model that has a tolerance, in each of its modes and in every dtype."""
    for suite, entries in models.items():
        for entry in entries:
            if entry.framework == CHECK:
                continue
            for mode in entry.batch:
                for dtype in DTYPES:
                    yield Workload(suite, entry.name, mode, dtype), entry
