"""The process between torchgauge and what it starts: it ends everything below it when torchgauge is gone.

Why: whoever is killed by SIGKILL can tell its children nothing, and a child that imports torch, or was
stopped, does not look at a pipe. This process does nothing else: it waits for the end of its child or for
that of torchgauge's half of a pipe, the lifeline. It adopts what its child leaves behind, so that a daemon
does not outlive a child that was killed either. It takes the child along when it is killed itself.

Run by its path, apart from any site-packages: ``keeper LIFELINE ANSWER REMOVE COMMAND...``. The first two are
file descriptors. Through ANSWER it says its child's process id, and the number of the error where the
command could not be started. REMOVE is a list (JSON) of folders that go when torchgauge is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

sys.path.append(str(Path(__file__).resolve().parents[2]))
from torchgauge.processes import process_tree

GRACE_S = 0.5
"""How long a child that notices by itself that torchgauge is gone may take to tidy up."""
REMOVE_S = 2.0
"""For how long the removal of folders is tried."""
_STOPS = (signal.SIGTERM, signal.SIGHUP)


def main(lifeline: int, answer: int, remove: list[str], command: list[str]) -> NoReturn:
    """Run ``command`` to its end, or to that of torchgauge, and end as it did."""
    process_tree.become_subreaper()
    woken, wakeup = os.pipe()
    for end in (woken, wakeup):
        os.set_blocking(end, False)
    before = {each: signal.signal(each, lambda *_: None) for each in (*_STOPS, signal.SIGINT, signal.SIGCHLD)}
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    keeper, pid = os.getpid(), os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        for number, action in before.items():
            signal.signal(number, signal.SIG_DFL if number == signal.SIGCHLD else action)
        os.set_inheritable(lifeline, False)
        _become(command, answer, keeper)
    os.write(answer, f"pid {pid}\n".encode())
    _close_all_but(lifeline, woken, wakeup)
    status = _wait(pid, lifeline, woken)
    process_tree.kill_descendants(0.0)
    waiting = select.poll()  # the lifeline has an event once torchgauge is gone
    waiting.register(lifeline, 0)
    if waiting.poll(0):  # else torchgauge looks at what was said so far
        _remove(remove)
    if status is None:
        os._exit(1)
    _end_like(status)


def _remove(folders: list[str]) -> None:
    """Remove ``folders``, in which what other keepers end may still write for a moment."""
    until = time.monotonic() + REMOVE_S
    while True:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        if not any(map(os.path.lexists, folders)) or time.monotonic() > until:
            return
        time.sleep(0.05)


def _become(command: list[str], answer: int, keeper: int) -> NoReturn:
    """Turn this fork into ``command``; where that fails, say the number of the error."""
    process_tree.die_with_parent()
    if os.getppid() != keeper:
        os._exit(1)
    os.set_inheritable(answer, False)
    try:
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # as subprocess does
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606  no shell is wanted
    except OSError as error:
        os.write(answer, f"error {error.errno}\n".encode())
    finally:
        os._exit(127)


def _close_all_but(*kept: int) -> None:
    """Hold no end of the pipes and files of the child: whoever reads them must see it go."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    low = 3
    for fd in sorted(kept):
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _wait(pid: int, lifeline: int, woken: int) -> int | None:
    """The wait status of the child; None where torchgauge is gone, or says that everything is to end."""
    waiting = select.poll()
    waiting.register(woken, select.POLLIN)
    waiting.register(lifeline, 0)  # its end is always reported
    until: float | None = None
    while True:
        left = None if until is None else max(0.0, until - time.monotonic())
        ready = dict(waiting.poll(None if left is None else left * 1e3))
        for ended, status, _ in process_tree.ended_children():
            if ended == pid:
                return status
        if left == 0.0:
            return None
        if woken in ready and {*os.read(woken, 4096)} & {*map(int, _STOPS)}:
            return None
        if lifeline in ready:
            waiting.unregister(lifeline)
            until = time.monotonic() + GRACE_S


def _end_like(status: int) -> NoReturn:
    """End as the child ended, by its signal where there was one."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError):  # SIGKILL has no action to set
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4:])
