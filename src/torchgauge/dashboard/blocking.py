"""Which operators stand between a device and the models of the census, from the latest rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.latest_results import Entry
from torchgauge.errors import TorchgaugeError
from torchgauge.records import Subject

if TYPE_CHECKING:
    from torchgauge.results.blockers.ranking import Blockers, OperatorLine
    from torchgauge.suites.census.data import CensusData

DTYPE = "float32"
"""The dtype that is ranked where a device has it: the one that models are written in."""


@dataclass(frozen=True)
class Blocking:
    """What blocks models on one device, those that block most first; ``problem`` says why it is not told."""

    device: str
    found: Blockers | None = None
    operators: tuple[OperatorLine, ...] = ()
    problem: str = ""


def blocking_of(context: SiteContext, devices: tuple[str, ...]) -> Iterator[Blocking]:
    """The ranking for each device; nothing where no census ships with the package."""
    from torchgauge.suites.census.data import FOLDER, SUFFIX, load

    if not any(FOLDER.glob(f"*{SUFFIX}")):
        return
    try:
        census = load()
    except TorchgaugeError as error:
        yield from (Blocking(device, problem=error.message) for device in devices)
        return
    for device in devices:
        yield _blocking(context, device, census)


def _blocking(context: SiteContext, device: str, census: CensusData) -> Blocking:
    from torchgauge.results.blockers.evidence import evidence_from, static_kinds
    from torchgauge.results.blockers.ranking import Question, blockers, dtypes_of

    entries = [
        each for each in context.latest.of_device(device) if each.workload.subject is not Subject.CHECKS
    ]
    try:
        static = static_kinds(context.store, device.partition(".")[0])
        evidence = evidence_from(device, _rows(entries), static)
        dtypes = dtypes_of(evidence)
        if not dtypes:
            return Blocking(device, problem="no model was measured on this device")
        dtype = DTYPE if DTYPE in dtypes else dtypes[0]
        return _shown(blockers(Question(evidence, census, "eager"), dtype))
    except (TorchgaugeError, ValueError, KeyError, TypeError) as error:
        return Blocking(device, problem=f"ranking failed: {error}")


def _rows(entries: list[Entry]) -> Iterator[dict[str, object]]:
    newest = max((each.shown["run_created_at"] for each in entries), default=None)
    for each in entries:
        row = each.shown
        at = row["run_created_at"]
        yield {**row, "at": at.timestamp(), "older": (newest - at).total_seconds()}


def _shown(found: Blockers) -> Blocking:
    lines = [each for each in found.operators if each.in_all or each.fixes]
    lines.sort(key=lambda each: (-len(each.in_all), -len(each.alone), each.operator))
    return Blocking(found.device, found, tuple(lines))
