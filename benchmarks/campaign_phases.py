"""Where the time of a torchgauge run went, from the events that its workers wrote.

A run removes a worker's job and events when it has read them. :class:`Tap` keeps a second link to each of
these files while the run goes on, which costs the run nothing, and :func:`breakdown` reads them afterwards.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

TICK_S = 0.25
START_UP, BETWEEN, END = "start-up", "between processes", "end"
SHARED = (START_UP, END, "calibration")
"""Parts that belong to no model."""


class Tap:
    """While entered, links the files of every worker below ``store`` into ``kept``."""

    def __init__(self, store: Path, kept: Path, tick_s: float = TICK_S) -> None:
        self.store, self.kept, self.tick_s = store, kept, tick_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> None:
        self.kept.mkdir(parents=True, exist_ok=True)
        self._thread.start()

    def __exit__(self, *exc: object) -> None:
        self._done.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._done.wait(self.tick_s):
            for folder in self.store.glob("runs/*/work"):
                self._link(folder)

    def _link(self, folder: Path) -> None:
        for name in ("job", "events"):
            with contextlib.suppress(FileNotFoundError):  # one that goes meanwhile; there is a next tick
                for file in folder.glob(f"**/job-*/{name}"):
                    with contextlib.suppress(FileExistsError, FileNotFoundError):
                        os.link(file, self.kept / f"{file.parent.name}.{name}")


@dataclass(frozen=True)
class WorkerTime:
    """One worker process: what it was for, its model, and the seconds of each of its parts."""

    kind: str
    model: str
    began: float
    ended: float
    parts: dict[str, float]


def workers(kept: Path) -> list[WorkerTime]:
    """The worker processes whose files a :class:`Tap` kept, in the order in which they started."""
    found = []
    for job_file in kept.glob("*.job"):
        events_file = job_file.with_suffix(".events")
        if not events_file.is_file():
            continue
        job = json.loads(job_file.read_text(encoding="utf-8"))
        lines = events_file.read_text(encoding="utf-8").splitlines()
        phases = [event for event in map(json.loads, lines) if event["ev"] == "phase"]
        if phases:
            found.append(_worker(job, phases))
    return sorted(found, key=lambda worker: worker.began)


def breakdown(kept: Path, began: float, ended: float) -> dict[str, dict[str, float]]:
    """Seconds by model and part of a run that lasted from ``began`` to ``ended`` (both Unix time).

    What belongs to no model stands under the empty name: start-up (the parent's imports and plan, the host's
    imports and its search for vector instructions), calibration, and the end (last process, publication).
    """
    seconds: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    before = began
    for number, worker in enumerate(workers(kept)):
        gap = START_UP if number == 0 else BETWEEN
        seconds["" if gap in SHARED else worker.model][gap] += worker.began - before
        for part, length in worker.parts.items():
            seconds[worker.model][part] += length
        before = worker.ended
    seconds[""][END] += ended - before
    return {model: dict(parts) for model, parts in seconds.items()}


def _worker(job: dict[str, Any], phases: list[dict[str, Any]]) -> WorkerTime:
    group = job["group"]
    case = group["cases"][0]["case"] if group else None
    parts: dict[str, float] = defaultdict(float)
    for event, following in pairwise(phases):
        parts[_part(job["kind"], str(event["phase"]), case)] += following["t"] - event["t"]
    return WorkerTime(
        kind=job["kind"],
        model=case["workload"]["model"] if case else "",
        began=phases[0]["t"],
        ended=phases[-1]["t"],
        parts=dict(parts),
    )


def _part(kind: str, phase: str, case: dict[str, Any] | None) -> str:
    """A name for what a worker of ``kind`` did in ``phase``."""
    if kind == "calibrate" or case is None:
        return "calibration"
    if kind != "measure":
        configuration = case["configuration"]["name"]
        return "compile warm" if phase == "compile" else f"fresh process, {configuration}"
    if phase in {"start", "import", "build"}:
        return "build"
    return {"eager": "references and eager runs", "compile": "compile cold"}.get(phase, phase)
