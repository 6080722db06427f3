"""What is expected of a case on a device other than a pass.

It is said by a person's own files, by the file that the device's package declares, and by
``data/expectations/<device>.yaml`` here, in this order: the first entry that selects a case counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from torchgauge import registry
from torchgauge.errors import DataFileError, TorchgaugeError
from torchgauge.records import Case, Expectation, Status
from torchgauge.suites.catalog import DATA, Name
from torchgauge.suites.document import Document, read_document
from torchgauge.suites.pattern import matches
from torchgauge.suites.schema import Date, Link, Reason, convert, refuse

FOLDER = DATA / "expectations"
"""Folder of the expectation files that ship with the package, one per device."""

VARIABLE = "TORCHGAUGE_EXPECTATIONS"
"""Environment variable that names files of one's own, separated as in PATH; ``--expectations`` adds to it."""

SELECTORS = ("case", "suite", "model", "mode", "dtype", "configuration")


class ExpectationFields(msgspec.Struct, forbid_unknown_fields=True):
    """One expectation: patterns that select cases, status and cause, and where the judgement comes from."""

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
    cause: Name | None = None


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
        place = self.place_of(case)
        if place is None:
            return None
        entry = self.entries[place]
        return Expectation(entry.status, entry.reason, entry.link, entry.date, entry.cause or "")

    def place_of(self, case: Case) -> int | None:
        """The index of the first entry that selects ``case``; None as in :meth:`expectation_for`."""
        if case.device.name != self.device:
            return None
        return next((place for place, entry in enumerate(self.entries) if _selects(entry, case)), None)


def load_expectations(path: Path) -> ExpectationTable:
    """The expectations that ``path`` declares.

    Raises :class:`DataFileError`: an entry that selects every case, or a status that says nothing of one.
    """
    return expectations_of(read_document(path))


def expectations_of(document: Document) -> ExpectationTable:
    """The expectations in ``document``; raises what :func:`load_expectations` raises."""
    fields = convert(document, DeviceFields)
    for index, entry in enumerate(fields.expectations):
        at = f"$.expectations[{index}]"
        if all(getattr(entry, name) is None for name in SELECTORS):
            raise refuse(document, at, "selects every case", f"add one of: {', '.join(SELECTORS)}")
        if entry.status in (Status.NOT_RUN, Status.INFRA):
            raise refuse(
                document,
                f"{at}.status",
                f"status {entry.status.value!r} cannot be expected",
            )
        if entry.cause is not None and entry.status in (Status.PASS, Status.SKIPPED):
            problem = f"an entry with status {entry.status.value!r} must not have a cause"
            raise refuse(document, f"{at}.cause", problem, "remove the line `cause`")
    return ExpectationTable(fields.device, fields.expectations)


def expectation_for(case: Case, declared: str | None = None) -> Expectation | None:
    """The expectation of ``case``; none for an unknown device.

    ``declared`` is the file that the device's descriptor names; None asks the device that is installed here.
    Raises :class:`DataFileError` for a file that does not fit.
    """
    for table in _tables(case.device.name, declared):
        found = table.expectation_for(case)
        if found is not None:
            return found
    return None


def bundled_file(device: str) -> Path | None:
    """The file about ``device`` that ships with the package; None without one."""
    return next((item for item in sorted(FOLDER.glob("*.yaml")) if item.stem == device), None)


def personal(device: str) -> bool:
    """Whether a file of a person's own is about ``device``."""
    return any(table.device == device for table in _personal())


def _personal() -> Iterator[ExpectationTable]:
    for name in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        yield _loaded(name)


def _tables(device: str, declared: str | None) -> Iterator[ExpectationTable]:
    yield from _personal()
    if declared is None:
        declared = _declared(device)
    if declared:
        table = _loaded(declared)
        if table.device != device:
            problem = f"the file is for device {table.device!r}, but device {device!r} declares it as its own"
            raise DataFileError(declared, problem, field="device")
        yield table
    yield _bundled(device)


@cache
def _declared(device: str) -> str:
    """The file that an installed device declares; "" for one that is built in, or that cannot be loaded."""
    with suppress(TorchgaugeError):  # results of a device can be read where its package is broken
        point = registry.entry_points("torchgauge.devices").get(device)
        if point is not None and point.dist is not None:
            return str(getattr(registry.load("torchgauge.devices", device), "expectations", ""))
    return ""


@cache
def _loaded(file: str) -> ExpectationTable:
    return load_expectations(Path(file))


@cache
def _bundled(device: str) -> ExpectationTable:
    path = bundled_file(device)
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
