"""The bisections of a store in a line each: of what, and how far they are."""

from __future__ import annotations

from dataclasses import dataclass

from torchgauge.errors import UsageError
from torchgauge.harness.bisect.bisection import FOLDER, BisectionState
from torchgauge.harness.bisect.search import Ending
from torchgauge.results.json_file import read_record
from torchgauge.results.store import Store


@dataclass(frozen=True)
class BisectionInfo:
    """One bisection; ``changed_at``, of its last step, is in seconds since the epoch, UTC.

    ``ending`` is None where the state cannot be read, as ``explanation`` then says.
    """

    id: str
    changed_at: float
    ending: Ending | None
    explanation: str
    case: str = ""
    metric: str = ""
    builds: int = 0
    steps: int = 0


def bisection_infos(store: Store) -> list[BisectionInfo]:
    """All bisections of ``store``, the one that went on last at the end."""
    found = []
    for path in (store.path / FOLDER).glob("*/state.json"):
        name, at = path.parent.name, path.stat().st_mtime
        try:
            state = read_record(BisectionState, path, "torchgauge bisect --fresh starts over")
        except UsageError as error:
            found.append(BisectionInfo(name, at, None, error.message))
            continue
        search = state.search
        found.append(
            BisectionInfo(
                name,
                at,
                search.ending,
                search.explanation(),
                state.case,
                state.metric,
                len(search.labels),
                len(search.steps),
            )
        )
    return sorted(found, key=lambda each: (each.changed_at, each.id))
