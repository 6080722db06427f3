"""The devices of a run, one after another or several at once, and what they leave to each other.

Accelerators have pools of workers at work side by side; what times has the machine to itself all the same
(:mod:`.timing_lock`). The host never measures beside another device: it is what the others run on.

At the end, and alone: what was set aside because of its neighbours; once more what the environment broke, on
another device of the kind where there is one; and there, too, what a device that has left did not get to.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchgauge.harness.executors.executor import RunNote, Submission, Yield
from torchgauge.harness.interpreter.staging import tree_for
from torchgauge.harness.pool.device_health import DeviceHealth
from torchgauge.harness.pool.pace import Pace
from torchgauge.harness.pool.side_by_side import side_by_side
from torchgauge.harness.pool.timing_lock import TimingLock
from torchgauge.harness.pool.worker_pool import WorkerPool
from torchgauge.harness.run.rows import unattempted
from torchgauge.records import Cause, DeviceTarget, Group, Result, Status
from torchgauge.suites.suite import HOST


@dataclass(frozen=True)
class Waiting:
    """A group that is to be run at the end: not on the device ``failed``, where there is another one."""

    group: Group
    on: DeviceTarget
    failed: bool


@dataclass
class DevicesAtOnce:
    """Runs the groups of ``submission`` on their devices, ``at_once`` of them side by side.

    Of these ``timed_at_once`` may time at the same time. ``spares`` are further devices that may take what
    another one of their kind leaves.
    """

    submission: Submission
    work: Path
    at_once: int = 1
    timed_at_once: int = 1
    spares: Sequence[DeviceTarget] = ()
    waiting: list[Waiting] = field(default_factory=list)
    retried: set[str] = field(default_factory=set)
    stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.groups: dict[DeviceTarget, list[Group]] = {}
        for group in self.submission.groups:
            self.groups.setdefault(group.device, []).append(group)
        plan, clock = self.submission.plan, self.submission.clock
        self.health = {
            target: DeviceHealth(
                self.submission.devices[target.name], target, plan.run_id, clock, self.only_checks(target)
            )
            for target in dict.fromkeys([*self.groups, *self.spares])
            if target.name in self.submission.devices
        }
        self.pace, self.made = Pace.of_plan(plan), Counter(self.submission.made)
        budget = plan.settings.budget_s
        self.until = None if budget is None else clock.steady() + budget

    def only_checks(self, target: DeviceTarget) -> bool:
        """Whether ``target`` is examined, and nothing else is measured on it."""
        groups = self.groups.get(target, [])
        return bool(groups) and all(group.checks for group in groups)

    def run(self) -> Iterator[Yield]:
        """Run everything that there is time for."""
        tree_for(self.submission.python, self.work)  # once: several threads would make it together
        stages = self.stages()
        for number, targets in enumerate(stages):
            turns = sum(self.rounds(each) for each in stages[number:])
            yield from self.stage(targets, turns)
        while self.waiting and not self.submission.cancelled():
            yield from self.another_try()

    def stages(self) -> list[list[DeviceTarget]]:
        """Devices in the order of the plan, those together that may be at work side by side."""
        found: list[list[DeviceTarget]] = []
        for target in self.groups:
            if found and self.may_share(target) and self.may_share(found[-1][0]):
                found[-1].append(target)
            else:
                found.append([target])
        return found

    def may_share(self, target: DeviceTarget) -> bool:
        """Whether others may be at work beside ``target``: not the host, nor several processes."""
        if self.health[target].device.torch_type == HOST:
            return False
        return all(group.workload.processes == 1 for group in self.groups[target])

    def rounds(self, targets: Sequence[DeviceTarget]) -> int:
        """How many devices of ``targets`` are at work one after another."""
        return -(-len(targets) // max(1, self.at_once))

    def stage(self, targets: list[DeviceTarget], turns: int) -> Iterator[Yield]:
        """Run the groups of ``targets``, for which there is one of the ``turns`` that share the time left."""
        now = self.submission.clock.steady()
        share = None if self.until is None else (self.until - now) / turns
        width = min(len(targets), max(1, self.at_once))
        lock = TimingLock(self.timed_at_once) if width > 1 else None
        queue = [(place, target) for place, target in enumerate(targets)]
        mutex = threading.Lock()

        def pools() -> Iterator[Yield]:
            while not self.cancelled():
                with mutex:
                    if not queue:
                        return
                    place, target = queue.pop(0)
                until = None if share is None else now + share * (place // width + 1)
                yield from self.turn(target, until, lock, width)

        if lock is None:
            yield from pools()
        else:
            sources = [pools() for _ in range(width)]
            yield from side_by_side(sources, lambda: lock.wait_for_quiet(self.cancelled), self.stopping)

    def turn(
        self, target: DeviceTarget, until: float | None, lock: TimingLock | None, width: int
    ) -> Iterator[Yield]:
        """Run the groups of ``target``, one of ``width`` devices that are at work."""
        health, groups = self.health[target], self.groups[target]
        if health.gone:
            yield from map(RunNote, health.said())
            self.waiting += [Waiting(each, target, failed=True) for each in groups]
            return
        prefetch = max(1, self.submission.plan.settings.prefetch // width)
        yield from self.pool(health, groups, until, lock=lock, prefetch=prefetch)

    def pool(
        self, health: DeviceHealth, groups: list[Group], until: float | None, **more: object
    ) -> Iterator[Yield]:
        """Run ``groups`` on the device of ``health``, and note what it leaves."""
        pool = WorkerPool(
            replace(self.submission, cancelled=self.cancelled),
            health,
            self.work,
            groups,
            self.pace,
            until,
            retried=self.retried,
            made=self.made,
            siblings=bool(self.others(health.target)),
            **more,  # type: ignore[arg-type]
        )
        yield from pool.run()
        self.waiting += [Waiting(each, health.target, failed=False) for each in pool.alone]
        self.waiting += [Waiting(each, health.target, failed=True) for each in (*pool.again, *pool.moved)]

    def cancelled(self) -> bool:
        """Whether everything is to end at once."""
        return self.stopping.is_set() or self.submission.cancelled()

    # --- at the end --------------------------------------------------------------------------

    def another_try(self) -> Iterator[Yield]:
        """Run what waits, one device after another, with nothing beside it."""
        waiting, self.waiting = self.waiting, []
        placed: dict[DeviceTarget, list[Group]] = {}
        for each in waiting:
            target = self.place_for(each)
            if target is None:
                yield self.nowhere(each)
            else:
                placed.setdefault(target, []).append(each.group)
        for target, groups in placed.items():
            if self.submission.cancelled():
                return
            if self.health[target].gone:  # since this round began
                self.waiting += [Waiting(each, target, failed=True) for each in groups]
                continue
            yield from self.pool(self.health[target], groups, self.until, brief=True)

    def place_for(self, each: Waiting) -> DeviceTarget | None:
        """The device that is to run what waits; None where none can."""
        elsewhere = each.failed or bool(self.health[each.on].gone)
        others = self.others(each.on) if elsewhere and each.group.workload.processes == 1 else []
        if others:
            return others[0]
        return None if self.health[each.on].gone else each.on

    def others(self, target: DeviceTarget) -> list[DeviceTarget]:
        """Other devices of the kind of ``target`` that are in the pool."""
        return [
            other
            for other, health in sorted(self.health.items(), key=lambda item: item[0].index)
            if other.name == target.name and other != target and not health.gone
        ]

    def nowhere(self, each: Waiting) -> list[Result]:
        """Rows of what no device is left for."""
        gone = self.health[each.on].gone
        reason = f"device '{each.on}' has left the pool, and no other {each.on.name} device is left: {gone}"
        rows = []
        for planned in each.group.cases:
            why = planned.declined
            ended = (
                (why.status, why.cause, why.reason) if why else (Status.NOT_RUN, Cause.QUARANTINED, reason)
            )
            rows.append(unattempted(self.submission.plan, planned, *ended))
        return rows
