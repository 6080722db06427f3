"""Where a run came from: a runner of the store's owners, a contributor, or a file of another tool.

``provenance.json`` decides: of a job ``ci collect`` writes it, of a pull request it names the contributor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from torchgauge.results.json_file import object_if_any
from torchgauge.results.store import Store

PROVENANCE = "provenance.json"
"""The file in a run's folder that says which campaign, pool and contributor brought it."""
IMPORTED_FROM = "imported_from"
"""The fact of an imported row that names its file and place."""


class OriginKind(str, Enum):
    """Whose numbers they are; the value is the mark beside a status, which the store's own lack."""

    OWN = "own"
    CONTRIBUTED = "contributed"
    IMPORTED = "imported"

    @property
    def marks(self) -> tuple[str, ...]:
        """The mark in a list of marks."""
        return () if self is OriginKind.OWN else (self.value,)


@dataclass(frozen=True)
class Origin:
    """The origin of a run, as a reader sees it."""

    kind: OriginKind = OriginKind.OWN
    text: str = "own runner"

    def of(self, facts: Mapping[str, object]) -> Origin:
        """The origin of a row of this run that has ``facts``: what a file brought says so in each row."""
        file = facts.get(IMPORTED_FROM)
        if self.kind is not OriginKind.OWN or not isinstance(file, str):
            return self
        return Origin(OriginKind.IMPORTED, f"imported from {file}")


def read_provenance(store: Store, run_id: str) -> dict[str, Any]:
    """What is known of where ``run_id`` came from; empty for a run that no campaign brought."""
    return object_if_any(store.path / "runs" / run_id / PROVENANCE)


def origin_of(store: Store, run_id: str) -> Origin:
    """The origin of the run; one that no campaign brought, or whose file is gone, was measured here."""
    said = read_provenance(store, run_id)
    contributor, pool = said.get("contributor"), said.get("pool")
    where = f", pool {pool}" if isinstance(pool, str) and pool else ""
    if isinstance(contributor, str) and contributor:
        return Origin(OriginKind.CONTRIBUTED, f"contributor {contributor}{where}")
    return Origin(OriginKind.OWN, f"own runner{where}")
