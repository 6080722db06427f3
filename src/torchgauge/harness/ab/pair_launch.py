"""One pair in one launch: build both sides, let them take turns, and keep what was measured."""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torchgauge.clock import Clock
from torchgauge.harness.ab.alternation import Alternation, other, steps_per_block
from torchgauge.harness.ab.live_side import LiveSide
from torchgauge.harness.ab.wire import Listener
from torchgauge.harness.job import SIDE
from torchgauge.harness.pool.watch import OomKills
from torchgauge.harness.pool.worker_host import WorkerHost
from torchgauge.harness.pool.worker_setup import WorkerSetup
from torchgauge.records import Cause, Group, Outcome, Phase, PlannedCase, RunSettings, Scalar, Status
from torchgauge.records.comparison import UNSEEN, Block, Launch, Pair, Side
from torchgauge.records.placement import format_cpus
from torchgauge.suites.model_code import code_of

OTHERWISE = "base and head have different configurations"


@dataclass(frozen=True)
class SideLaunch:
    """What one side of a pair runs with: its host, its case in its group, and its compile cache."""

    setup: WorkerSetup
    host: WorkerHost
    group: Group
    planned: PlannedCase
    cache: Path
    filled: bool


@dataclass(frozen=True)
class Order:
    """What is asked of one launch of one pair.

    ``sockets`` is the folder of the sockets, ``logs`` that of the logs.
    """

    pair: Pair
    number: int
    confirms: bool
    abba_blocks: int
    first: Side
    cpus: tuple[int, ...]
    sockets: Path
    logs: Path
    conditions: tuple[tuple[str, Scalar], ...] = ()


@dataclass
class PairLaunch:
    """One pair from its first process to its last."""

    order: Order
    sides: Mapping[Side, SideLaunch]
    dice: random.Random
    cancelled: Callable[[], bool]
    on_event: Callable[[Side, dict[str, Any]], None]
    live: dict[Side, LiveSide] = field(default_factory=dict)
    outcomes: dict[Side, Outcome] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    facts: dict[str, Scalar] = field(default_factory=dict)
    oom_kills: OomKills = field(default_factory=OomKills)
    stopped: bool = False

    def run(self) -> Launch | None:
        """Measure; None where it was interrupted."""
        clock = self._clock
        began, started_at = clock.steady(), clock.now()
        steps = self._set_up()
        ready = clock.steady()
        try:
            if len(steps) == 2:
                self._alternate(steps)
        finally:
            measured = clock.steady()
            for side in Side:
                if side in self.live and side not in self.outcomes:
                    self._end(side)
                elif side not in self.outcomes:
                    key = self.sides[side].planned.case.key
                    self.outcomes[side] = Outcome(
                        key, Status.NOT_RUN, Phase.START, Cause.CANCELLED, "interrupted"
                    )
        if self.stopped or any(each.cause is Cause.CANCELLED for each in self.outcomes.values()):
            return None
        self.facts["load_after"] = round(os.getloadavg()[0], 2)
        order = self.order
        return Launch(
            pair_key=order.pair.key,
            pair_id=order.pair.id,
            number=order.number,
            first=order.first,
            base=self._with_code(Side.BASE),
            head=self._with_code(Side.HEAD),
            blocks=tuple(self.blocks),
            confirms=order.confirms,
            control=order.pair.control,
            cpus=order.cpus,
            started_at=started_at,
            setup_s=clock.steady() - measured + ready - began,
            measure_s=measured - ready,
            conditions=tuple(sorted({**dict(order.conditions), **self.facts}.items())),
        )

    @property
    def _clock(self) -> Clock:
        return self.sides[Side.BASE].setup.submission.clock

    @property
    def _settings(self) -> RunSettings:
        return self.sides[Side.BASE].setup.submission.plan.settings

    # --- setting up --------------------------------------------------------------------------

    def _set_up(self) -> dict[Side, float]:
        """Build and warm up one side after the other; seconds of a step of each that came so far."""
        self.facts["load_before"] = round(os.getloadavg()[0], 2)
        found: dict[Side, float] = {}
        for side in (self.order.first, other(self.order.first)):
            if self.cancelled():
                self.stopped = True
                break
            own = self.sides[side]
            outcome = refusal(own.planned)
            if outcome is None and not own.host.ready():
                reason = "the process that forks the workers did not start; see logs/host.log"
                outcome = Outcome(own.planned.case.key, Status.INFRA, Phase.START, Cause.LOST_WORKER, reason)
            if outcome is not None:
                self.outcomes[side] = outcome
                continue
            self.live[side] = self._start(side, own)
            step_s = self.live[side].wait()
            if step_s is None:
                self._end(side)
            else:
                found[side] = step_s
        return found

    def _start(self, side: Side, own: SideLaunch) -> LiveSide:
        order = self.order
        listener = Listener(order.sockets / secrets.token_hex(8))
        group = replace(own.group, cases=(own.planned,))
        job = replace(
            own.setup.group_job(SIDE, group, own.cache),
            cpus=format_cpus(order.cpus),
            control=str(listener.path),
            filled=own.filled,
        )
        log = order.logs / f"{order.number}-{order.pair.key[:8]}-{side.value}.log"
        watch = own.host.start(job, log, lambda event: self.on_event(side, event))
        return LiveSide(own.planned, watch, listener)

    # --- measuring ---------------------------------------------------------------------------

    def _alternate(self, step_s: Mapping[Side, float]) -> None:
        """Run the ABBA blocks, fewer where their steps are slow: ``measure_budget_s`` is for each side."""
        steps, order = steps_per_block(step_s), self.order
        self.facts["steps_per_block"] = steps
        abba = Alternation(
            {side: live.block for side, live in self.live.items()}, self.dice, self._clock, self.cancelled
        )
        abba.run(order.first, steps, order.abba_blocks, len(step_s) * self._settings.measure_budget_s)
        self.blocks, self.stopped = abba.blocks, self.stopped or abba.stopped
        if abba.refused:
            self.facts["refused_steps"] = abba.refused

    # --- the end -----------------------------------------------------------------------------

    def _with_code(self, side: Side) -> Outcome:
        """Return the outcome of ``side`` with the facts that name the code of its model."""
        own, outcome = self.sides[side], self.outcomes[side]
        code = code_of(own.setup.submission.suites[own.group.workload.suite], own.group)
        facts = {**dict(outcome.facts), **code}
        if self.order.pair.base.configuration != self.order.pair.head.configuration:
            return replace(outcome, outputs=(), facts=tuple(sorted({**facts, UNSEEN: OTHERWISE}.items())))
        return replace(outcome, facts=tuple(sorted(facts.items())))

    def _end(self, side: Side) -> None:
        own = self.sides[side]
        self.outcomes[side] = self.live[side].finish(self.oom_kills.more)
        if self.live[side].lost:
            own.host.close()


def refusal(planned: PlannedCase) -> Outcome | None:
    """The outcome of a case that is not even tried; None where it is."""
    why = planned.declined
    if why is None:
        return None
    return Outcome(planned.case.key, why.status, Phase.START, why.cause, why.reason)
