"""A version matrix from its cells to its measurements: environments, A/B runs that take turns, and a state.

Each cell is one A/B run against the baseline, by the rule of all of them. They are measured in one run: a
launch of one cell, then one of the next, in an order that is drawn anew each round, so that what an hour does
to the machine meets all versions alike.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.counted import counted
from torchgauge.devices.discover import parse_target
from torchgauge.devices.probe import probe
from torchgauge.errors import InfrastructureError, NothingSelectedError, TorchgaugeError
from torchgauge.harness.ab.comparison import (
    Request,
    new_comparison,
    planned_comparison,
    resumed_comparison,
)
from torchgauge.harness.ab.judging import judge_for, read_policy
from torchgauge.harness.ab.progress import AbProgress
from torchgauge.harness.ab.run_comparison import ComparisonEnding, launch_by_launch, longest_of
from torchgauge.harness.interpreter.foreign_plugins import device_of, suites_of
from torchgauge.harness.interpreter.interpreter import Interpreter, interpreter
from torchgauge.harness.interpreter.packages import installed_in
from torchgauge.harness.interpreter.staging import environment_for
from torchgauge.harness.matrix.cells import Cell
from torchgauge.harness.matrix.environments import Environments, Lock, Made, torch_words
from torchgauge.harness.planning.configurations import configuration
from torchgauge.harness.planning.selection import Selection, check_plain_names, select_models
from torchgauge.harness.planning.workloads import check_names
from torchgauge.harness.run.live_lines import ends_no_case
from torchgauge.harness.run.rank_devices import refuse_launched
from torchgauge.harness.run.runner import stop_on_interrupt
from torchgauge.processes.known_secrets import own_command
from torchgauge.records import Provenance, RunSettings, to_plain
from torchgauge.records.codec import digest
from torchgauge.records.comparison import ComparisonPlan, SideSpec
from torchgauge.results.journal import RunState
from torchgauge.results.matrix.state import CellState, MatrixState, pin_of, read_state, write_state
from torchgauge.results.store import Store
from torchgauge.suites.install_needs import needs_of

CHANGED_PINS = 3
"""Packages of another version that a line names; it counts the others."""


@dataclass(frozen=True)
class MatrixRequest:
    """What is to be measured; the first cell that has an environment is the baseline."""

    cells: tuple[Cell, ...]
    selection: Selection
    settings: RunSettings
    seed: int = 0
    max_launches: int = 12
    policy: str = ""
    provenance: tuple[Provenance, ...] = ()

    @property
    def id(self) -> str:
        """Sixteen hex digits over everything that decides what is measured."""
        return digest([to_plain(self.cells), to_plain(self.selection), to_plain(self.settings), self.seed,
                       self.max_launches, self.policy])  # fmt: skip


def needed(request: MatrixRequest) -> tuple[str, ...]:
    """What pip installs for the suites of ``request``, beside torch.

    Raises what an unknown name or an empty selection raises, before anything is downloaded.
    """
    selection = request.selection
    builds = [cell.python for cell in request.cells if cell.python]
    there = interpreter(builds[0] if len(builds) == len(request.cells) else None)
    suites = suites_of(there, selection.suites)
    entries = {name: suite.models() for name, suite in suites.items()}
    check_names(selection, entries)
    check_plain_names(dict(entries), selection.models)
    for name in selection.configurations:
        configuration(name, selection.configuration_file)
    for name in selection.devices:
        with suppress(InfrastructureError):  # this torch may be broken, or missing: the cells have their own
            if name != "all":
                device_of(there, parse_target(name).name)
    found: list[str] = []
    chosen = 0
    for name, models in entries.items():
        selected = select_models(name, models, selection.models, selection.tier)
        chosen += len(selected)
        found += [text for need in needs_of(name, selected) for text in need.texts]
    if not chosen:
        raise NothingSelectedError(
            "nothing matches the selection", hint="use fewer filters or another --tier"
        )
    return tuple(dict.fromkeys(found))


@dataclass
class Matrix:
    """The cells of one request, made and measured as far as they are not; on disk where it ``keeps`` them."""

    store: Store
    request: MatrixRequest
    environments: Environments
    needs: tuple[str, ...] = ()
    say: Callable[[str], None] = lambda _: None
    keeps: bool = True
    state: MatrixState = field(init=False)
    ready: frozenset[str] = field(default=frozenset(), init=False)
    """Cells whose interpreter has just answered; no other is measured."""
    examined: dict[str, Interpreter] = field(default_factory=dict, init=False)
    """Interpreters by path, each asked once: that takes seconds."""

    def begin(self, *, fresh: bool = False) -> None:
        """Take the state as it was left, or a new one; a cell that failed is tried again."""
        before = None if fresh else read_state(self.store, self.request.id)
        cells = tuple(CellState(cell.label) for cell in self.request.cells)
        self.state = before or MatrixState(self.request.id, SYSTEM_CLOCK.now(), own_command(), cells)

    def plan(self) -> tuple[dict[str, Lock], list[str]]:
        """The locks of the cells that pip makes, and what that takes; cells that cannot be are marked."""
        refuse_launched(os.environ)
        versions = installed_in(sys.executable)
        locks = {}
        for cell in self.request.cells:
            if not cell.torch:
                continue
            try:
                locks[cell.label] = self.environments.lock(cell, self.needs, versions)
            except TorchgaugeError as error:
                self._keep(cell.label, failed=error.in_a_line)
        return locks, self.environments.plan(tuple(locks.values()))

    def make(self, locks: dict[str, Lock]) -> None:
        """Make what is not there; a cell that fails says why, and the others go on.

        What was measured with another interpreter, torch or package than there is now begins anew.
        """
        found: dict[str, Made] = {}
        for cell in self.request.cells:
            try:
                if not cell.torch:
                    made = _build(self._interpreter(cell.label, cell.python))
                elif cell.label in locks:
                    made = self.environments.make(locks[cell.label])
                else:
                    continue
                self._examine(cell.label, made.python)
                found[cell.label] = made
            except TorchgaugeError as error:
                self._keep(cell.label, failed=error.in_a_line)
        baseline = self.state.baseline
        if baseline not in found:
            if any(cell.comparison for cell in self.state.cells):
                self.say(
                    f"the baseline {baseline} can no longer be installed: "
                    "nothing is measured (--fresh starts over)"
                )
                return
            baseline = next(iter(found), "")
            if found and baseline != self.request.cells[0].label:
                self.say(f"{self.request.cells[0].label} cannot be measured: {baseline} becomes the baseline")
        self.ready = frozenset(found)
        self._take(found, baseline)

    def measure(self, *, max_time_s: float | None = None) -> bool:
        """Measure all cells in turns; whether a person interrupted it. Each complete launch is kept.

        No launch but the very first is started that would probably end more than ``max_time_s`` seconds from
        now; a cell without a launch counts those of the others.
        """
        with stop_on_interrupt() as stop:
            endings = self._take_turns(stop, max_time_s)
        return any(each.interrupted for each in endings)

    # --- environments ------------------------------------------------------------------------

    def _examine(self, label: str, python: str) -> None:
        """Raise what keeps the interpreter of ``label`` from being measured, whatever it is compared with."""
        side = SideSpec(label, self._interpreter(label, python).path)
        planned_comparison(self._asked(side, side), self.examined)

    def _interpreter(self, label: str, python: str) -> Interpreter:
        if python not in self.examined:
            self.say(f"{label}: {python} is examined")
            with self.environments.shown(f"{label} is examined"):
                self.examined[python] = there = interpreter(python)
                _ = there.report  # asked here: it takes most of the time
        return self.examined[python]

    def _take(self, found: Mapping[str, Made], baseline: str) -> None:
        """Keep ``found`` in one step with giving up what other versions measured."""
        changes = {label: _changed(self.state.cell(label), made) for label, made in found.items()}
        anew = {label for label, change in changes.items() if change}
        if baseline in anew and any(cell.comparison for cell in self.state.cells):
            self.say(f"{baseline} changed ({changes[baseline]}): all measurements start over")
        cells = []
        for cell in self.state.cells:
            if cell.comparison and cell.label in anew - {baseline}:
                self.say(f"{cell.label} changed ({changes[cell.label]}): its measurement starts over")
            if anew & {cell.label, baseline}:
                cell = replace(cell, comparison="", done=False)  # noqa: PLW2901
            made = found.get(cell.label)
            cells.append(cell if made is None else replace(cell, **vars(made), failed=""))
        self.state = replace(self.state, cells=tuple(cells), baseline=baseline)
        write_state(self.store, self.state)

    def _keep(self, label: str, **changes: object) -> None:
        cells = tuple(
            replace(cell, **changes) if cell.label == label else cell  # type: ignore[arg-type]
            for cell in self.state.cells
        )
        self.state = replace(self.state, cells=cells)
        if changes.get("failed"):
            self.say(f"{label}: {changes['failed']}")
        if self.keeps:
            write_state(self.store, self.state)

    # --- measuring ---------------------------------------------------------------------------

    def _take_turns(self, stop: threading.Event, max_time_s: float | None) -> list[ComparisonEnding]:
        until = None if max_time_s is None else SYSTEM_CLOCK.steady() + max_time_s
        longest = 0.0
        running = {}
        unbegun: set[str] = set()
        for cell in self.state.cells:
            if cell.label not in self.ready or cell.label == self.state.baseline or cell.done:
                continue
            try:
                comparison, folder = self._comparison(cell)
            except (TorchgaugeError, OSError) as error:
                self._keep(cell.label, failed=getattr(error, "in_a_line", str(error)))
                continue
            judge = judge_for(comparison, read_policy(self.request.policy))
            running[cell.label] = launch_by_launch(comparison, judge, stop, folder, until=until)
            there = list(folder.launches()) if folder is not None else []
            longest = max(longest, longest_of(there))
            if not there:
                unbegun.add(cell.label)
        dice = random.Random(f"turns of {self.request.id}")  # noqa: S311  chance, no secret
        endings: list[ComparisonEnding] = []
        try:
            while running:
                for label in dice.sample(list(running), len(running)):
                    started = SYSTEM_CLOCK.steady()
                    late = until is not None and longest > 0 and started + longest > until
                    if late and label in unbegun:
                        self.say(f"{label}: the time limit was reached before its first launch")
                        del running[label]
                        continue
                    unbegun.discard(label)
                    try:
                        next(running[label])
                        longest = max(longest, SYSTEM_CLOCK.steady() - started)
                    except StopIteration as ended:
                        ending: ComparisonEnding = ended.value
                        endings.append(ending)
                        del running[label]
                        self._keep(label, done=ending.state is RunState.COMPLETE)
                    except TorchgaugeError as error:  # of this cell alone: the others go on
                        del running[label]
                        self._keep(label, failed=error.in_a_line)
        finally:
            for each in running.values():
                each.close()
        return endings

    def _comparison(self, cell: CellState):  # type: ignore[no-untyped-def]
        """The A/B run of ``cell`` against the baseline: as it was left, or a new one."""
        progress = CellProgress(cell.label)
        if cell.comparison:
            path = self.store.path / "comparisons" / cell.comparison
            if (path / "plan.json").is_file():
                return resumed_comparison(str(path), progress)
        base = self.state.cell(self.state.baseline)
        request = self._asked(SideSpec(base.label, base.python), SideSpec(cell.label, cell.python))
        store = str(self.store.path)
        made = new_comparison(request, store=store, progress=progress, examined=self.examined)
        self._keep(cell.label, comparison=made.plan.run_id)
        return made, None

    def _asked(self, base: SideSpec, head: SideSpec) -> Request:
        """Return the request of an A/B run of ``head`` against ``base``."""
        return Request(
            selection=self.request.selection,
            settings=self.request.settings,
            base=base,
            head=head,
            control=base.python == head.python,
            controls=0,
            seed=self.request.seed or None,
            max_launches=self.request.max_launches,
            policy=self.request.policy,
            provenance=self.request.provenance,
        )


def _build(there: Interpreter) -> Made:
    """Return the present identity of a build that the user made."""
    report = there.report or probe(there.path, environment=environment_for(there.path))
    versions = installed_in(there.path)
    build = report.usable.torch if report.usable is not None else None
    pins = tuple(f"{name}=={version}" for name, version in sorted(versions.items()))
    if build is None:
        return Made(there.path, versions.get("torch", ""), pins)
    return Made(there.path, build.version, pins, build.git_commit)


def _changed(cell: CellState, made: Made) -> str:
    """What of ``cell`` is another in ``made``, old and new; empty where nothing is, or nothing was there."""
    if not cell.python:
        return ""
    found = []
    if (cell.torch, cell.commit) != (made.torch, made.commit):
        old, new = torch_words(cell.torch, cell.commit), torch_words(made.torch, made.commit)
        found.append(f"torch {old or 'unknown'} is {new or 'unknown'} now")
    if cell.python != made.python:
        found.append(f"{cell.python} is {made.python} now")
    before, after = dict(map(pin_of, cell.pins)), dict(map(pin_of, made.pins))
    told = {"torch"} if found else set()
    others = [name for name in sorted({*before, *after} - told) if before.get(name) != after.get(name)]
    found += [
        f"{name} {before.get(name, '(missing)')} is {after.get(name, '(missing)')} now"
        for name in others[:CHANGED_PINS]
    ]
    if len(others) > CHANGED_PINS:
        found.append(f"{counted(len(others) - CHANGED_PINS, 'more package differs', 'more packages differ')}")
    return ", ".join(found)


class CellProgress(AbProgress):
    """The lines of one cell among others: each begins with its label, and none is live."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self._label = label

    def begin(self, total: int | None = None, doing: str = "") -> None:
        """Start the clock; several cells share the terminal, so that no line of it is live."""
        self.began = self.clock.steady()

    @ends_no_case
    def start(self, plan: ComparisonPlan, launches: int) -> None:
        """Say what is compared, in a line."""
        self.begin()
        before = f", {counted(launches, 'measurement was', 'measurements were')} there" if launches else ""
        self.say(
            f"comparison {plan.run_id}: {counted(len(plan.pairs), 'pair')} against {plan.base.label}{before}"
        )

    def say(self, text: str) -> None:
        """Write one line that begins with the label."""
        super().say(f"[{self._label}] {text}")
