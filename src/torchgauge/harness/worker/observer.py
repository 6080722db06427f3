"""Observations that all begin from the same inputs and buffers, and hold what a run made of those.

Why not the scenario's own observation alone: a model that writes into its inputs or its buffers computes
something through them, and hands the next run another beginning. So both are put back before and after each
observation, and what a run changed of them is compared like an output, under ``after``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.harness.worker.other_inputs import alter
from torchgauge.suites.leaves import Unknown, leaves
from torchgauge.suites.outputs import Observation, finite, to_host
from torchgauge.suites.torchbench.step_state import Snapshot

AFTER = "after"
"""Where an observation holds the inputs and buffers that a run has changed."""


class Observer:
    """Observes ``subject`` by ``scenario`` as often as it is asked to.

    ``writes`` says whether a run has changed an input or a buffer so far.
    """

    def __init__(self, scenario: Any, subject: Subject) -> None:
        self.scenario, self.subject, self.writes = scenario, subject, False
        self._live = {"args": subject.args, "kwargs": subject.kwargs, "buffer": _buffers(subject.module)}
        self._snapshot = Snapshot(self._live)
        self._before = self._held()

    def observe(self, call: Callable[..., Any] | None = None) -> Observation:
        """What a run shows, with ``call`` in the place of the module's own."""
        subject = self.subject if call is None else self.subject.run_by(call)
        self._snapshot.restore()
        try:
            seen: Observation = dict(self.scenario.observe(subject))
            seen.update(self._changed())
        finally:
            self._snapshot.restore()
        return seen

    def observe_other(self, call: Callable[..., Any] | None = None) -> Observation | None:
        """What a run shows that finds other values in its inputs; None where none of them can change."""
        subject = self.subject if call is None else self.subject.run_by(call)
        self._snapshot.restore()
        try:
            inputs = {name: self._live[name] for name in ("args", "kwargs")}
            if not alter(inputs, self._snapshot.tensors.values()):
                return None
            return dict(self.scenario.observe(subject))
        finally:
            self._snapshot.restore()

    def restore(self) -> None:
        """Put inputs and buffers back where runs change them; costs nothing where they do not."""
        if self.writes:
            self._snapshot.restore()

    def complete(self, first: Observation, second: Observation) -> tuple[Observation, Observation]:
        """Both with the inputs and buffers that only one of them has changed."""
        odd = {path: self._before[path] for path in first.keys() ^ second.keys() if path in self._before}
        return {**odd, **first}, {**odd, **second}

    def _held(self) -> Observation:
        return {
            path: to_host(leaf)
            for path, leaf in leaves(self._live, AFTER)
            if not isinstance(leaf, Unknown)  # nobody can say what became of it
        }

    def _changed(self) -> Observation:
        now = self._held()
        found: Observation = {path: None for path in self._before if path not in now}
        for path, leaf in now.items():
            if path not in self._before or not _equal(self._before[path], leaf):
                found.update(finite(path, leaf))
        self.writes = self.writes or bool(found)
        return found


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


def _equal(before: Any, now: Any) -> bool:
    """Whether two leaves are equal to the bit; NaN is equal to NaN."""
    if not isinstance(before, torch.Tensor) or not isinstance(now, torch.Tensor):
        return type(before) is type(now) and bool(before == now)
    if before.shape != now.shape or before.dtype != now.dtype:
        return False
    return torch.equal(before, now) or bool(((before == now) | ((before != before) & (now != now))).all())  # noqa: PLR0124
