"""Where a worker runs: CPUs, NUMA node and threads, set before torch starts any thread.

Linux only; elsewhere a configuration that asks for CPUs is ``unsupported``. Memory follows by the kernel's
first-touch rule: pages come from the node of the CPU that writes them first, so pinning the CPUs of a node
before anything is allocated places the memory too (``man 7 numa``).
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from torchgauge.devices.host import quota_cores
from torchgauge.records import Scalar
from torchgauge.records.placement import Placement, format_cpus, parse_cpus

SYSTEM = Path("/sys/devices/system")
CHOSEN = frozenset({"OMP_NUM_THREADS", "MKL_NUM_THREADS"})
"""Variables by which a person chooses the number of threads; torch reads them."""
MOST_WORKERS = 8
"""Maximum number of workers that prepare for one device at once; more would wait for each other's timing."""


class PinningError(Exception):
    """This machine cannot do what a configuration asks for; the message is the reason."""


def pin(placement: Placement, system: Path = SYSTEM) -> dict[str, Scalar]:
    """Bind this process as ``placement`` says; the facts of where it runs now.

    Raises :class:`PinningError` for CPUs or a node that this process may not use.
    """
    if not hasattr(os, "sched_setaffinity"):
        if placement.cpus or placement.numa is not None:
            raise PinningError("this system cannot bind a process to CPUs")
        return {}
    allowed = os.sched_getaffinity(0)
    wanted = set(allowed)
    if placement.numa is not None:
        wanted &= _node(placement.numa, system)
    if placement.cpus == "physical":
        wanted = {cpu for cpu in wanted if cpu == min(_siblings(cpu, system) & wanted, default=cpu)}
    elif placement.cpus:
        named = set(parse_cpus(placement.cpus))
        missing = named - allowed
        if missing:
            raise PinningError(
                f"CPU {format_cpus(sorted(missing))} is not among those that this process may use "
                f"({format_cpus(sorted(allowed))})"
            )
        wanted &= named
    if not wanted:
        raise PinningError(f"no CPU is both in {placement.cpus!r} and on NUMA node {placement.numa}")
    if wanted != allowed:
        os.sched_setaffinity(0, wanted)
    nodes = []
    for path in sorted((system / "node").glob("node[0-9]*")):
        number = int(path.name.removeprefix("node"))
        try:
            if _node(number, system) & wanted:
                nodes.append(number)
        except PinningError:
            continue
    return {"cpus": format_cpus(sorted(wanted)), **({"numa_nodes": format_cpus(nodes)} if nodes else {})}


def set_threads(placement: Placement, default: int | None, share: int = 1) -> dict[str, Scalar]:
    """Set torch's threads to those of ``placement``, or to ``default``; return the numbers in use then.

    If neither threads nor CPUs are chosen, one CPU stays free, or the CPUs are divided by ``share``: see
    :func:`spare_threads`.
    """
    import torch

    own = torch.get_num_threads()
    threads = placement.threads or default
    if threads is None and hasattr(os, "sched_getaffinity"):
        usable = len(os.sched_getaffinity(0))
        chosen = placement.cpus or placement.numa is not None or not CHOSEN.isdisjoint(os.environ)
        threads = min(own, usable) if chosen else spare_threads(own, usable, quota_cores(), share)
    if threads is not None and threads != own:
        torch.set_num_threads(threads)
    if placement.interop_threads is not None:
        torch.set_num_interop_threads(placement.interop_threads)
    return {"threads": torch.get_num_threads(), "interop_threads": torch.get_num_interop_threads()}


def spare_threads(own: int, usable: int, quota: float | None, share: int = 1) -> int:
    """Return torch's ``own`` number of threads, or fewer to leave one CPU free and stay within the ``quota``.

    Threads meet at barriers, so the one that loses its core to other work stops them all: beside one busy
    process two threads on two cores were two to eighty times slower than alone, and one was not slower. Eight
    workers of a GPU with 15 threads each on 16 CPUs took 240 s for references of a second, so each gets
    one ``share``-th of the CPUs.
    """
    free = usable - 1 if share == 1 else usable // share
    return max(1, min(own, free, math.floor(quota) if quota is not None else own))


def _node(node: int, system: Path) -> set[int]:
    path = system / "node" / f"node{node}" / "cpulist"
    try:
        return set(parse_cpus(path.read_text(encoding="ascii").strip()))
    except (OSError, ValueError):
        raise PinningError(f"this machine has no NUMA node {node}") from None


def _siblings(cpu: int, system: Path) -> set[int]:
    """The hardware threads of the core of ``cpu``; itself alone where the system does not tell."""
    path = system / "cpu" / f"cpu{cpu}" / "topology" / "thread_siblings_list"
    try:
        return set(parse_cpus(path.read_text(encoding="ascii").strip()))
    except (OSError, ValueError):
        return {cpu}
