"""The process between the parent and the workers: warm template, supervisor and reaper.

Why it exists: importing torch and the model libraries takes seconds, so they are imported once, here, and
every worker is a fork of this process (device untouched, one thread, no tensor operation before the fork).
Where a device does not allow that, each worker is a fresh interpreter instead, by the same protocol.

It adopts orphans (``PR_SET_CHILD_SUBREAPER``), so that whatever a model started, even a daemon, is found and
killed when its worker ends; it caps what a worker prints; and it ends with everything it started when the
parent goes away. One thread, one loop.

Protocol: JSON lines. Commands on standard input: ``run`` (job, log, log_limit, token), ``kill``, ``quit``.
Replies on the file descriptor given at start: ``ready``, and with the token ``started`` and ``exited``.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from typing import Any

from torchgauge.harness.worker.capped_log import CappedLog
from torchgauge.processes import process_tree
from torchgauge.processes.python_command import python_command

GRACE_S = 0.3
_READ = 1 << 20


@dataclass(frozen=True)
class Spare:
    """A forked worker that has no job yet: its process, where its job is written, what it prints."""

    pid: int
    control: int
    output: int


class Host:
    """One template or supervisor; runs one worker at a time."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.replies: int = options["replies"]
        self.selector = selectors.DefaultSelector()
        self.pid, self.token = 0, ""
        self.log: CappedLog | None = None
        self.output = -1
        self.commands = b""
        self.warm = False
        self.wakeup = -1
        self.spare: Spare | None = None

    # --- loop --------------------------------------------------------------------------------

    def serve(self) -> None:
        """Serve commands until ``quit`` or until the parent goes away."""
        process_tree.become_subreaper()
        self.prepare()
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.wakeup = read
        self.selector.register(0, selectors.EVENT_READ, "commands")
        self.selector.register(read, selectors.EVENT_READ, "child")
        while True:
            self.keep_spare()
            for key, _ in self.selector.select(timeout=1.0 if self.pid else None):
                if key.data == "commands" and not self.read_commands():
                    self.drop_spare()
                    self.end_worker(killed=True)
                    self.remove_scratch()
                    return
                if key.data == "output":
                    self.read_output()
                if key.data == "child":
                    os.read(read, 4096)
            self.reap()

    def prepare(self) -> None:
        """Import what workers share, if they are to be forked, and say whether that worked."""
        started, notes = time.perf_counter(), []
        if self.options["warm"]:
            # where Triton is installed, the import of inductor starts a pool of processes and a thread for
            # them; this variable leaves both to the first kernel that needs them
            warm_pool = os.environ.get("TORCH_WARM_POOL")
            os.environ["TORCH_WARM_POOL"] = warm_pool or "0"
            for name in self.options["preload"]:
                try:
                    module, _, call = name.partition(":")
                    imported = importlib.import_module(module)
                    if call:
                        getattr(imported, call)()
                except Exception as error:  # noqa: BLE001  the worker will say what is missing
                    notes.append(f"{name}: {type(error).__name__}: {error}")
            if warm_pool is None:
                os.environ.pop("TORCH_WARM_POOL", None)
            gc.collect()
            gc.freeze()  # the template's objects are nobody's garbage: collecting them in forks copies pages
            self.warm = process_tree.thread_count() == 1
            if not self.warm:
                notes.append("imports started threads, so every worker starts as a fresh process")
        self.reply(
            "ready", warm=self.warm, import_s=time.perf_counter() - started, notes=notes, pid=os.getpid()
        )

    def reply(self, kind: str, **payload: Any) -> None:
        """Send one line to the parent."""
        os.write(self.replies, (json.dumps({"ev": kind, **payload}) + "\n").encode())

    def read_commands(self) -> bool:
        """Obey what has arrived; False when the parent is gone or said quit."""
        data = os.read(0, 1 << 16)
        if not data:
            return False
        *lines, self.commands = (self.commands + data).split(b"\n")
        for line in lines:
            command = json.loads(line)
            if command["cmd"] == "quit":
                return False
            if command["cmd"] == "kill":
                self.kill_worker()
            if command["cmd"] == "run":
                self.start(command)
        return True

    # --- one worker --------------------------------------------------------------------------

    def start(self, command: dict[str, Any]) -> None:
        """Give ``command`` to a worker that has not its token: one forked before, or a fresh process."""
        self.log = CappedLog(
            command["log"], command["log_limit"]
        )  # before a model runs that could replace it
        spare = self.spare or self.fork()
        self.spare = None
        try:
            os.write(spare.control, command["job"].encode() + b"\n")
        except BrokenPipeError:  # killed while it waited
            self.warm = False
            os.close(spare.control)
            os.close(spare.output)
            spare = self.fork()
            os.write(spare.control, command["job"].encode() + b"\n")
        os.close(spare.control)
        self.pid, self.output = spare.pid, spare.output
        self.selector.register(self.output, selectors.EVENT_READ, "output")
        self.token = command["token"]
        self.reply("started", pid=self.pid, token=self.token)

    def keep_spare(self) -> None:
        """Fork the next worker now, while the parent writes the last one's rows; it waits for its job."""
        if self.warm and self.spare is None and not self.pid:
            self.spare = self.fork()

    def drop_spare(self) -> None:
        """Let the waiting worker go: it ends when its control pipe does."""
        if self.spare is not None:
            os.close(self.spare.control)
            os.close(self.spare.output)
            self.spare = None

    def fork(self) -> Spare:
        """A worker that waits for the name of its job file on a pipe."""
        output, print_end = os.pipe()
        job_end, control = os.pipe()
        process_tree.widen_pipe(output)
        os.set_blocking(output, False)
        pid = os.fork()
        if pid == 0:
            for fd in (output, control):
                os.close(fd)
            self.become_worker(job_end, print_end)
        os.close(print_end)
        os.close(job_end)
        return Spare(pid, control, output)

    def become_worker(self, job_end: int, output: int) -> None:
        """Turn this fork into a worker; never returns."""
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        process_tree.die_with_parent()
        process_tree.volunteer_for_oom_kill()
        self.selector.close()
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        for fd in (self.replies, self.wakeup, null, output):
            os.close(fd)
        with os.fdopen(job_end, "rb") as pipe:
            job = pipe.readline().decode().strip()
        if not job:
            os._exit(0)
        if not self.warm:
            command = python_command(sys.executable, "torchgauge.harness.worker.host", "worker", job)
            os.execv(sys.executable, command)  # noqa: S606  no shell is wanted
        code = 1
        try:
            from torchgauge.harness.worker.entry import run_job

            run_job(job)
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
            if stop.code and not isinstance(stop.code, int):  # as Python does at the end of a process
                sys.stderr.write(f"{stop.code}\n")
        except BaseException:  # noqa: BLE001  the parent reads the exit status; the log tells the rest
            traceback.print_exc()
        finally:
            process_tree.finish_fork(code)

    def kill_worker(self) -> None:
        """Ask the worker for its stacks, let it tidy up within a grace, then kill it and what it started."""
        if not self.pid:
            return
        process_tree.signal_one(self.pid, signal.SIGUSR1)
        time.sleep(GRACE_S / 2)
        self.read_output()
        process_tree.signal_group(self.pid, signal.SIGTERM)
        time.sleep(GRACE_S / 2)
        process_tree.signal_group(self.pid, signal.SIGKILL)

    def read_output(self) -> None:
        """Move what the worker printed into its capped log."""
        if self.output < 0 or self.log is None:
            return
        try:
            data = os.read(self.output, _READ)
        except BlockingIOError:
            return
        if data:
            self.log.write(data)
        else:
            self.close_output()

    def close_output(self) -> None:
        """Stop listening to the worker's output."""
        if self.output >= 0:
            self.selector.unregister(self.output)
            os.close(self.output)
            self.output = -1

    def reap(self) -> None:
        """Collect ended processes; report the worker's end once its descendants are dead too."""
        for pid, status, usage in process_tree.ended_children():
            if pid == self.pid:
                self.end_worker(status=status, usage=usage)
            elif self.spare is not None and pid == self.spare.pid:
                self.drop_spare()

    def end_worker(
        self, status: int = 0, usage: dict[str, float] | None = None, *, killed: bool = False
    ) -> None:
        """Kill what the worker left behind, drain its output and report its end."""
        if not self.pid:
            return
        if killed:
            process_tree.signal_group(self.pid, signal.SIGKILL)
        leftovers = process_tree.kill_descendants(GRACE_S)
        process_tree.signal_group(self.pid, signal.SIGKILL)
        for _ in range(64):
            before = self.log.total if self.log else 0
            self.read_output()
            if self.output < 0 or self.log is None or self.log.total == before:
                break
        self.close_output()
        printed = self.log.close() if self.log else 0
        self.pid = 0
        if not killed:
            about = {"usage": usage or {}, "leftovers": leftovers, "printed": printed}
            self.reply("exited", token=self.token, status=status, **about)

    def remove_scratch(self) -> None:
        """Remove the folder of temporary files: where the parent was killed, nobody else does."""
        if self.options["scratch"] is not None:
            shutil.rmtree(self.options["scratch"], ignore_errors=True)


def main() -> None:
    """Entry: ``host OPTIONS`` serves; ``worker JOB`` runs one job in a fresh process."""
    role, argument = sys.argv[1:3]
    if role == "worker":
        from torchgauge.harness.worker.entry import run_job

        run_job(argument)
        return
    Host(json.loads(argument)).serve()


if __name__ == "__main__":
    main()
