"""How the launched processes find each other, and what they must have alike: both halves."""

from __future__ import annotations

import hashlib
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torchgauge
from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.errors import InfrastructureError
from torchgauge.harness.interpreter.interpreter import Interpreter
from torchgauge.harness.interpreter.staging import PACKAGE, environment_for, tree_for
from torchgauge.harness.launched.launch import Launch
from torchgauge.harness.worker.meeting import MARK
from torchgauge.processes.kept_process import KeptProcess, scratch
from torchgauge.processes.passed_variables import passed
from torchgauge.processes.python_command import python_command

PATIENCE_S = 300.0
"""How long processes wait for each other at the beginning, unless --timeout says."""
IMPORT_S = 60.0
"""What importing torch may take beyond that."""


@contextmanager
def store_of(
    launch: Launch, there: Interpreter, patience_s: float, *, tells: str = ""
) -> Iterator[dict[str, str]]:
    """The store of the launch while this lasts: it is told something, or answers what rank 0 told.

    Raises :class:`InfrastructureError` where it cannot be opened, or rank 0 has told nothing in time.
    """
    words = {
        "address": launch.address,
        "port": launch.port,
        "serves": launch.rank == 0 and not launch.agent_store,
        "patience_s": patience_s,
        "key": f"torchgauge/{launch.attempt}",
        "tells": tells,
    }
    with scratch("launched") as folder, tempfile.TemporaryFile() as printed:
        command = python_command(there.path, "torchgauge.harness.worker.meeting", json.dumps(words))
        environment = {**passed(), **environment_for(there.path, tree_for(there.path, folder))}
        child = KeptProcess(
            command, environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=printed
        )
        try:
            found = _answer(child, patience_s + IMPORT_S)
            if found is None:
                printed.seek(0)
                said = printed.read().decode("utf-8", "replace").strip().splitlines()
                found = {"error": said[-1] if said else "no answer"}
            if "error" in found:
                raise InfrastructureError(
                    _why(launch, words["serves"] is True, found["error"]), hint=_hint(launch)
                )
            yield found
        finally:
            child.end()
            for stream in (child.stdin, child.stdout):
                if stream is not None:
                    stream.close()


def own_words(launch: Launch, found: dict[str, str]) -> dict[str, str]:
    """What all launched processes must have alike, by the name that it has in a message."""
    code = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*")):
        if file.suffix in (".py", ".yaml", ".ini"):
            code.update(file.relative_to(PACKAGE).as_posix().encode() + b"\0" + file.read_bytes())
    return {
        "torchgauge": f"{torchgauge.__version__} ({code.hexdigest()[:12]})",
        "torch": found["torch"],
        "Python": found["Python"],
        "the command": " ".join(sys.argv[1:]),
        "WORLD_SIZE": str(launch.count),
    }


def machine() -> str:
    """The name of this machine."""
    return socket.gethostname()


def boot() -> str:
    """What no other machine that runs now has (random(4)); "" where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def is_here(address: str) -> bool:
    """Whether ``address`` is one by which every machine means itself: then all processes are on this one."""
    return address in ("localhost", "::1") or address.startswith("127.")


def _answer(child: KeptProcess, patience_s: float) -> dict[str, str] | None:
    """What the process says within ``patience_s``; None where it ends, or is silent."""
    assert child.stdout is not None
    said, until = b"", SYSTEM_CLOCK.steady() + patience_s
    while (left := until - SYSTEM_CLOCK.steady()) > 0:
        if not select.select([child.stdout], [], [], left)[0]:
            return None
        data = os.read(child.stdout.fileno(), 1 << 16)
        said += data
        for line in said.splitlines(keepends=True):
            if line.startswith(MARK.encode()) and line.endswith(b"\n"):
                answer: dict[str, str] = json.loads(line[len(MARK) :])
                return answer
        if not data:
            return None
    return None


def _why(launch: Launch, serves: bool, error: str) -> str:
    where = f"{launch.address}:{launch.port}"
    if "EADDRINUSE" in error or "address already in use" in error.lower():
        return f"port {launch.port} of {launch.address} is in use, where the launched processes were to meet"
    did = f"cannot open its store at {where}" if serves else f"heard nothing of rank 0 at {where}"
    return f"rank {launch.rank} of {launch.count} {did}: {error}"


def _hint(launch: Launch) -> str:
    if launch.rank or launch.agent_store:
        return "look at what rank 0 printed, and whether MASTER_ADDR and MASTER_PORT lead to it"
    return "give the launcher a free MASTER_PORT on the machine of rank 0"
