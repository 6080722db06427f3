"""How the newest row of a case was measured, for whoever wants to measure it again.

Numbers and switches alone: an interpreter, a checkout or a file that a row names would be run or read, and
rows come from other people's machines too. Those are said and not taken.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from torchgauge.errors import DamagedJournalError, UsageError
from torchgauge.harness.run.rows import REPEATED, reproduce_command
from torchgauge.records import RunSettings
from torchgauge.results.lookup import find_results
from torchgauge.results.store import Store


@dataclass(frozen=True)
class RecordedSettings:
    """The settings of the run that has the row, and the command that it would be measured again by.

    ``paths`` holds, by the name of the parameter, the options of that command that are not taken.
    """

    run_id: str
    settings: RunSettings
    command: str
    paths: Mapping[str, str]


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
    taken = {name: getattr(plan.settings, name) for name in REPEATED if name not in _OF_A_MACHINE}
    command = reproduce_command(found[0].case, plan.settings, plan.python)
    words = iter(shlex.split(command))
    paths = {word[2:].replace("-", "_"): f"{word} {next(words)}" for word in words if word in _PATHS}
    return RecordedSettings(run_id, replace(RunSettings(), **taken), command, paths)


_OF_A_MACHINE = frozenset({"configuration_file", "torchbench"})
_PATHS = ("--python", "--config-file", "--torchbench")
