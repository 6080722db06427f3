"""What is expected of a case on a device other than a pass, from ``data/expectations/<device>.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from torchgauge.records import Case, Expectation, Status
from torchgauge.suites.catalog import DATA, Name
from torchgauge.suites.document import read_document
from torchgauge.suites.evidence import Date, Link, Reason
from torchgauge.suites.pattern import matches
from torchgauge.suites.schema import convert, refuse

FOLDER = DATA / "expectations"
"""Folder of the expectation files that ship with the package, one per device."""

_SELECTORS = ("case", "suite", "model", "mode", "dtype", "configuration")


class ExpectationFields(msgspec.Struct, forbid_unknown_fields=True):
    """One expectation: patterns that select cases, the status, and where the judgement comes from."""

    status: Status
    reason: Reason
    link: Link
    date: Date
    case: Name | None = None
    suite: Name | None = None
    model: Name | None = None
    mode: Name | None = None
    dtype: Name | None = None
    configuration: Name | None = None


class DeviceFields(msgspec.Struct, forbid_unknown_fields=True):
    """A whole expectation file."""

    device: Name
    expectations: tuple[ExpectationFields, ...]


@dataclass(frozen=True)
class ExpectationTable:
    """The expectations of one device, in the order of the file."""

    device: str
    entries: tuple[ExpectationFields, ...] = ()

    def expectation_for(self, case: Case) -> Expectation | None:
        """The first expectation that selects ``case``; None where none does or the device is another."""
        if case.device.name != self.device:
            return None
        for entry in self.entries:
            if _selects(entry, case):
                return Expectation(entry.status, entry.reason, entry.link, entry.date)
        return None


def load_expectations(path: Path) -> ExpectationTable:
    """The expectations that ``path`` declares.

    Raises :class:`DataFileError`: an entry that selects every case, or a status that says nothing of one.
    """
    document = read_document(path)
    fields = convert(document, DeviceFields)
    for index, entry in enumerate(fields.expectations):
        at = f"$.expectations[{index}]"
        if all(getattr(entry, name) is None for name in _SELECTORS):
            raise refuse(document, at, "selects every case", f"add one of: {', '.join(_SELECTORS)}")
        if entry.status in (Status.NOT_RUN, Status.INFRA):
            raise refuse(document, f"{at}.status", f"{entry.status.value!r} says nothing of a case")
    return ExpectationTable(fields.device, fields.expectations)


def expectation_for(case: Case) -> Expectation | None:
    """The expectation of ``case`` in the files that ship with the package; none for an unknown device."""
    return _bundled(case.device.name).expectation_for(case)


@cache
def _bundled(device: str) -> ExpectationTable:
    path = next((item for item in sorted(FOLDER.glob("*.yaml")) if item.stem == device), None)
    return load_expectations(path) if path is not None else ExpectationTable(device)


def _selects(entry: ExpectationFields, case: Case) -> bool:
    workload = case.workload
    return (
        matches(entry.case, case.id)
        and matches(entry.suite, workload.suite)
        and matches(entry.model, workload.model)
        and matches(entry.mode, workload.mode)
        and matches(entry.dtype, workload.dtype)
        and matches(entry.configuration, case.configuration.name)
    )
