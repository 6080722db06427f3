"""Who may use the machine alone: while one worker times, all others of the run stand still (SIGSTOP).

Where a person says so, workers of several devices time at once, one of each; those that do not stand still.

Several workers of a run build, check and compile side by side, which keeps every core busy. What is timed
must not notice: a worker asks for the lock, and gets it once all others have been stopped. They are stopped
and not asked to wait, because a compilation may last a minute and knows no good place for a pause. The parent
itself stands still too: its threads do their work while nobody holds it (:meth:`TimingLock.wait_for_quiet`).

The time that a worker stood still or waited counts against none of its deadlines and is no part of its
duration (:attr:`Member.idle_s`).
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from torchgauge.clock import Clock
from torchgauge.harness.pool.watch import Place
from torchgauge.harness.timing_lock_client import asks_of, grants_of
from torchgauge.processes import process_tree

ROUNDS = 5
"""How often a tree of processes is looked at again while it is stopped: what forks meanwhile is caught."""


@dataclass
class Pipes:
    """The parent's ends of one worker's two named pipes; ``path`` is what the worker is told."""

    path: str
    asks: int = -1
    grants: int = -1

    @classmethod
    def make(cls, path: Path) -> Pipes:
        """Create the pipes at ``path``; raises ``OSError`` where the file system has none."""
        fds = []
        for each in (asks_of(str(path)), grants_of(str(path))):
            os.mkfifo(each, 0o600)
            fds.append(os.open(each, os.O_RDWR | os.O_NONBLOCK))  # both ends: no open ever waits
        return cls(str(path), *fds)

    def grant(self) -> None:
        """Let the worker go on."""
        os.write(self.grants, b".")

    def close(self) -> None:
        """Close and remove them."""
        for fd, path in ((self.asks, asks_of(self.path)), (self.grants, grants_of(self.path))):
            os.close(fd)
            Path(path).unlink(missing_ok=True)


@dataclass(eq=False)
class Member(Place):
    """One worker (or a host that starts): everything below the process ``root``, itself where ``whole``.

    ``device`` is the one that it works on.
    """

    root: int
    clock: Clock
    whole: bool = False
    grant: Callable[[], None] = lambda: None
    device: str = ""
    _idle_s: float = 0.0
    _since: float | None = None
    _stopped: set[int] = field(default_factory=set)
    _lock: TimingLock = field(init=False, repr=False)

    @property
    def idle_s(self) -> float:
        """Seconds in which it stood still or waited for the lock, until now."""
        return self._idle_s + (0.0 if self._since is None else self.clock.steady() - self._since)

    @property
    def idle(self) -> bool:
        """Whether it stands still or waits now."""
        return self._since is not None

    def started(self) -> None:
        """Stop the worker's process, which is there now, where another one times."""
        self._lock.look_again(self)

    def lock(self, *, wanted: bool) -> None:
        """Ask for the lock, as the worker wants to time, or give it back."""
        (self._lock.want if wanted else self._lock.give_back)(self)

    def leave(self) -> None:
        """Leave the lock: the worker has ended."""
        self._lock.leave(self)

    def rest(self) -> None:
        """Count the time as idle from now on."""
        self._since = self.clock.steady() if self._since is None else self._since

    def go_on(self) -> None:
        """Count the time again."""
        self._idle_s, self._since = self.idle_s, None

    def stop(self) -> None:
        """Stop every process, parents first, so that none can start another one behind our back."""
        self.rest()
        for _ in range(ROUNDS):
            found = process_tree.descendants(self.root)
            fresh = [pid for pid in ([self.root] if self.whole else []) + found if pid not in self._stopped]
            if not fresh:
                return
            for pid in fresh:
                process_tree.signal_one(pid, signal.SIGSTOP)
            self._stopped.update(fresh)

    def resume(self) -> None:
        """Let every stopped process go on."""
        for pid in self._stopped:
            process_tree.signal_one(pid, signal.SIGCONT)
        self._stopped.clear()


class TimingLock:
    """The one lock of a machine and those who want it, first come, first served; for several threads.

    As many as ``at_once`` hold it together, if each of them is of another device.
    """

    def __init__(self, at_once: int = 1) -> None:
        self._at_once = at_once
        self._changed = threading.Condition()
        self._members: list[Member] = []
        self._waiting: deque[Member] = deque()
        self._holders: list[Member] = []

    def join(self, member: Member) -> Member:
        """Return ``member``, counted in; it stands still at once where another one has the lock."""
        member._lock = self
        with self._changed:
            self._members.append(member)
            if self._holders:
                member.stop()
        return member

    def look_again(self, member: Member) -> None:
        """Stop what ``member`` has started since it was to stand still."""
        with self._changed:
            if self._holders and member not in self._holders:
                member.stop()

    def leave(self, member: Member) -> None:
        """Count ``member`` out, whatever it was doing; what it had stopped for goes on."""
        with self._changed:
            if member in self._members:
                self._members.remove(member)
            if member in self._waiting:
                self._waiting.remove(member)
            member.resume()
            member.go_on()
            if member in self._holders:
                self._holders.remove(member)
                self._pass_on()

    def want(self, member: Member) -> None:
        """Ask for the lock; ``member.grant`` is called when all others stand still.

        A member that has the lock, or waits for it already, changes nothing.
        """
        with self._changed:
            if member in self._holders or member in self._waiting:
                return
            self._waiting.append(member)
            if self._holders:
                member.stop()
            self._pass_on()

    def give_back(self, member: Member) -> None:
        """Return the lock; a member that has not got it changes nothing."""
        with self._changed:
            if member in self._holders:
                self._holders.remove(member)
                self._pass_on()

    def wait_for_quiet(self, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Return when nobody has the lock, or when ``cancelled`` says so (asked twice a second)."""
        with self._changed:
            while self._holders and not cancelled():
                self._changed.wait(0.5)

    def _pass_on(self) -> None:
        before = list(self._holders)
        while (member := self._next()) is not None:
            self._waiting.remove(member)
            self._holders.append(member)
        for member in self._members:
            if not self._holders:
                member.resume()
                member.go_on()
            elif member not in self._holders:
                member.stop()
        for member in self._holders:
            if member not in before:
                member.resume()
                member.go_on()
                member.grant()
        self._changed.notify_all()

    def _next(self) -> Member | None:
        """The first of those who wait that may hold it beside those who do; None where none may."""
        if len(self._holders) >= self._at_once:
            return None
        busy = {each.device for each in self._holders}
        return next((each for each in self._waiting if each.device not in busy), None)
