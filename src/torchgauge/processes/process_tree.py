"""Process groups, descendants and their ends: the operating system's part of the host.

Linux offers all of it; elsewhere what is missing is left out and nothing pretends that it happened.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_F_SETPIPE_SZ = 1031


def become_subreaper() -> None:
    """Adopt the orphans of this process's descendants (Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Be killed when the process that forked this one ends (Linux)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def close_to_others() -> None:
    """Let no other process open this one's files, memory or variables, but one that may trace all (Linux)."""
    _prctl(_PR_SET_DUMPABLE, 0)


def volunteer_for_oom_kill() -> None:
    """Let the kernel take this process, and not the parent, when memory ends."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        return


def widen_pipe(fd: int) -> None:
    """Ask for a large pipe buffer, so that a chatty worker rarely waits."""
    if sys.platform == "linux":
        import fcntl

        try:
            fcntl.fcntl(fd, _F_SETPIPE_SZ, 1 << 20)
        except OSError:
            return


def thread_count() -> int:
    """Threads of this process, as the kernel counts them; 1 where it does not say."""
    try:
        return len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return 1


def signal_one(pid: int, number: int) -> None:
    """Send a signal; a process that has gone is no error."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def signal_group(pid: int, number: int) -> None:
    """Send a signal to the process group of ``pid``; one that has gone is no error."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def ended_children() -> Iterator[tuple[int, int, dict[str, float]]]:
    """Pid, wait status and resource usage of every child that has ended, adopted ones included."""
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        scale = 1 if sys.platform == "darwin" else 1024
        yield (
            pid,
            status,
            {
                "user_s": usage.ru_utime,
                "system_s": usage.ru_stime,
                "max_rss_bytes": float(usage.ru_maxrss * scale),
            },
        )


def children(pid: int) -> list[int]:
    """Direct children of ``pid``, of all its threads (Linux; empty elsewhere)."""
    found: list[int] = []
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return found
    for task in tasks:
        with contextlib.suppress(OSError, ValueError):  # a thread that has ended meanwhile
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def descendants(pid: int) -> list[int]:
    """Children of ``pid`` and theirs, in no particular order."""
    found, queue = [], children(pid)
    while queue:
        child = queue.pop()
        found.append(child)
        queue += children(child)
    return found


def kill_descendants(grace_s: float) -> list[str]:
    """Kill everything below this process; returns the names of what outlived ``grace_s`` seconds."""
    deadline = time.monotonic() + grace_s
    while (found := alive(descendants(os.getpid()))) and time.monotonic() < deadline:
        time.sleep(0.005)
        list(ended_children())
    names = [_name(pid) for pid in found]
    for _ in range(20):
        for pid in descendants(os.getpid()):
            signal_one(pid, signal.SIGKILL)
        list(ended_children())
        if not alive(descendants(os.getpid())):
            break
        time.sleep(0.01)
    return names


def resident_bytes(pid: int) -> int:
    """Resident memory of ``pid`` and its descendants; 0 where the system does not say."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = 0
    for each in (pid, *descendants(pid)):
        try:
            total += int(Path(f"/proc/{each}/statm").read_text().split()[1]) * page
        except (OSError, ValueError, IndexError):
            continue
    return total


def left_in_shared_memory(since: float) -> list[str]:
    """Return files of this user in shared memory that changed ``since`` and that no process uses (Linux)."""
    mapped, left = set(), []  # device and inode: a name may be the beginning of another one
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            lines = maps.read_bytes().splitlines()
            mapped |= {tuple(line.split(None, 5)[3:5]) for line in lines if b"/dev/shm/" in line}
    with contextlib.suppress(OSError):
        for file in Path("/dev/shm").iterdir():  # noqa: S108  it is looked at only
            about = file.lstat()
            device = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}"
            used = (device.encode(), str(about.st_ino).encode()) in mapped
            if about.st_uid == os.geteuid() and about.st_ctime >= since and not used:
                left.append(f"{file} ({about.st_size:,} bytes)")
    return left


def finish_fork(code: int) -> None:
    """End a forked worker: run exit handlers and flush, but leave the template's objects alone."""
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001  a closed stdout is the model's doing and already in its status
        code = code or 0
    os._exit(code)


def stat_of(pid: int) -> list[str]:
    """The fields of ``/proc/PID/stat`` after the name, from the state on (Linux); raises ``OSError``."""
    said = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return said.rpartition(")")[2].split()  # the name may hold anything


def with_parents(pid: int) -> list[int]:
    """``pid`` and its parents up to the first process (Linux); nothing where one of them ends meanwhile."""
    line = []
    while pid > 0:
        line.append(pid)
        try:
            pid = int(stat_of(pid)[1])
        except (OSError, IndexError, ValueError):
            return []
    return line


def alive(pids: list[int]) -> list[int]:
    """Those of ``pids`` that still run: neither gone nor waiting to be taken note of."""
    found = []
    for pid in pids:
        try:
            state = stat_of(pid)[0]
        except (OSError, IndexError):
            continue
        if state not in "ZX":
            found.append(pid)
    return found


def _name(pid: int) -> str:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return f"pid {pid}"
    return command.strip()[:120] or f"pid {pid}"


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    try:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
    except (OSError, AttributeError):
        return
