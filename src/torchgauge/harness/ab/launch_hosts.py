"""The hosts of one launch: new processes in random order, their environment random in hash seed and size."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchgauge.harness.job import CALIBRATE
from torchgauge.harness.pool.worker_host import WorkerHost
from torchgauge.harness.pool.worker_setup import Variables, WorkerSetup, environment_in
from torchgauge.records import Case, DeviceTarget, Environment, Scalar
from torchgauge.records.comparison import Pair, Side, SideSpec

TWIN = "twin"
"""The base of an A/A pair beside a head that is not executed like the base: head once more."""
PADDING = "TORCHGAUGE_PADDING"
MOST_PADDING = 4096
"""Bytes: where the stack begins depends on the size of the environment (Mytkowicz et al., ASPLOS 2009)."""
COMPILER = ("torch._dynamo", "torch._inductor")
"""Not imported where nothing is compiled: every launch would pay for it."""
WORKER_MODULE = "torchgauge.harness.ab.side_run"
Key = tuple[str, DeviceTarget, Variables]


@dataclass
class LaunchHosts:
    """Role, device and variables of the configuration to the host that serves them."""

    specs: Mapping[Side, SideSpec]
    setups: Mapping[tuple[Side, DeviceTarget], WorkerSetup]
    seed: str
    hosts: dict[Key, WorkerHost] = field(default_factory=dict)
    conditions: dict[str, Scalar] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._roles = [Side.BASE.value, Side.HEAD.value, TWIN]
        self.dice("roles").shuffle(self._roles)

    def dice(self, what: str) -> random.Random:
        """Chance for ``what`` alone: how long something took, or whether it failed, changes no other draw."""
        return random.Random(f"{self.seed}: {what}")  # noqa: S311  chance, no secret

    def open(self, pairs: Iterable[Pair]) -> None:
        """Start every host that ``pairs`` need, and wait for all: none may import while another measures."""
        wanted = {self._key(side, pair) for pair in pairs for side in Side}
        for key in sorted(wanted, key=lambda key: (self._roles.index(key[0]), str(key))):
            if key not in self.hosts:
                self.hosts[key] = self._host(key)
                self.hosts[key].begin()
        for host in self.hosts.values():
            host.ready()

    def host(self, side: Side, pair: Pair) -> WorkerHost:
        """The host of one side of ``pair``."""
        return self.hosts[self._key(side, pair)]

    def setup(self, side: Side, pair: Pair) -> WorkerSetup:
        """What its workers import and are told."""
        role, target, _ = self._key(side, pair)
        return self.setups[_executes(role), target]

    def describe(self, side: Side, pair: Pair, log: Path) -> Environment | None:
        """The environment as a worker of one side of ``pair`` sees it; None where it could not say."""
        setup = self.setup(side, pair)
        settings = replace(setup.submission.plan.settings, calibrate=False)
        job = setup.job(CALIBRATE, at="start", settings=settings)
        return environment_in(self.host(side, pair).run(job, log).events)

    def first(self, pair: Pair) -> Side:
        """The side of ``pair`` whose host started first."""
        return min(Side, key=lambda side: self._roles.index(self._role(side, pair)))

    def notes(self) -> list[str]:
        """What was remarked since this was last asked."""
        found = [text for host in self.hosts.values() for text in host.notes]
        for host in self.hosts.values():
            host.notes.clear()
        return found

    def close(self) -> None:
        """End all hosts."""
        for host in self.hosts.values():
            host.close()
        self.hosts.clear()

    def _role(self, side: Side, pair: Pair) -> str:
        if side is Side.HEAD or not pair.control:
            return side.value
        base, head = self.specs[Side.BASE], self.specs[Side.HEAD]
        alike = (base.python, base.variables, base.revision) == (head.python, head.variables, head.revision)
        return Side.BASE.value if alike else TWIN

    def _key(self, side: Side, pair: Pair) -> Key:
        case = case_of(side, pair)
        return self._role(side, pair), case.device, case.configuration.env

    def _host(self, key: Key) -> WorkerHost:
        role, target, variables = key
        side = _executes(role)
        setup = self.setups[side, target]
        dice = self.dice(f"host {role} {target} {variables}")
        chance = {
            "PYTHONHASHSEED": str(dice.randrange(1, 1 << 32)),
            PADDING: "x" * dice.randrange(MOST_PADDING),
        }
        self.conditions[f"{role}_hash_seed"] = int(chance["PYTHONHASHSEED"])
        self.conditions[f"{role}_padding"] = len(chance[PADDING])
        merged = {**dict(variables), **chance, **dict(self.specs[side].variables)}
        options = setup.host_options(tuple(sorted(merged.items())))
        preload = [name for name in options.preload if setup.compiles or not name.startswith(COMPILER)]
        options = replace(options, preload=(*preload, WORKER_MODULE))
        return WorkerHost(setup.submission, setup.work, role, options)


def _executes(role: str) -> Side:
    """The side as which a host of ``role`` is executed."""
    return Side.BASE if role == Side.BASE.value else Side.HEAD


def case_of(side: Side, pair: Pair) -> Case:
    """The case of one side."""
    return pair.base if side is Side.BASE else pair.head


def threads_of(pair: Pair, default: int | None) -> int | None:
    """How many CPUs ``pair`` is bound to; None where it does not say, or asks for certain ones itself."""
    found = []
    for case in (pair.base, pair.head):
        configuration = case.configuration
        threads = configuration.threads or default
        if threads is None or configuration.cpus or configuration.numa is not None:
            return None
        found.append(threads)
    return max(found)


def choose_cpus(threads: int | None, dice: random.Random) -> tuple[int, ...]:
    """As many random CPUs of those that this process may use; none without a number, or off Linux."""
    if threads is None or not hasattr(os, "sched_getaffinity"):
        return ()
    allowed = sorted(os.sched_getaffinity(0))
    return tuple(sorted(dice.sample(allowed, min(threads, len(allowed)))))
