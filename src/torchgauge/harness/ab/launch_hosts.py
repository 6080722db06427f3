"""The hosts of one launch: new processes in random order, their environment random in hash seed and size."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from torchgauge.harness.ab.bench import Bench, Variables
from torchgauge.harness.executors.station import Station
from torchgauge.records import Case, DeviceTarget, Scalar
from torchgauge.records.comparison import Contestant, Pair, Side

TWIN = "twin"
"""The base of an A/A pair beside a head that is not executed like the base: head once more."""
PADDING = "TORCHGAUGE_PADDING"
MOST_PADDING = 4096
"""Bytes: where the stack begins depends on the size of the environment (Mytkowicz et al., ASPLOS 2009)."""
Key = tuple[str, DeviceTarget, Variables]


@dataclass
class LaunchHosts:
    """Role, device and variables of the configuration to the host that serves them."""

    contestants: Mapping[Side, Contestant]
    stations: Mapping[tuple[Side, DeviceTarget], Station]
    seed: str
    benches: dict[Key, Bench] = field(default_factory=dict)
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
            if key not in self.benches:
                self.benches[key] = self._bench(key)
                self.benches[key].begin()
        for bench in self.benches.values():
            bench.ready()

    def bench(self, side: Side, pair: Pair) -> Bench:
        """The host of one side of ``pair``."""
        return self.benches[self._key(side, pair)]

    def first(self, pair: Pair) -> Side:
        """The side of ``pair`` whose host started first."""
        return min(Side, key=lambda side: self._roles.index(self._role(side, pair)))

    def remarks(self) -> list[str]:
        """What was remarked since this was last asked."""
        found = [text for bench in self.benches.values() for text in bench.remarks]
        for bench in self.benches.values():
            bench.remarks.clear()
        return found

    def close(self) -> None:
        """End all hosts."""
        for bench in self.benches.values():
            bench.close()
        self.benches.clear()

    def _role(self, side: Side, pair: Pair) -> str:
        if side is Side.HEAD or not pair.control:
            return side.value
        base, head = self.contestants[Side.BASE], self.contestants[Side.HEAD]
        alike = (base.python, base.variables) == (head.python, head.variables)
        return Side.BASE.value if alike else TWIN

    def _key(self, side: Side, pair: Pair) -> Key:
        case = case_of(side, pair)
        return self._role(side, pair), case.device, case.configuration.env

    def _bench(self, key: Key) -> Bench:
        role, target, variables = key
        side = Side.BASE if role == Side.BASE.value else Side.HEAD
        dice = self.dice(f"host {role} {target} {variables}")
        chance = {
            "PYTHONHASHSEED": str(dice.randrange(1, 1 << 32)),
            PADDING: "x" * dice.randrange(MOST_PADDING),
        }
        self.conditions[f"{role}_hash_seed"] = int(chance["PYTHONHASHSEED"])
        self.conditions[f"{role}_padding"] = len(chance[PADDING])
        merged = {**dict(variables), **chance, **dict(self.contestants[side].variables)}
        return Bench(self.stations[side, target], role, tuple(sorted(merged.items())))


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
