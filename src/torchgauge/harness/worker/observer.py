"""Observations that begin from one state, and contain the changes that a run makes to this state.

A model may write into its inputs, parameters, buffers or attributes, and so give the next run another start.
:class:`Observer` therefore restores them, with gradients and random generators, before every compared run:
observations with these or other inputs, further calls, and blocks of timed steps. State that a run changed is
compared like an output, under ``after``. A case fails if its code changes state that eager does not change.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from torchgauge.harness.scenarios.scenario import EarlierSteps, RemadeCall, Subject
from torchgauge.harness.worker.contract import CALLS, Contract, Recorded
from torchgauge.harness.worker.memory import fits, model_bytes
from torchgauge.harness.worker.other_inputs import NewInputs
from torchgauge.suites.leaves import Unknown, leaves
from torchgauge.suites.outputs import Observation, change, finite, to_host
from torchgauge.suites.suite import seed_all
from torchgauge.suites.torchbench.step_state import ATTRIBUTE, PARAMETER, WRITTEN, Snapshot, near, same_bits

RESULTS = 3
"""Number of results among which a later one may overwrite an earlier one."""
COPY = 4
"""Parameters are copied only if so many copies of them would fit on the host."""
PATIENCE, PATIENCE_S = 100, 1.0
"""Maximum number and seconds of the steps that show whether eager makes a change too."""
AFTER = "after"
"""Prefix of the paths of inputs, parameters, buffers and attributes that a run has changed."""
MOVE = f"{AFTER}.change."
"""Prefix of the paths of how far trainable parameters have moved: a small step hides in their values."""
STATE = f"{AFTER}.{ATTRIBUTE}."
LARGE = 1 << 20
"""Number of elements from which a changed tensor is compared in its box: a cache changes in a few rows."""
ELSEWHERE = ".elsewhere"
"""Suffix of the path of a large tensor that a run has changed outside its box too."""
Boxes = dict[str, tuple[slice, ...]]
"""By path of a large tensor, the smallest box around the elements that the first run has changed."""


class Observer:
    """Observations of ``subject`` by ``scenario``, each from the first state.

    ``runner`` is the key of the case whose code runs, and empty for eager. ``written`` maps each path that
    compiled code has changed, and eager has not, to the keys of the cases that may have changed it.
    If upstream steps its TorchBench model, ``earlier`` holds the steps before each observation. Its other
    steps go on from block to block, unless something was ``observed`` since the last one.
    Observers whose observations are compared share their ``boxes``.
    """

    def __init__(self, scenario: Any, subject: Subject, boxes: Boxes | None = None) -> None:
        self.scenario, self.subject, self.runner = scenario, subject, ""
        self.boxes: Boxes = {} if boxes is None else boxes
        self.written: dict[str, set[str]] = {}
        self.earlier: EarlierSteps | None = None
        self.stateful = self.observed = False
        weights = isinstance(subject.module, torch.nn.Module) and fits(COPY * model_bytes(subject.module))
        built = subject.built
        self._instance = instance = None if built is None else built.instance(subject)
        live = {"args": subject.args, "kwargs": subject.kwargs}
        self._live: Mapping[str, Any] = live if instance is None else instance.inputs
        copies, owner = (None, None) if instance is None else (instance.snapshot.copies(), instance.model)
        wrappable = getattr(built, "wrappable", True)
        snapshot = partial(Snapshot, self._live, subject.module, weights=weights, copies=copies, owner=owner)
        self._snapshot = snapshot()
        if wrappable and self._snapshot.fill_optimizers(self._forward):
            self._snapshot = snapshot()
        self._own = tuple(f"{AFTER}.{kind}" for kind in getattr(scenario, "STATE", ()))
        moves = self._own or not wrappable
        self._moving = {path for path in self._snapshot.tensors if moves and path.startswith(PARAMETER)}
        self._before: Observation = {}
        self._changing: set[str] = set()
        self._unsettled: set[str] = set()
        self._settled, self._runners, self._called = False, {""}, False
        self._odd: set[str] = set()
        self._recorded: Recorded | None = None

    def _forward(self) -> None:
        seed_all(self.subject)
        self.subject.forward()

    def observe(
        self, call: Callable[..., Any] | None = None, later: int = 0, *, other: int | None = None
    ) -> Observation:
        """Return a run's observation; ``call`` replaces the module's own, and ``later`` is added to the seed.

        With ``other``, inputs have the other values of this seed; the observation is empty if none can. A
        program that is ``stateful`` first runs with the first inputs, as compiled code may cache that result.
        """
        subject = self._with(call)
        subject = replace(subject, seed=subject.seed + later, earlier=self.earlier)
        self.restore(whole=True)
        try:
            if other is not None:
                inputs = self._inputs()
                if self.stateful:
                    self.scenario.observe(subject)
                if not inputs.renew(other, half=True):
                    return {}
                subject = replace(subject, renew=partial(inputs.renew, other, half=True))
            seen: Observation = dict(self.scenario.observe(subject))
            unknown = other is not None or self.earlier is not None  # which code has changed the state
            runners = set() if unknown else {"" if call is None else self.runner}
            seen.update(self._without(self._changed(None, runners, moves=True), self._own))
        finally:
            self._put_back(None)
            self.observed = True
        return seen

    def repeat(self, call: Callable[..., Any]) -> None:
        """Run ``call`` until :data:`RESULTS` results are recorded, if its results are recorded at all.

        The second or third result may lie in the memory of the first. Where a step is more than the call, as
        in training, eager's call runs as often too, once: state that eager's call alone changes is no fault.
        Elsewhere the scenario's step runs, which may call with other arguments than the model's own.
        """
        subject, runner = self._with(call), self.runner
        step = getattr(self.scenario, "step", None)
        again = subject.forward if self._own or step is None else step(subject)
        if self._own and not self._called:
            self._called = True
            self.restore(runner="")
            for _ in range(RESULTS):
                self.subject.forward()
                self.restore()
            self.restore(runner=runner)
        try:
            while 0 < len(self.contracts) < RESULTS:
                self.restore()
                again()
        finally:
            self.restore()

    @property
    def lost(self) -> list[str]:
        """Return the names of the state that cannot be restored."""
        return self._snapshot.lost + (self._instance.snapshot.lost if self._instance is not None else [])

    @property
    def contracts(self) -> list[Contract]:
        """The contracts of all results since the state was last restored, or another call was observed."""
        return self._recorded.contracts if self._recorded is not None else []

    def recording(self, call: Callable[..., Any]) -> Recorded:
        """Return an object that records results of ``call``."""
        inner = call.call if isinstance(call, RemadeCall) else call
        module = call.module if isinstance(call, RemadeCall) else getattr(inner, "__wrapped__", inner)
        return Recorded(inner, (self.subject.run_by(call).module, getattr(module, "_orig_mod", module)))

    def _with(self, call: Callable[..., Any] | None) -> Subject:
        """Return the subject with ``call`` in the module's place, whose results are recorded."""
        call = self.subject.call if call is None else call
        recorded = self.recording(call)
        module = recorded.modules[-1]
        if isinstance(module, torch.nn.Module) and module is not self.subject.module:
            self._snapshot.lend(module)
        if not getattr(self.subject.built, "wrappable", True):
            return self.subject.run_by(call)
        if self._recorded is None or self._recorded.call is not recorded.call:
            self._recorded = recorded
        self._recorded.left, recorded = CALLS, self._recorded
        return self.subject.run_by(replace(call, call=recorded) if isinstance(call, RemadeCall) else recorded)

    @contextmanager
    def new_inputs(self) -> Iterator[NewInputs]:
        """Yield an object that writes other values into the inputs, which are restored at the end."""
        self.restore()
        try:
            yield self._inputs()
        finally:
            self._changed(None, ())
            self._put_back(None)

    def _inputs(self) -> NewInputs:
        tensors = self._snapshot.tensors.items()
        return NewInputs(self._live, [one for path, one in tensors if path.startswith(("args", "kwargs"))])

    def restore(self, *, whole: bool = False, runner: str | None = None) -> None:
        """Restore the first state, seed all generators, and note which case changed it; ``runner`` runs next.

        Unless ``whole``, tensors that eager does not change are compared by their version counters alone, and
        parameters that the scenario's steps move are not restored.
        """
        changing = self._snapshot.tensors.keys() & self._changing
        paths = [*(changing | {*self._snapshot.touched()}) - self._moving]
        runners = {self.runner} if self._instance is None else set()  # several may have run
        self._changed(paths, runners)
        self._runners |= runners
        if whole:
            self._changed(None, self._runners)
            self._runners = set()
        self._put_back(None if whole else paths)
        seed_all(self.subject)
        self.runner = self.runner if runner is None else runner

    def begin(self, runner: str, *, whole: bool = False) -> None:
        """Seed all generators, and restore the first state, unless upstream's steps of its model go on."""
        if self._instance is None:
            self.restore(whole=whole, runner=runner)
            return
        if self.observed:
            self.restore(runner=runner)
            self._instance.restore()
        seed_all(self.subject)
        self.runner, self.observed = runner, False

    def _put_back(self, paths: Collection[str] | None) -> None:
        """Restore the tensors with ``paths``, or all except unchanged parameters; restore all other state."""
        usual = (path for path in self._snapshot.tensors if not path.startswith(PARAMETER))
        self._snapshot.restore(
            {*usual, *self._odd & self._snapshot.tensors.keys()} if paths is None else paths
        )
        self._odd.clear()

    def written_by(self, runner: str, steps: Mapping[str, Callable[[], Any]]) -> list[str]:
        """Run ``steps`` of both; return the paths that code of ``runner`` has changed, and eager has not.

        If one of several cases may have changed a path, it is returned only if steps of ``runner`` change it
        again.
        """
        self.restore()
        for name in ("", runner):
            end: float | None = None
            for number in range(PATIENCE):
                suspects = [
                    path.removesuffix(".requires_grad")
                    for path, names in self.written.items()
                    if runner in names and (not name or len(names) > 1)
                ]
                if not suspects or (end is not None and time.monotonic() > end):
                    break
                if not number:
                    self.restore(whole=True, runner=name)
                    end = time.monotonic() + PATIENCE_S
                steps[name]()  # a later step may undo the change
                self._changed(self._snapshot.tensors.keys() & suspects, {name})
            if end is not None:
                self.restore(whole=True, runner=runner)
        return [path for path, names in self.written.items() if names == {runner}]

    def forgive(self) -> None:
        """Forget attributes that changed while a back end prepared: it may store its own data in modules."""
        self.restore()
        odd = [path for path in self.written if path.startswith(ATTRIBUTE) and not path.endswith(".training")]
        for path in odd:
            del self.written[path]

    def moved(self) -> bool:
        """Return whether steps have moved a parameter that no observation of eager changes."""
        changes = (path for path, *_ in self._snapshot.changes())
        return any(path.startswith(PARAMETER) and path not in self._changing for path in changes)

    def left(self) -> Observation:
        """Return the state that changed in the steps since the last :meth:`restore`."""
        changing = self._snapshot.tensors.keys() & self._changing
        return self._without(self._changed([*changing - self._moving], set()), tuple(self._unsettled))

    def complete(self, first: Observation, second: Observation) -> tuple[Observation, Observation]:
        """Return both, each with the old values of paths that only the other has, without unsettled ones.

        If only one has moved a weight, the other gets a move of 0, or neither has it if the move is rounding.
        """
        one, other = self._completed(first, second), self._completed(second, first)
        both = {**one, **other}
        for path in one.keys() ^ other.keys():
            if not path.startswith(MOVE):
                continue
            value = path.replace(MOVE, f"{AFTER}.{PARAMETER}", 1)
            slight = near(self._before.get(value), both.get(value))
            for run in (one, other):
                if slight:
                    run.pop(path, None)
                else:
                    run.setdefault(path, torch.zeros_like(both[path]))
        return one, other

    def _completed(self, run: Observation, other: Observation) -> Observation:
        """Return ``run`` with the old values of paths that only ``other`` has."""
        odd = {path: self._before[path] for path in other.keys() - run.keys() if path in self._before}
        for path in self.boxes.keys() & self._snapshot.tensors.keys():
            name = f"{AFTER}.{path}{ELSEWHERE}"
            if name in other and name not in run:
                odd |= finite(name, to_host(self._snapshot.former(path), copy=False))
        return self._without({**odd, **run}, tuple(self._unsettled))

    def untrained(self, eager: Observation, found: Observation) -> list[str]:
        """Return the parameters that ``eager`` changes beyond rounding, if ``found`` changes none of them."""
        start = f"{AFTER}.{PARAMETER}"
        changed = [path for path in eager if path.startswith(start) and path in self._before]
        far = [path for path in changed if not near(self._before[path], eager[path])]
        return [] if found.keys() & far else far

    def settle(self, runs: Sequence[Observation]) -> None:
        """Keep the state that eager changes, and compare attributes that all ``runs`` change alike.

        A number that a TorchBench step writes may be a time: it is treated like an attribute. A program is
        ``stateful`` if it changes state that a later call may read, and trains no parameter.
        """
        self._settled = True
        trains = bool(self._moving) or any(path.startswith(PARAMETER) for path in self._changing)
        self.stateful = bool(self._changing) and not trains
        self._snapshot.narrow(self._changing)
        paths = {
            path
            for run in runs
            for path, leaf in run.items()
            if path.startswith(STATE) or (path.startswith(WRITTEN) and isinstance(leaf, (int, float, str)))
        }
        for path in paths:
            values = [run.get(path) for run in runs]
            if not all(same_bits(values[0], value) for value in values[1:]):
                self._unsettled.add(path)

    def _changed(
        self, paths: Collection[str] | None, runners: Collection[str], *, moves: bool = False
    ) -> Observation:
        """Return the changed state, of tensors only those with ``paths``; note which runners changed it.

        With ``moves``, return too how far trainable parameters have moved.
        """
        found: Observation = {}
        for path, former, present in self._snapshot.changes(paths):
            self._odd.add(path.removesuffix(".requires_grad"))
            if path in self._moving:
                continue
            before, now = self._old_and_new(former, present, path)
            odd = [name for name in {**before, **now} if not _same(name, before, now, same_bits)]
            for name in odd:
                found.update(finite(name, now.get(name)))
                if name in before:
                    self._before.setdefault(name, before[name])
            if moves and path.startswith(PARAMETER) and path in self._snapshot.trained:
                moved = change(former, present)
                if moved is not present:
                    found.update(finite(path.replace(PARAMETER, MOVE, 1), to_host(moved, copy=False)))
            if runners and path not in self._changing:
                self._note(path, set(runners), any(not _same(name, before, now, near) for name in odd))
        return found

    def _old_and_new(self, former: Any, present: Any, path: str) -> tuple[Observation, Observation]:
        """Return the parts of two values that can be compared; of a large tensor, the elements in its box."""
        if not _large(former, present):
            return _shown(former, path), _shown(present, path)
        former, present = former.to(present.device), present.detach()
        nan = former != former  # noqa: PLR0124
        changed = _box((former != present) & ~(nan & (present != present)))  # noqa: PLR0124
        box = self.boxes.setdefault(path, changed)
        before, now = _shown(former[box], path), _shown(present[box], path)
        if any(one.start < first.start or one.stop > first.stop for one, first in zip(changed, box)):  # noqa: B905
            rest = present.clone()
            rest[box] = former[box]
            before |= {f"{AFTER}.{path}{ELSEWHERE}": to_host(former, copy=False)}
            now |= _shown(rest, f"{path}{ELSEWHERE}")
        return before, now

    def _note(self, path: str, runners: set[str], far: bool) -> None:
        """Note that one of ``runners`` has changed ``path``, by more than rounding if ``far``."""
        if runners == {""}:
            self._changing.add(path)
            self.written.pop(path, None)
            if self._settled:  # eager changed it only in later steps, so it cannot be compared
                self._snapshot.narrow(self._changing)
                self._unsettled |= {f"{AFTER}.{path}", path.replace(PARAMETER, MOVE, 1)}
        elif far and self._settled:
            self.written[path] = self.written.get(path, runners) & runners or runners

    @staticmethod
    def _without(seen: Observation, paths: tuple[str, ...]) -> Observation:
        starts = tuple(f"{path.removesuffix('.')}." for path in paths)
        return {path: leaf for path, leaf in seen.items() if not f"{path}.".startswith(starts)}


