"""Measure a model that has a name, each case in a process of its own, as ``torchgauge run`` does."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from torchgauge.counted import counted
from torchgauge.errors import UsageError
from torchgauge.live.result import LiveResult
from torchgauge.processes.kept_process import KeptProcess, scratch
from torchgauge.records import Environment
from torchgauge.results.journal import Kind, read, results
from torchgauge.results.store import Store

RUN = re.compile(r"^run (\w+-\w+)", re.MULTILINE)
"""Matches the first line of a run."""
REFUSED = re.compile(r"^error: (.*?)(?:\n  try: (.*))?\Z", re.MULTILINE | re.DOTALL)
"""Matches the message of a command that refuses its arguments."""


def run_by_name(words: Sequence[str], store: str | Path | None, shown: bool) -> LiveResult:
    """Run ``torchgauge run`` with the arguments ``words`` and return its rows; print its lines if ``shown``.

    The run is kept in ``store``, or nowhere. An interrupt ends it, and the rows that were measured are
    returned. Raises :class:`UsageError` for what the command refuses, and for a name of several models;
    ``KeyboardInterrupt`` if nothing was measured.
    """
    with scratch("measured") if store is None else nullcontext(store) as place:
        command = [sys.executable, "-m", "torchgauge", "run", *words, "--store", str(place)]
        printed = _printed(command, shown, hidden=str(place) if store is None else "")
        named = RUN.search(printed)
        if named is None:
            refused = REFUSED.search(printed.strip())
            problem, hint = refused.groups() if refused else (printed.strip()[-2000:], None)
            raise UsageError(f"measure: {problem}", hint=hint or " ".join(["torchgauge run", *words]))
        folder = Store.open(place).run(named[1])
        plan, rows = folder.plan(), tuple(results(folder.journal_path))
        where: list[Environment] = [
            record.payload() for record in read(folder.journal_path) if record.kind is Kind.ENVIRONMENT
        ]
    models = dict.fromkeys(group.workload.model for group in plan.groups)
    if len(models) > 1:
        several = f"{counted(len(models), 'model')}, but measure() measures one: {', '.join(models)}"
        raise UsageError(
            f"measure: {words[0]} has {several}",
            hint=f'torchgauge.measure("{words[0]}::{next(iter(models))}", isolated=True)',
        )
    if not rows:  # only an interrupt ends a run before its first row
        raise KeyboardInterrupt
    return LiveResult(plan, rows, next(one for one in where if one.id == rows[0].environment_id))


def _printed(command: Sequence[str], shown: bool, hidden: str) -> str:
    """Return what ``command`` prints; an interrupt is handed on to it.

    Lines that name the folder ``hidden``, which will be removed, are not shown.
    """
    lines: list[str] = []
    with KeptProcess(command, os.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        assert child.stdout is not None
        while True:
            try:
                for line in (raw.decode("utf-8", "replace") for raw in child.stdout):
                    lines.append(line)
                    if shown and not (hidden and hidden in line):
                        sys.stderr.write(line)
                child.wait()
                return "".join(lines)
            except KeyboardInterrupt:
                os.kill(child.child_pid, signal.SIGINT)
