"""What stands on a node for one device: it starts ``torchgauge worker``, tells what that writes, and no more.

The truth of a run lies with its driver. An agent that has not been asked for a while therefore ends: its
driver is gone, or has given it up. Whatever it started ends with it, by their keeper.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchgauge.harness.executors.ray import parity
from torchgauge.harness.executors.ray.spool import Piece, news
from torchgauge.processes.kept_process import KeptProcess, new_scratch, remove_scratch
from torchgauge.processes.passed_variables import passed
from torchgauge.processes.process_tree import signal_one

SPOOL = "spool"
LOCK = "lock"
LOOK_S = 0.05
"""Seconds between looks at files that grow, while somebody waits for what is new."""
STOP_S = 5.0
"""Seconds that a worker which is told to stop may take to close its journal, and then to tidy up."""


@dataclass(frozen=True)
class Post:
    """What an agent is for: a device of a run.

    ``variables`` are those of the driver that its workers get, beside its own, of which ``passed_on`` are
    names or patterns. It ends where nobody asks for ``orphan_s`` seconds. ``worker_python`` is the workers'
    interpreter ("" for its own).
    """

    run_id: str
    device: str
    resource: str
    node: str
    variables: Mapping[str, str]
    passed_on: tuple[str, ...]
    orphan_s: float
    worker_python: str = ""


@dataclass
class Known:
    """What the driver knows of a job: that it ``began``, and how many bytes of which file it has."""

    began: bool = False
    had: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Told:
    """What an agent says of a job: ``code`` is how its command ended, None while it runs or waits.

    ``words`` say why it could not be started. ``whole`` is false where more bytes are to be fetched.
    """

    pieces: list[Piece]
    began: bool
    code: int | None
    words: str
    whole: bool


@dataclass
class _Job:
    plan: bytes
    groups: Sequence[str]
    scratch: Path
    lock: int
    began: bool = False
    stopped: bool = False
    process: KeptProcess | None = None
    code: int | None = None
    words: str = ""

    @property
    def folder(self) -> Path:
        return self.scratch / "part"

    @property
    def output(self) -> Path:
        return self.scratch / "output"


@dataclass
class Agent:
    """The actor: several threads call its methods, and in one of its own jobs run one after another."""

    post: Post
    jobs: dict[str, _Job] = field(default_factory=dict)
    queue: list[_Job] = field(default_factory=list)
    heard: float = field(default_factory=time.monotonic)
    failed: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.changed = threading.Condition()
        sweep()
        threading.Thread(target=self._run, name="jobs", daemon=True).start()
        threading.Thread(target=self._end_alone, name="orphan", daemon=True).start()

    def register(self, plan: Mapping[str, object]) -> dict[str, str]:
        """What this place is, with the digest that it has for ``plan``."""
        self.heard = time.monotonic()
        try:
            digest = parity.plan_digest(plan)
        except (ValueError, TypeError, KeyError) as error:  # another torchgauge has other records
            digest = f"none ({type(error).__name__})"
        return {**parity.facts(), "plan": digest}

    def report(self) -> dict[str, Any]:
        """What somebody else may want to know of it."""
        running = [name for name, job in self.jobs.items() if job.process is not None and job.code is None]
        return {
            "run_id": self.post.run_id,
            "device": self.post.device,
            "resource": self.post.resource,
            "node": self.post.node,
            "running": running[0] if running else "",
        }

    def take(self, name: str, plan: bytes, groups: Sequence[str]) -> None:
        """Measure ``groups`` of ``plan``, after what was taken before."""
        try:
            scratch = Path(new_scratch(SPOOL))
            job = _Job(plan, groups, scratch, _locked(scratch))
        except OSError as error:  # nobody looks at what this call raises: the next answer says it
            with self.changed:
                self.failed[name] = f"it could not be started: {error}"
                self.changed.notify_all()
            return
        with self.changed:
            self.jobs[name] = job
            self.queue.append(job)
            self.changed.notify_all()

    def stop(self, names: Sequence[str]) -> None:
        """End the jobs ``names``; what they have measured can still be fetched."""
        with self.changed:
            chosen = [self.jobs[name] for name in names if name in self.jobs]
            for job in chosen:
                job.stopped = True
        for job in chosen:
            if job.process is not None and job.code is None:
                _stop(job.process)

    def leave(self) -> None:
        """End this process."""
        for job in list(self.jobs.values()):
            if job.process is not None:
                job.process.end()
            _remove(job)
        os._exit(0)

    def poll(self, known: Mapping[str, Known], forget: Sequence[str], wait_s: float) -> dict[str, Told]:
        """What is new of the jobs, which are all ``known``; those to ``forget`` lose their folders.

        Answers as soon as there is something, and with nothing after ``wait_s`` seconds, or where there is a
        job that the caller does not know yet.
        """
        for name in forget:
            self.failed.pop(name, None)
            if (job := self.jobs.pop(name, None)) is not None:
                _remove(job)
        until = time.monotonic() + wait_s
        while True:
            self.heard = time.monotonic()
            found = {
                name: told
                for name, each in known.items()
                if (job := self.jobs.get(name)) and (told := _told(job, each))
            }
            found |= {
                name: Told([], began=False, code=1, words=self.failed[name], whole=True)
                for name in known
                if name in self.failed
            }
            if found or time.monotonic() > until or self.jobs.keys() - known.keys():
                return found
            with self.changed:
                self.changed.wait(LOOK_S)

    def _run(self) -> None:
        while True:
            with self.changed:
                self.changed.wait_for(lambda: bool(self.queue))
                job = self.queue.pop(0)
            if not job.stopped:
                try:
                    self._measure(job)
                except (OSError, ValueError) as error:
                    job.words = f"it could not be started: {error}"
            with self.changed:
                job.code = 1 if job.process is None else job.process.returncode
                self.changed.notify_all()

    def _measure(self, job: _Job) -> None:
        job.began = True
        plan = job.scratch / "plan.json"
        plan.write_bytes(job.plan)
        command = [sys.executable, "-m", "torchgauge.cli.main", "worker", str(plan), *job.groups]
        command += ["--into", str(job.folder), "--node", self.post.node]
        command += ["--python", self.post.worker_python or sys.executable]
        with job.output.open("wb") as output:
            job.process = KeptProcess(
                command,
                {**passed(declared=self.post.passed_on), **self.post.variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=job.scratch,
            )
            if job.stopped:
                _stop(job.process)
            job.process.wait()

    def _end_alone(self) -> None:
        """End this process where nobody has asked for too long."""
        while time.monotonic() - self.heard < self.post.orphan_s:
            time.sleep(min(1.0, self.post.orphan_s / 4))
        self.leave()


def sweep() -> None:
    """Remove spools of agents that were killed: Ray kills the keepers that would have done so, too."""
    for lock in Path(tempfile.gettempdir()).glob(f"torchgauge-{SPOOL}-*/{LOCK}"):
        try:
            descriptor = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
        os.close(descriptor)


def _locked(scratch: Path) -> int:
    """The descriptor of a lock that says, for as long as this process lives, that ``scratch`` is in use."""
    descriptor = os.open(scratch / f"{LOCK}.new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    (scratch / f"{LOCK}.new").rename(scratch / LOCK)
    return descriptor


def _remove(job: _Job) -> None:
    remove_scratch(str(job.scratch))
    os.close(job.lock)


def _told(job: _Job, known: Known) -> Told | None:
    """What is new of ``job``; None where nothing is."""
    began, code = job.began, job.code  # first: what has ended is whole
    pieces, whole = news(job.folder, job.output, known.had)
    if pieces or code is not None or began != known.began:
        return Told(pieces, began, code, job.words, whole)
    return None


def _stop(process: KeptProcess) -> None:
    """Let ``process`` close its journal, then tidy up, then end it with all that it started."""
    for _ in range(2):  # the second Ctrl-C ends it at once
        signal_one(process.child_pid, signal.SIGINT)
        deadline = time.monotonic() + STOP_S
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        if process.returncode is not None:
            return
    process.end()