def _shown(value: Any, path: str) -> Observation:
    """Return, by path, the parts of ``value`` that can be compared."""
    shown = {name: to_host(leaf) for name, leaf in leaves(value, f"{AFTER}.{path}")}
    return {
        name: str(leaf) if isinstance(leaf, float) and not math.isfinite(leaf) else leaf
        for name, leaf in shown.items()
        if not isinstance(leaf, Unknown)
    }


def _large(former: Any, present: Any) -> bool:
    """Return whether both values are dense tensors of one shape and dtype with many elements."""
    pair = (former, present)
    return (
        all(type(one) in (torch.Tensor, torch.nn.Parameter) and one.layout is torch.strided for one in pair)
        and former.shape == present.shape
        and former.dtype == present.dtype
        and former.numel() >= LARGE
        and former.element_size() > 1
        and not former.is_complex()
    )


def _box(where: torch.Tensor) -> tuple[slice, ...]:
    """Return the smallest box around the true elements of ``where``; the whole tensor if none is true."""
    box = []
    for dim, length in enumerate(where.shape):
        others = [other for other in range(where.ndim) if other != dim]
        places = (where.any(dim=others) if others else where).nonzero()
        box.append(slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, length))
    return tuple(box)


def _same(name: str, one: Observation, other: Observation, same: Callable[[Any, Any], bool]) -> bool:
    return name in one and name in other and same(one[name], other[name])
