"""Rank 0 of launched processes: it waits for the others, gives them the plan, and leads their workers."""

from __future__ import annotations

import base64
import itertools
import json
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from torchgauge.clock import SYSTEM_CLOCK, Clock
from torchgauge.counted import counted
from torchgauge.errors import InfrastructureError, TorchgaugeError, UsageError
from torchgauge.harness.interpreter.interpreter import Interpreter
from torchgauge.harness.job import Job
from torchgauge.harness.launched import meeting, wire
from torchgauge.harness.launched.launch import Launch
from torchgauge.harness.pool.rank_run import AnyHost
from torchgauge.harness.pool.watch import LOST_S, TICK_S, Ending, Listener
from torchgauge.harness.pool.worker_host import READY_TIMEOUT_S, WorkerHost
from torchgauge.harness.pool.worker_setup import Variables
from torchgauge.harness.run.rank_devices import MACHINES
from torchgauge.records import Environment, Phase, Plan, Refusal, Status, to_plain

SILENT_S = 3 * LOST_S
"""After as many seconds without a word another process is lost; it speaks each :data:`wire.BEAT_S`."""
_STANDS_STILL = "its torchgauge process does not answer"
_NAMED = 8
"""As many missing ranks are named."""


@dataclass
class Member:
    """One launched process as rank 0 knows it; ``lost`` says why it can serve no more.

    ``boot`` tells its machine from another of that name. ``ahead_s`` is by how much its clock is ahead of
    ours.
    """

    rank: int
    local_rank: int
    machine: str
    boot: str
    cores: int
    line: wire.Wire | None = None
    ahead_s: float = 0.0
    lost: str = ""

    @property
    def named(self) -> str:
        """The rank and its machine."""
        return f"rank {self.rank} on {self.machine}"


