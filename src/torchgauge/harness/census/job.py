"""What a recorder child is asked to do, and the names of the lines that it answers with. Standard library."""

from __future__ import annotations

from dataclasses import dataclass

from torchgauge.records import DeviceTarget, Workload

VERSIONS, BEGIN, MODEL, ENTRY, REFUSED = "versions", "begin", "model", "entry", "refused"


@dataclass(frozen=True)
class CensusItem:
    """One recording: a workload on a path, or (without a workload) an entry of the operator database.

    ``name`` is what a person reads. ``builder``, ``scenario`` and ``preload`` are what the worker imports.
    """

    name: str
    workload: Workload | None = None
    path: str = ""
    recipe: dict[str, object] | None = None
    builder: str = ""
    scenario: str = ""
    preload: tuple[str, ...] = ()


@dataclass(frozen=True)
class CensusJob:
    """Recordings that share a process: their results go to ``report``, one JSON object per line."""

    device: DeviceTarget
    session: str
    packages: tuple[str, ...]
    items: tuple[CensusItem, ...]
    report: str
