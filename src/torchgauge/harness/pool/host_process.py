"""The parent's handle on a host: start it, give it a job, hear from it, end it."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import secrets
import selectors
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchgauge.clock import SYSTEM_CLOCK, Clock
from torchgauge.errors import InfrastructureError
from torchgauge.harness.compile_cache import CacheUnusableError, default_folder, make_private
from torchgauge.harness.events import LONGEST_LINE, Kinds, message_in
from torchgauge.harness.interpreter.staging import PACKAGE, environment_for
from torchgauge.harness.pool.strays import MARK, end, escaped, mark_of
from torchgauge.processes.kept_process import KeptProcess, new_scratch, remove_scratch
from torchgauge.processes.known_secrets import known_secrets
from torchgauge.processes.passed_variables import passed
from torchgauge.processes.python_command import python_command
from torchgauge.results.atomic_file import MORE_FILES, storage_errors, too_many_files

_SINGLE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
"""Libraries that would start threads on import; a template must have one thread when it forks."""
_STEADY_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 32), "MALLOC_MMAP_THRESHOLD_": str(1 << 25)}
"""Keeps freed memory in the process (glibc, ``man 3 mallopt``; the second is the most that it takes).

Otherwise it depends on where the last allocation of a process happens to lie whether each step gives its
memory back and faults it in again: between equal processes that alone was seen to change the CPU time of a
step of mobilenetv2 from 41 to 75 ms. Whoever sets these variables keeps them.
"""
PATIENCE_S = 5.0
"""How long a host that serves may take to end by itself."""
_REPLIES: Kinds = {
    "ready": {"notes": tuple[str, ...], "warm": bool, "import_s": float, "pid": int},
    "started": {"pid": int, "token": str},
    "exited": {"status": int, "usage": dict, "leftovers": tuple[str, ...], "printed": int, "token": str},
}
"""The replies of a host."""
WAIT_STATUSES = range(1 << 16)
"""Statuses that ``wait`` returns."""
FATE_S = 1.0
"""How long a host that has closed its replies may take to be gone."""


@dataclass(frozen=True)
class HostOptions:
    """How a host is started: interpreter, environment, what it imports and whether it may fork.

    ``tree`` is the folder in which the interpreter finds the package, and ``passes`` are the variables that
    the device declares beyond those that every process is given. Everything that the host starts inherits
    the descriptors ``leases``.
    """

    python: str
    environment: tuple[tuple[str, str], ...]
    preload: tuple[str, ...]
    warm: bool
    tree: Path = PACKAGE.parent
    passes: tuple[str, ...] = ()
    leases: tuple[int, ...] = ()


class HostProcess:
    """One host process; :meth:`receive` returns its replies, ``None`` when it is gone.

    It has a folder of its own for temporary files, which goes with it: a compiler or a model that is killed
    removes nothing of what it wrote. What it prints is in a file without a name until it has ended, and then
    in ``log`` without secrets.
    """

    def __init__(self, options: HostOptions, log: Path, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock, self._log = clock, log
        with storage_errors(log):
            self._printed = tempfile.TemporaryFile(dir=log.parent)  # noqa: SIM115  closed by close()
            log.touch()
        read, write = os.pipe()
        os.set_inheritable(write, True)
        self._scratch, self.note = _scratch_folder("torch" in options.preload)
        argument = json.dumps(
            {
                "replies": write,
                "preload": list(options.preload),
                "warm": options.warm,
                "scratch": self._scratch,
            }
        )
        environment = worker_environment(options)
        if self._scratch is not None:
            environment["TMPDIR"] = self._scratch
        try:
            self._process = KeptProcess(
                python_command(options.python, "torchgauge.harness.worker.host", "serve", argument),
                environment,
                stdin=subprocess.PIPE,
                stdout=self._printed,
                stderr=self._printed,
                pass_fds=(write, *options.leases),
                start_new_session=True,
            )
        except OSError as error:
            os.close(read)
            self._printed.close()
            self._remove_scratch()
            hint = MORE_FILES if too_many_files(error) else "pass an existing interpreter"
            raise InfrastructureError(f"cannot start {options.python}: {error}", hint=hint) from error
        finally:
            os.close(write)
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        self._replies, self._buffer, self._token = read, b"", ""
        self._selector = selectors.DefaultSelector()
        self._selector.register(read, selectors.EVENT_READ)

    @property
    def pid(self) -> int:
        """Process id of the host."""
        return self._process.child_pid

    def run(self, **order: Any) -> None:
        """Start a worker; replies about it have a new token, so that no earlier worker can forge its end."""
        self._token = secrets.token_hex()
        self.send(cmd="run", token=self._token, **order)

    def send(self, **command: Any) -> None:
        """Write a command; :meth:`receive` finds a host that is gone, and time one that reads nothing."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, BlockingIOError):  # a model may have filled the pipe
            os.write(self._process.stdin.fileno(), (json.dumps(command) + "\n").encode())

    def wake_on(self, fd: int) -> None:
        """Let whatever arrives on ``fd`` end :meth:`receive` early, until :meth:`sleep_through` it."""
        self._selector.register(fd, selectors.EVENT_READ, "wake")

    def sleep_through(self, fd: int) -> None:
        """Stop listening to ``fd``."""
        self._selector.unregister(fd)

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next reply: an empty dict without one in time, None where the host is gone.

        After a line that is not a reply about the present worker it returns None: a model wrote that line.
        """
        deadline = self._clock.steady() + timeout_s
        while b"\n" not in self._buffer:
            left = deadline - self._clock.steady()
            ready = self._selector.select(max(0.0, left))
            woken = [key.fd for key, _ in ready if key.data == "wake"]
            for fd in woken:
                os.read(fd, 1 << 10)
            if len(woken) == len(ready):
                return {}
            data = os.read(self._replies, 1 << 16)
            if not data or len(self._buffer) > LONGEST_LINE:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            reply = message_in(line, _REPLIES)
        except ValueError:
            return None
        is_ours = reply.get("token", "") == self._token and reply.get("status", 0) in WAIT_STATUSES
        return reply if is_ours else None

    def fate(self) -> str:
        """What became of a host that never said that it is ready, to be said after its name."""
        try:
            code = self._process.wait(timeout=FATE_S)
        except subprocess.TimeoutExpired:
            return "was not ready in time"
        return f"crashed while importing its modules (exit code {code})"

    def close(self, patience_s: float = PATIENCE_S) -> None:
        """End the host and everything below it; idempotent. It has ``patience_s`` seconds to do so itself."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self._process.end()
        if self._process.returncode:  # a model that killed host and keeper may have left a daemon
            end(escaped())
        self._selector.close()
        self._keep_what_it_printed()
        with contextlib.suppress(OSError):
            os.close(self._replies)
        self._remove_scratch()

    def _keep_what_it_printed(self) -> None:
        if self._printed.closed:
            return
        with (
            self._printed,
            contextlib.suppress(OSError),
            self._log.open("ab") as log,
        ):  # hosts end all the same
            self._printed.seek(0)
            log.write(known_secrets().hide_bytes(self._printed.read()))

    def _remove_scratch(self) -> None:
        if self._scratch is not None:
            remove_scratch(self._scratch)


