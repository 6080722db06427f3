"""The accelerators of this machine, who has the lease of each, and which are in quarantine."""

from __future__ import annotations

import re
import socket
from pathlib import Path

from torchgauge.devices.discover import Presence, known_devices
from torchgauge.devices.probe import probe
from torchgauge.harness.executors.fleet import FleetDevice
from torchgauge.harness.interpreter.interpreter import interpreter
from torchgauge.harness.interpreter.staging import environment_for
from torchgauge.harness.pool import quarantine
from torchgauge.harness.pool.device_lease import holders, lease_files
from torchgauge.processes import process_tree
from torchgauge.suites.suite import HOST

_PID = re.compile(r"pid (\d+)")
_JOURNAL = re.compile(r".*/runs/([^/]+)/journal\.jsonl$")


def local_fleet() -> list[FleetDevice]:
    """Every accelerator that is here, and every other that is leased or in quarantine."""
    there, node = interpreter(None), socket.gethostname().partition(".")[0]
    report = probe(there.path, environment=environment_for(there.path))
    present = {
        f"{each.name}.{number}"
        for each in known_devices(there.path, report=report)
        if each.presence is Presence.PRESENT and each.torch_type not in {None, HOST}
        for number in range(len(each.units))
    }
    leases = {path.name: holders(path) for path in lease_files()}
    held = {name: [_with_run(each) for each in who] for name, who in leases.items() if who}
    out = {each.device: each for each in quarantine.everything()}
    return [
        FleetDevice(
            node,
            name,
            1,
            int(name not in held and name not in out),
            "leased" if name in held else "quarantined" if name in out else "free",
            tuple(held.get(name, ())),
            f"{out[name].words}; {out[name].lift}" if name in out else "",
        )
        for name in sorted(present | held.keys() | out.keys())
    ]


def _with_run(holder: str) -> str:
    """``holder`` with the run whose journal it has open, where /proc shows that."""
    found = _PID.search(holder)
    # the command that has the journal is a parent of those that measure
    line = [] if found is None else process_tree.with_parents(int(found[1]))
    runs = {run for pid in line for run in _runs(pid)}
    return f"{holder}: run {', '.join(sorted(runs))}" if runs else holder


def _runs(pid: int) -> list[str]:
    try:
        files = [str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return []
    return [match[1] for match in map(_JOURNAL.fullmatch, files) if match]
