"""Observations that begin from one state of inputs, buffers and attributes, and hold what a run made of it.

Why not the scenario's own observation alone: a model that writes into its inputs, buffers or attributes
computes something through them, and hands the next run another beginning. So they are put back before and
after each observation, and what a run changed of them is compared like an output, under ``after``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import torch

from torchgauge.harness.scenarios.scenario import RemadeCall, Subject
from torchgauge.harness.worker.contract import CALLS, Contract, Recorded
from torchgauge.harness.worker.other_inputs import NewInputs
from torchgauge.suites.leaves import Unknown, leaves
from torchgauge.suites.outputs import Observation, finite, to_host
from torchgauge.suites.torchbench.step_state import ATTRIBUTE, Snapshot, equal

RESULTS = 3
"""Number of results among which a later one may overwrite an earlier one."""
WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Whole numbers by their size in bytes."""
AFTER = "after"
"""Where an observation holds the inputs, buffers and attributes that a run has changed."""
STATE = f"{AFTER}.{ATTRIBUTE}."


class Observer:
    """Observes ``subject`` by ``scenario`` as often as it is asked to.

    ``writes`` says whether a run has changed an input, a buffer or an attribute so far.
    """

    def __init__(self, scenario: Any, subject: Subject) -> None:
        self.scenario, self.subject, self.writes = scenario, subject, False
        self._live = {"args": subject.args, "kwargs": subject.kwargs, "buffer": _buffers(subject.module)}
        self._snapshot = Snapshot(self._live, subject.module)
        self._before: Observation = {}
        self._changing: set[str] = set()
        self._unsettled: set[str] = set()
        self._recorded: Recorded | None = None

    def observe(self, call: Callable[..., Any] | None = None, later: int = 0) -> Observation:
        """Return what a run shows; ``call`` replaces the module's own, and ``later`` is added to the seed."""
        subject = self._with(call)
        subject = replace(subject, seed=subject.seed + later) if later else subject
        self._snapshot.restore()
        try:
            seen: Observation = dict(self.scenario.observe(subject))
            seen.update(self._changed())
        finally:
            self._snapshot.restore()
        self.subject.initial = subject.initial  # timed steps move parameters: later observations begin here
        return seen

    def repeat(self, call: Callable[..., Any]) -> None:
        """Run ``call`` until :data:`RESULTS` results are recorded, if its results are recorded at all.

        The second or third result may lie in the memory of the first.
        """
        subject = self._with(call)
        try:
            while 0 < len(self.contracts) < RESULTS:
                self._snapshot.restore()
                subject.forward()
        finally:
            self._snapshot.restore()

    @property
    def contracts(self) -> list[Contract]:
        """The contracts of all results since the state was last restored, or another call was observed."""
        return self._recorded.contracts if self._recorded is not None else []

    def _with(self, call: Callable[..., Any] | None) -> Subject:
        """Return the subject with ``call`` in the module's place, whose results are recorded."""
        call = self.subject.call if call is None else call
        inner = call.call if isinstance(call, RemadeCall) else call
        module = call.module if isinstance(call, RemadeCall) else getattr(inner, "__wrapped__", inner)
        if isinstance(module, torch.nn.Module) and module is not self.subject.module:
            self._snapshot.lend(module)
        if not getattr(self.subject.built, "wrappable", True):
            return self.subject.run_by(call)
        if self._recorded is None or self._recorded.call is not inner:
            self._recorded = Recorded(inner, (self.subject.run_by(call).module, module))
        self._recorded.left = CALLS
        recorded = self._recorded
        return self.subject.run_by(replace(call, call=recorded) if isinstance(call, RemadeCall) else recorded)

    def observe_other(self, call: Callable[..., Any] | None = None) -> Observation | None:
        """Return what a run shows with other values in its inputs; None if no input can change."""
        subject = self._with(call)
        with self.new_inputs() as inputs:
            return dict(self.scenario.observe(subject)) if inputs.renew(0) else None

    @contextmanager
    def new_inputs(self) -> Iterator[NewInputs]:
        """Yield what writes other values into the inputs; they are put back at the end."""
        inputs = {name: self._live[name] for name in ("args", "kwargs")}
        self._snapshot.restore()
        try:
            yield NewInputs(inputs, self._snapshot.tensors.values())
        finally:
            self._snapshot.restore()

    def restore(self) -> None:
        """Put inputs, buffers and attributes back where runs change them; costs nothing where they do not."""
        self._recorded = None
        if self.writes:
            self._snapshot.restore()

    def complete(self, first: Observation, second: Observation) -> tuple[Observation, Observation]:
        """Return both, each with the old values of what only the other changed; drop unsettled attributes."""
        odd = {path: self._before[path] for path in first.keys() ^ second.keys() if path in self._before}
        whole = ({**odd, **one} for one in (first, second))
        one, other = ({k: v for k, v in each.items() if k not in self._unsettled} for each in whole)
        return one, other

    def settle(self, runs: Sequence[Observation]) -> None:
        """Keep the attributes that eager changes, and compare those that all ``runs`` change alike."""
        self._snapshot.narrow(self._changing)
        for path in {path for run in runs for path in run if path.startswith(STATE)}:
            values = [run.get(path) for run in runs]
            if not all(same_bits(values[0], value) for value in values[1:]):
                self._unsettled.add(path)

    def _changed(self) -> Observation:
        found: Observation = {}
        for path, former, present in self._snapshot.changes():
            self.writes = True
            self._changing.add(path)
            before, now = _shown(former, path), _shown(present, path)
            for name in {**before, **now}:
                if not (name in before and name in now and same_bits(before[name], now[name])):
                    found.update(finite(name, now.get(name)))
                    if name in before:
                        self._before.setdefault(name, before[name])
        return found


def _shown(value: Any, path: str) -> Observation:
    """Return, by path, the parts of ``value`` that can be compared."""
    shown = {name: to_host(leaf) for name, leaf in leaves(value, f"{AFTER}.{path}")}
    return {
        name: str(leaf) if isinstance(leaf, float) and not math.isfinite(leaf) else leaf
        for name, leaf in shown.items()
        if not isinstance(leaf, Unknown)
    }


def weight_sums(module: Any) -> dict[str, int]:
    """Return a sum over the bits of each parameter of ``module``, where its device and layout allow it."""
    sums = {}
    for name, weight in module.named_parameters() if isinstance(module, torch.nn.Module) else ():
        with suppress(Exception):
            whole = WHOLE[weight.element_size()]
            sums[name] = int(weight.detach().contiguous().view(whole).sum(dtype=torch.int64))
    return sums


def _buffers(module: Any) -> dict[str, Mapping[str, Any]]:
    """The live tables of buffers below ``module``: a model may write into a buffer, or put another there."""
    if not isinstance(module, torch.nn.Module):
        return {}
    tables: dict[str, Mapping[str, Any]] = {}
    for name, part in module.named_modules():
        table = part._buffers
        if table:
            tables[name or "model"] = table if isinstance(table, dict) else dict(table.items())
    return tables


def same_bits(before: Any, now: Any) -> bool:
    """Return whether two leaves are equal to the bit; NaN is equal to NaN."""
    if not isinstance(before, torch.Tensor) or not isinstance(now, torch.Tensor):
        return type(before) is type(now) and bool(before == now)
    return before.dtype == now.dtype and equal(before, now)