def _scratch_folder(torch: bool) -> tuple[str | None, str]:
    """Return a new temporary folder, or None where it cannot be created, and a note for the user.

    Among temporary files inductor keeps precompiled headers (ten seconds' work), beside native code that it
    loads. With ``torch``, the new folder has a link to the headers of this user, or of this job.
    """
    try:
        folder = new_scratch("host")
    except OSError:
        return None, ""
    try:
        if torch:
            kept = default_folder("headers")
            make_private(kept)
            Path(folder, f"torchinductor_{_user_as_torch_says()}").symlink_to(kept)
            if kept.parent.name.startswith("torchgauge-"):
                return (
                    folder,
                    f"compiled code is kept in {kept.parent}: there is no home directory; try: set HOME",
                )
    except (CacheUnusableError, InfrastructureError, OSError) as error:
        return folder, f"compiled headers are not kept for later runs: {error}"
    return folder, ""


def _user_as_torch_says() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, ModuleNotFoundError, OSError):  # a container's user without a name
        name = f"uid_{os.getuid()}"
    return re.sub(r'[\\/:*?"<>|]', "_", name)


def worker_environment(options: HostOptions) -> dict[str, str]:
    """The environment of a host: what is passed on of ours, the package's tree on the path, ``options``."""
    environment = {
        **_STEADY_MEMORY,
        **passed(declared=options.passes),
        **_SINGLE_THREAD,
        **environment_for(options.python, options.tree),
    }
    environment["PYTHONUNBUFFERED"] = "1"
    environment["HF_HUB_OFFLINE"] = os.environ.get("HF_HUB_OFFLINE", "1")
    environment.update(options.environment)
    environment[MARK] = mark_of(options.leases)
    return environment
