"""Processes that escaped with a device: found by a mark in their environment, whatever they have closed.

Each process below a host has the mark, with a lease or without.

A lease that a daemon inherited says that it lives, unless it has closed what it inherited, as daemons do. The
mark names the command that started it, by a token, and the lease files that it was started under. Whoever
holds such a lease knows that the command which had it before is dead: it would hold the lease itself.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchgauge.processes import process_tree

MARK = "TORCHGAUGE_LEASED"
"""Variable of every process below a host: a token, and each lease of the host as device:inode."""
GRACE_S = 1.0
"""Seconds between SIGTERM and SIGKILL."""
GONE_S = 5.0
"""Seconds that a killed process may take to be gone."""
_TOKEN = secrets.token_hex(8)


def mark_of(leases: Sequence[int]) -> str:
    """The mark of what is started under the descriptors ``leases``."""
    return " ".join([_TOKEN, *map(_file_of, leases)])


def of_the_dead(lease: int) -> list[int]:
    """Processes of other commands that were started under the ``lease``, which this one has now."""
    # we may have been started below a dead run ourselves
    name, ours = _file_of(lease), process_tree.with_parents(os.getpid())
    found = [pid for pid, (token, *files) in _marked() if token != _TOKEN and name in files]
    return [pid for pid in found if pid not in ours]


def escaped() -> list[int]:
    """Processes that this command started and that are not below it any more."""
    # the second look is after that: our other hosts start processes meanwhile
    lines = {pid: process_tree.with_parents(pid) for pid in _ours()}
    # the third is for numbers that the system has given to others since the first
    away = {pid for pid, line in lines.items() if line and os.getpid() not in line}
    return [pid for pid in _ours() if pid in away] if away else []


def _ours() -> list[int]:
    return [pid for pid, (token, *_) in _marked() if token == _TOKEN]


def end(pids: Sequence[int]) -> tuple[list[str], list[str]]:
    """End ``pids`` by SIGTERM and, after a grace, SIGKILL; names of those that are gone and that are not."""
    named = {pid: f"pid {pid} ({command_of(pid)})" for pid in pids}
    left = list(pids)
    for number, patience_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GONE_S)):
        for pid in left:
            process_tree.signal_one(pid, number)
        deadline = time.monotonic() + patience_s
        while (left := process_tree.alive(left)) and time.monotonic() < deadline:
            time.sleep(0.02)
    return [name for pid, name in named.items() if pid not in left], [named[pid] for pid in left]


def command_of(pid: int) -> str:
    """The command line of ``pid``, "?" where it does not show it."""
    try:
        text = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return "?"
    return " ".join(text.split())[:80]


def _file_of(lease: int) -> str:
    found = os.fstat(lease)
    return f"{found.st_dev:x}:{found.st_ino:x}"


def _marked() -> Iterator[tuple[int, list[str]]]:
    """Processes with a mark, as far as /proc shows their environments, and its words."""
    begin = f"{MARK}=".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for each in variables:
            if each.startswith(begin) and (words := each[len(begin) :].decode("ascii", "replace").split()):
                yield int(process.name), words
