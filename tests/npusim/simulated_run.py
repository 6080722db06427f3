"""A command of torchgauge in a process of its own, on the simulated device with faults."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from torchgauge.records import Result
from torchgauge.results import journal
from torchgauge.results.store import Store

QUICK = ("--config", "eager", "--measure-seconds", "0.1", "--no-memory-probe", "--threads", "1")


class Command(NamedTuple):
    """One command at its end."""

    exit_code: int
    text: str
    store: Path

    def row(self) -> Result:
        """The one row of the one run."""
        store = Store.open(self.store)
        (run_id,) = store.run_ids()
        (row,) = journal.results(store.run(run_id).journal_path)
        return row

    def table(self, name: str) -> list[dict[str, Any]]:
        """All rows of a table of the store."""
        files = sorted((self.store / "tables" / name).glob("*.parquet"))
        return [row for file in files for row in pq.read_table(file).to_pylist()]


def command(folder: Path, fault: str, *words: str) -> Command:
    """Run ``words`` on a device with ``fault``; suites in ``folder`` are found."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("TORCHGAUGE_NPUSIM_")}
    paths = os.pathsep.join([str(folder), *filter(None, [inherited.get("PYTHONPATH")])])
    given = {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths, "TORCHGAUGE_NPUSIM_FAULT": fault}
    done = subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", *words],
        env={**inherited, **given},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=folder,
    )
    return Command(done.returncode, done.stdout + done.stderr, folder / "store")


def measure(folder: Path, fault: str, model: str, *words: str) -> Command:
    """Measure one model."""
    given = ("run", model, "--device", "npusim", *QUICK, "--store", str(folder / "store"))
    return command(folder, fault, *given, *words)


def deviation(folder: Path, fault: str, check: str) -> tuple[str, str]:
    """Status and reason of one check of the device; ``pass`` where it does not deviate."""
    import json

    given = ("check", "--checks", check, "--device", "npusim", "--json", "--store", str(folder / "store"))
    done = command(folder, fault, *given)
    said, _ = json.JSONDecoder().raw_decode(done.text[done.text.index("{") :])
    (card,) = said["cards"]
    assert said["planned"] == 1, done.text
    found = {each["check"]: (each["status"], each["reason"]) for each in card["deviations"]}
    return found.get(check, ("pass", ""))
