"""Which accuracy tolerance a workload has, from ``data/tolerances.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.records import AUTOCAST, Tolerance, Workload
from torchgauge.suites.catalog import DATA, Name
from torchgauge.suites.document import read_document
from torchgauge.suites.evidence import Date, Link, Reason
from torchgauge.suites.pattern import matches
from torchgauge.suites.schema import convert
from torchgauge.suites.suite import ModelEntry

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
    """Another tolerance for some models; ``model``, ``mode`` and ``dtype`` are patterns."""

    suite: Name
    model: Name
    reason: Reason
    link: Link
    date: Date
    mode: Name | None = None
    dtype: Name | None = None
    tolerance: Positive | None = None
    rmse_multiplier: Annotated[float, msgspec.Meta(ge=1)] | None = None


class ToleranceFields(msgspec.Struct, forbid_unknown_fields=True):
    """A whole tolerance file."""

    classes: dict[Name, ClassFields]
    exceptions: tuple[ExceptionFields, ...] = ()


@dataclass(frozen=True)
class ToleranceTable:
    """The tolerances of one file."""

    file: str
    fields: ToleranceFields

    def tolerance_for(self, workload: Workload, entry: ModelEntry) -> Tolerance:
        """The tolerance of ``workload``: that of its class, dtype and mode, or of the first exception.

        Raises :class:`UsageError` for an accuracy class or a dtype that the file does not have.
        """
        values = self._values(workload, entry)
        value = values.training if workload.mode == "training" else values.inference
        multiplier = values.rmse_multiplier
        source = f"{self.file}: {entry.accuracy_class}, {workload.dtype}, {workload.mode}"
        exception = next((item for item in self.fields.exceptions if _applies(item, workload)), None)
        if exception is not None:
            value = exception.tolerance or value
            multiplier = exception.rmse_multiplier or multiplier
            source = f"{self.file}: exception of {exception.date} ({exception.reason}; {exception.link})"
        return Tolerance(absolute=value, relative=value, rmse_multiplier=multiplier, source=source)

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


def tolerance_for(workload: Workload, entry: ModelEntry) -> Tolerance:
    """The tolerance of ``workload`` in the data file that ships with the package."""
    return _bundled().tolerance_for(workload, entry)


@cache
def _bundled() -> ToleranceTable:
    return load_tolerances(DATA / "tolerances.yaml")


def _applies(item: ExceptionFields, workload: Workload) -> bool:
    return (
        matches(item.suite, workload.suite)
        and matches(item.model, workload.model)
        and matches(item.mode, workload.mode)
        and matches(item.dtype, workload.dtype)
    )
