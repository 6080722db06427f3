"""Results by the name that a person has: a run id, or a case id."""

from __future__ import annotations

from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.records import Result
from torchgauge.results.journal import results
from torchgauge.results.store import Store


def find_results(store: str, name: str) -> tuple[list[Result], bool]:
    """All results of the run called ``name`` and True, or the newest result of a case and False.

    Raises :class:`UnknownNameError` with suggestions where neither exists.
    """
    opened = Store.open(store)
    run_ids = opened.run_ids()
    if name in run_ids:
        return results_of(opened, name), True
    known: set[str] = set()
    for run_id in reversed(run_ids):
        found = results_of(opened, run_id)
        known.update(result.case_id for result in found)
        matching = [result for result in found if result.case_id == name]
        if matching:
            return matching, False
    if not run_ids:
        raise UsageError(f"the store {store} holds no run", hint="torchgauge run SUITE --device DEVICE")
    kind = "case" if ":" in name else "run"
    raise UnknownNameError(kind, name, known if kind == "case" else run_ids)


def results_of(store: Store, run_id: str) -> list[Result]:
    """Every row of a run so far, in the order of its journal; none where it has no journal yet."""
    folder = store.run(run_id)
    if not folder.journal_path.is_file():
        return []
    return list(results(folder.journal_path, folder.schema_version()))