@dataclass
class Crew:
    """The launched processes, by rank; the first is this one."""

    launch: Launch
    members: list[Member]
    _cases: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def machines(self) -> tuple[str, ...]:
        """The names of the machines, each once, that of rank 0 first."""
        return tuple(dict.fromkeys(each.machine for each in self.members))

    def next_place(self) -> tuple[int, str]:
        """The number of the next case, and where its workers meet: a corner of the launcher's store."""
        number, host = next(self._cases), self.launch.address
        host = f"[{host}]" if ":" in host else host
        return number, f"tcp://{host}:{self.launch.port}/torchgauge/{self.launch.attempt}/{number}"

    def threads(self, count: int) -> int:
        """Threads of each of ``count`` workers: all have as many, and no machine has more than cores."""
        at = [each.machine for each in self.members[:count]]
        return min(max(1, each.cores // at.count(each.machine)) for each in self.members[:count])

    def on_this_machine(self, count: int) -> int:
        """How many devices of this machine ``count`` workers reach, counted from the first."""
        return devices_of(self.members[0].machine, self._places, count)

    def told(self, environment: Environment) -> Environment:
        """``environment`` with the machines: numbers of several are never taken for those of one."""
        ranks = ", ".join(f"{each.rank} {each.machine}" for each in self.members)
        conditions = tuple(sorted((*environment.conditions, ("launched.ranks", ranks))))
        if len(self.machines) == 1:
            return replace(environment, conditions=conditions)
        identity = tuple(sorted((*environment.identity, (MACHINES, ", ".join(self.machines)))))
        return replace(environment, identity=identity, conditions=conditions)

    def take(self, plan: Plan) -> Plan:
        """Give ``plan`` to all; what the devices of another machine cannot run comes back refused.

        Raises :class:`UsageError` where a process cannot serve it, and :class:`InfrastructureError` where
        one has gone.
        """
        most = max((each.workload.processes for each in plan.groups), default=1)
        if most > self.launch.count:
            raise UsageError(
                f"a case of the plan takes {most} processes: the launcher has started {self.launch.count}",
                hint=f"launch {most}, or name fewer with --processes",
            )
        for each in self.members[1:]:
            _line(each).send(plan=to_plain(plan), places=self._places)
        refused: dict[str, str] = {}
        for each in self.members[1:]:
            said = self._hear(each, meeting.PATIENCE_S)
            if "error" in said:
                raise UsageError(f"{each.named}: {said['error']}", hint=said["hint"])
            refused.update({group: f"{each.named}: {why}" for group, why in said["refused"].items()})
        groups = tuple(
            replace(group, cases=tuple(_refuse(case, refused[group.id]) for case in group.cases))
            if group.id in refused
            else group
            for group in plan.groups
        )
        return replace(plan, groups=groups)

    def hosts(self, number: int, count: int, like: AnyHost, variables: Variables) -> list[RemoteHost]:
        """What starts the workers of case ``number`` but the first, each ``like`` the host of that one."""
        assert isinstance(like, WorkerHost)
        cancelled = like.submission.cancelled
        return [
            RemoteHost(each, number, like.name, variables, like.notes, cancelled)
            for each in self.members[1:count]
        ]

    @property
    def _places(self) -> list[tuple[str, int]]:
        return [(each.machine, each.local_rank) for each in self.members]

    def _hear(self, member: Member, patience_s: float) -> dict[str, Any]:
        said = _line(member).receive(patience_s)
        if not said:
            how = "has gone" if said is None else f"has not answered within {patience_s:g} s"
            raise InfrastructureError(f"{member.named} {how}", hint="look at what it printed")
        return said

    def close(self) -> None:
        """Tell all that this was all."""
        for each in self.members[1:]:
            _line(each).send(cmd="end")
            _line(each).close()


@dataclass
class RemoteHost:
    """The host of one rank on another torchgauge process, as :class:`WorkerHost` is one of this machine."""

    member: Member
    number: int
    target: str
    variables: Variables
    notes: list[str]
    cancelled: Callable[[], bool]
    clock: Clock = SYSTEM_CLOCK

    def begin(self) -> None:
        """Let it start."""
        self._send(cmd="begin", target=self.target, variables=self.variables)

    def ready(self) -> bool:
        """Wait for it; whether it is there."""
        until = self.clock.steady() + 2 * READY_TIMEOUT_S
        while not self.member.lost and not self.cancelled() and self.clock.steady() < until:
            said = self.hear(TICK_S)
            if said is not None and said.get("ev") == "ready":
                self.notes += [f"{self.member.named}: {note}" for note in said["notes"]]
                return bool(said["ready"])
        if not self.member.lost and not self.cancelled():
            self.member.lost = "its host did not come up"
        return False

    def start(self, job: Job, log: Path, on_event: Listener) -> RemoteWatch:
        """Give ``job`` to a worker; what watches it."""
        self._send(cmd="start", job=to_plain(job))
        return RemoteWatch(self, log, on_event)

    def condemn(self, why: str, limit: str) -> None:
        """Let the worker be killed."""
        self._send(cmd="condemn", why=why, limit=limit)

    def close(self) -> None:
        """Let the host end."""
        self._send(cmd="close")

    def hear(self, timeout_s: float) -> dict[str, Any] | None:
        """The next message of this case, an empty dict for none; None where the process is gone."""
        line = _line(self.member)
        said = line.receive(timeout_s)
        if said is None:
            self.member.lost = "its torchgauge process has gone"
        elif not said and time.monotonic() - line.heard_at > SILENT_S:
            self.member.lost, said = _STANDS_STILL, None
        return said if said is None or said.get("number") == self.number else {}

    def _send(self, **message: Any) -> None:
        _line(self.member).send(number=self.number, **message)


class RemoteWatch:
    """One worker of another process from its start to its end, as :class:`Watch` is one of this machine.

    Its deadlines and its memory are watched over there. Whoever does not kill when it is told to is lost, and
    so is who says nothing any more: a process that was stopped keeps its connection.
    """

    def __init__(self, host: RemoteHost, log: Path, on_event: Listener) -> None:
        self.ending, self.ended = Ending(), False
        self._host, self._log, self._on_event = host, log, on_event
        self._condemned_at: float | None = None

    def look(self, timeout_s: float) -> bool:
        """Hear what the other process says within ``timeout_s``; whether the worker has ended."""
        if self.ended:
            return True
        said = self._host.hear(timeout_s)
        if said is None:
            return self._lose()
        if said.get("ev") == "event" and not self.ending.killed:
            self._take(said["event"])
        if said.get("ev") == "ended":
            return self._end(said)
        if self._host.cancelled():
            self.condemn("cancelled", "interrupted")
        late = self._condemned_at is not None and self._host.clock.steady() - self._condemned_at > 2 * LOST_S
        if late:
            self._host.member.lost = _STANDS_STILL
        return late and self._lose()

    def condemn(self, why: str, limit: str) -> None:
        """Let the worker be killed, unless it has ended or is to be killed already."""
        if not self.ended and not self.ending.killed:
            self.ending.killed, self.ending.limit = why, limit
            self._condemned_at = self._host.clock.steady()
            self._host.condemn(why, limit)

    def _take(self, event: dict[str, Any]) -> None:
        event["t"] -= self._host.member.ahead_s
        self.ending.events.append(event)
        if event["ev"] == "phase":
            self.ending.phase = Phase(event["phase"])
        self._on_event(event)

    def _end(self, said: dict[str, Any]) -> bool:
        told = Ending(
            **{**said["ending"], "phase": Phase(said["ending"]["phase"])}, events=self.ending.events
        )
        told.killed, told.limit = self.ending.killed or told.killed, self.ending.limit or told.limit
        told.leftovers = tuple(told.leftovers)
        self.ending = told
        if said["log"] is not None:
            self._log.write_bytes(base64.b64decode(said["log"]))
        self.ended = True
        return True

    def _lose(self) -> bool:
        self.ending.lost, self.ending.limit = True, self.ending.limit or self._host.member.lost
        self.ended = True
        return True


@contextmanager
def gathered(launch: Launch, there: Interpreter, cores: int, patience_s: float) -> Iterator[Crew]:
    """All launched processes, until this is left, however that happens.

    Raises :class:`InfrastructureError` for ranks that do not come, and :class:`UsageError` where one has
    another torchgauge, torch, Python or command.
    """
    key = secrets.token_bytes(32)
    with wire.listen(launch.address if meeting.is_here(launch.address) else None) as listener:
        tells = json.dumps({"port": listener.getsockname()[1], "key": key.hex()})
        with meeting.store_of(launch, there, patience_s, tells=tells) as found:
            first = Member(0, launch.local_rank, meeting.machine(), meeting.boot(), cores)
            crew = Crew(launch, [first])
            try:
                _gather(crew, listener, key, meeting.own_words(launch, found), patience_s)
                yield crew
            finally:
                crew.close()


def _gather(crew: Crew, listener: socket.socket, key: bytes, own: dict[str, str], patience_s: float) -> None:
    """Take in all others; who came hears of it where that fails."""
    until = SYSTEM_CLOCK.steady() + patience_s
    try:
        while len(crew.members) < crew.launch.count:
            left = until - SYSTEM_CLOCK.steady()
            if left <= 0:
                _miss(crew, patience_s)
            line = wire.accept(listener, key, min(left, 1.0))
            said = None if line is None else line.receive(wire.HANDSHAKE_S)
            if line is not None and said:
                ahead = said["now"] - SYSTEM_CLOCK.now()
                member = Member(*(said[name] for name in ("rank", "local_rank", "machine", "boot", "cores")))
                member.line, member.ahead_s = line, ahead
                crew.members.append(member)
                _compare(crew, member, said["words"], own)
    except TorchgaugeError as error:
        for each in crew.members[1:]:
            _line(each).send(error=error.message, hint=error.hint)
        raise
    crew.members.sort(key=lambda each: each.rank)


def _miss(crew: Crew, patience_s: float) -> NoReturn:
    came, count = {each.rank for each in crew.members}, crew.launch.count
    missing = count - len(came)
    named = ", ".join(map(str, itertools.islice((rank for rank in range(count) if rank not in came), _NAMED)))
    more = f" and {missing - _NAMED} more" if missing > _NAMED else ""
    raise InfrastructureError(
        f"rank{'s' if missing > 1 else ''} {named}{more} of {counted(count, 'launched process')} "
        f"did not come within {patience_s:g} s",
        hint="look at what they printed, and whether MASTER_ADDR leads them to rank 0",
    )


def _compare(crew: Crew, member: Member, words: dict[str, str], own: dict[str, str]) -> None:
    """Raise :class:`UsageError` for a member that is not like us, or that is there already."""
    for name, value in own.items():
        if words.get(name) != value:
            raise UsageError(
                f"{member.named} has {name} {words.get(name)!r}, and rank 0 has {value!r}",
                hint="all launched processes need the same versions and the same command",
            )
    if any(each.machine == member.machine and each.boot != member.boot for each in crew.members):
        raise UsageError(
            f"two machines are named {member.machine!r}, that of {member.named} and another one",
            hint="give each machine a host name of its own: torchgauge tells them apart by it",
        )
    if [each.rank for each in crew.members].count(member.rank) > 1:
        raise UsageError(
            f"two processes joined as {member.named}", hint="a launcher gives each process a RANK of its own"
        )


def devices_of(machine: str, places: list[tuple[str, int]], count: int) -> int:
    """How many devices of ``machine`` the first ``count`` ranks reach, counted from the first."""
    return max((local + 1 for where, local in places[:count] if where == machine), default=0)


def _line(member: Member) -> wire.Wire:
    assert member.line is not None
    return member.line


def _refuse(planned: Any, why: str) -> Any:
    return replace(planned, refusal=planned.refusal or Refusal(Status.UNSUPPORTED, why))
