"""How the newest row of a case was measured, for whoever wants to measure it again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from torchgauge.errors import DamagedJournalError, UsageError
from torchgauge.harness.interpreter.interpreter import is_own
from torchgauge.harness.run.rows import REPEATED, reproduce_command
from torchgauge.records import RunSettings
from torchgauge.results.lookup import find_results
from torchgauge.results.store import Store


@dataclass(frozen=True)
class RecordedSettings:
    """The settings of the run that has the row, its interpreter (empty: torchgauge's own), and the command."""

    run_id: str
    settings: RunSettings
    python: str
    command: str


def recorded_settings(store: str, case_id: str) -> RecordedSettings | None:
    """How the store at ``store`` says that ``case_id`` was measured last; None where it says nothing."""
    if not (Path(store) / "store.json").is_file():
        return None
    try:
        found, _ = find_results(store, case_id)
        run_id = found[0].run_id
        plan = Store.open(store).run(run_id).plan()
    except (UsageError, DamagedJournalError):
        return None
    settings = replace(RunSettings(), **{name: getattr(plan.settings, name) for name in REPEATED})
    python = "" if not plan.python or is_own(plan.python) else plan.python
    return RecordedSettings(run_id, settings, python, reproduce_command(found[0].case, settings, python))
