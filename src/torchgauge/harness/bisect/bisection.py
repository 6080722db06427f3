"""A bisection on disk: the search with its state, the builds that it makes, and the comparison it uses.

::

    STORE/bisect/<id>/state.json     after each step; the same command goes on from it
    STORE/bisect/builds/             builds that were made, shared by all searches of the store

The id is a digest over builds, case and metric, so that a repeated command finds its own state.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from torchgauge.counted import counted
from torchgauge.errors import DataFileError
from torchgauge.harness.ab.reading import Answer, Reading
from torchgauge.harness.bisect.builds import BuildFailedError, Builds, make_build
from torchgauge.harness.bisect.search import Ending, Search, begin, search
from torchgauge.records import to_plain
from torchgauge.records.codec import digest
from torchgauge.records.comparison import SideSpec
from torchgauge.results.atomic_file import storage_errors, write_atomically
from torchgauge.results.json_file import read_record
from torchgauge.results.store import Store

Compare = Callable[[SideSpec, SideSpec], Reading]
"""Measures a first build against another one."""
FOLDER = "bisect"
"""The folder of bisections in a store."""
EXIT_CODES = {Ending.FOUND: 0, Ending.NOT_REPRODUCED: 1, Ending.INCOMPLETE: 3, Ending.SEARCHING: 3}


@dataclass(frozen=True)
class BisectionState:
    """What is written after each step."""

    case: str
    metric: str
    builds: str
    search: Search


@dataclass
class Bisection:
    """Return the search for the build at which ``metric`` of ``case`` changed; long work is ``shown``."""

    store: Store
    builds: Builds
    case: str
    metric: str
    compare: Compare
    say: Callable[[str], None] = lambda _: None
    shown: Callable[[str], AbstractContextManager[object]] = nullcontext

    @property
    def path(self) -> Path:
        """Where the state is."""
        name = digest([self.builds.digest, self.case, self.metric])
        return self.store.path / FOLDER / name / "state.json"

    def load(self) -> Search:
        """The search as it was left, or a new one; raises :class:`DataFileError` for a damaged state."""
        if not self.path.is_file():
            return begin(self.builds.labels)
        hint = "repeat with --fresh to start over"
        state = read_record(BisectionState, self.path, hint)
        if (state.builds, state.search.labels) != (self.builds.digest, self.builds.labels):
            raise DataFileError(str(self.path), "belongs to a search with different builds", hint=hint)
        return state.search

    def run(self, *, fresh: bool = False) -> Search:
        """Search to the end, keeping the state after each step."""
        with storage_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        begun = begin(self.builds.labels) if fresh else self.load()
        if begun.steps:
            self.say(f"going on after {counted(len(begun.steps), 'step')}: {begun.explanation()}")
        return search(begun, self._reading, self._keep)

    def _keep(self, current: Search) -> None:
        state = BisectionState(self.case, self.metric, self.builds.digest, current)
        write_atomically(self.path, json.dumps(to_plain(state), indent=1, allow_nan=False).encode())
        self.say(step_line(current, len(current.steps) - 1))

    def _reading(self, place: int) -> Reading:
        """Compare the first build with the one at ``place``; one that cannot be made is unusable."""
        pair = []
        for build in (self.builds.builds[0], self.builds.builds[place]):
            try:
                with self.shown(f"building {build.label}, unless already built"):
                    python = make_build(self.builds, build, self.store.path / FOLDER / "builds")
            except BuildFailedError as error:
                return Reading(Answer.UNUSABLE, reason=f"{build.label} cannot be built: {error.message}")
            pair.append(SideSpec(build.label, python))
        self.say(f"comparing {pair[0].label} with {pair[1].label}")
        return self.compare(pair[0], pair[1])


def step_line(current: Search, number: int) -> str:
    """One step as a line of text."""
    step = current.steps[number]
    line = f"step {number + 1}: {step.label}: {step.reading.answer.value}, {step.reading.text}"
    if step.suspect is not None:
        places, probability = replace(current, steps=current.steps[: number + 1]).best()
        line += f"; likeliest {' or '.join(current.labels[place] for place in places)} ({probability:.0%})"
    return line
