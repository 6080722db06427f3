"""The nodes of a Slurm cluster as sinfo lists them, and the jobs of torchgauge as squeue does."""

from __future__ import annotations

import re
from collections.abc import Callable
from subprocess import CompletedProcess

from torchgauge.errors import InfrastructureError
from torchgauge.harness.executors.fleet import FleetDevice

IDLE = ("idle", "mixed")
JOBS = "torchgauge-"
"""How the names of all jobs of torchgauge begin; the run's id follows."""
_GRES = re.compile(r"(?:gres:|gpu:)?([^:,(]+)(?::[^:,(]+)?:(\d+)")


def slurm_fleet(ask: Callable[..., CompletedProcess[str]]) -> list[FleetDevice]:
    """Each node with its generic resources; its jobs have it alone, so that all are free or none.

    Raises :class:`InfrastructureError` where Slurm does not answer.
    """
    nodes = answered(ask("sinfo", "--noheader", "--Node", "--format=%N|%T|%G"))
    jobs = answered(ask("squeue", "--noheader", "--array", "--Format=Name:|,JobArrayID:|,State:|,NodeList:|"))
    runs: dict[str, list[str]] = {}
    for name, job, state, node, *_ in jobs:
        if name.startswith(JOBS):
            runs.setdefault(node or "(waiting)", []).append(f"run {name[len(JOBS) :]}: job {job} {state}")
    found = {}
    for node, state, gres, *_ in nodes:
        for device, count in devices_of(gres):
            free = count if state.rstrip("*~#!%$@^-") == IDLE[0] else None if state in IDLE else 0
            found[node, device] = FleetDevice(node, device, count, free, state, tuple(runs.get(node, ())))
    if waiting := runs.get("(waiting)"):
        found["(waiting)", ""] = FleetDevice("(waiting)", "node", 0, None, "", tuple(waiting))
    return list(found.values())


def devices_of(gres: str) -> list[tuple[str, int]]:
    """``[("npu", 1)]`` of ``npu:1``; a node without generic resources is one ``node``."""
    found = [(match[1], int(match[2])) for match in map(_GRES.match, gres.split(",")) if match]
    return found or [("node", 1)]


def answered(done: CompletedProcess[str]) -> list[list[str]]:
    """Return the fields of each line of output; raise :class:`InfrastructureError` if the command failed."""
    if done.returncode:
        raise InfrastructureError(f"Slurm does not respond: {in_a_line(done)}", hint="run sinfo for details")
    return [[word.strip() for word in line.split("|")] for line in done.stdout.splitlines() if line.strip()]


def in_a_line(done: CompletedProcess[str]) -> str:
    """Return the output of a command of Slurm in one line, else its exit status."""
    return " ".join((done.stderr or done.stdout).split()) or f"exit status {done.returncode}"
