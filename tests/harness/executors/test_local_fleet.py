"""What `fleet status` says of the accelerators of this machine: free, leased, or in quarantine."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from torchgauge.harness.executors.fleet import fleet_lines
from torchgauge.harness.executors.local_fleet import local_fleet
from torchgauge.harness.pool import quarantine
from torchgauge.harness.pool.device_lease import FOLDER
from torchgauge.harness.pool.quarantine import Quarantine


def test_leases_and_quarantines_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With who has the device, or with why it is out and what lifts it; neither is free."""
    leases = tmp_path / "leases"
    leases.mkdir(mode=0o1777)
    leases.chmod(0o1777)
    monkeypatch.setenv(FOLDER, str(leases))
    quarantine.keep(leases / "acc.1", Quarantine("acc.1", "lost 2 times", 1_790_000_000.0, "run-7"))
    with (leases / "acc.0").open("w") as lease:
        fcntl.flock(lease, fcntl.LOCK_EX)
        found = {each.device: each for each in local_fleet()}
    held, out = found["acc.0"], found["acc.1"]
    assert (held.state, held.free, len(held.runs)) == ("leased", 0, 1)
    assert "pid" in held.runs[0]
    assert (out.state, out.free, out.runs) == ("quarantined", 0, ())
    assert "lost 2 times" in out.refused
    assert "torchgauge devices --release acc.1" in out.refused
    lines = fleet_lines([held, out])
    assert [line.split(": ")[0] for line in lines] == [
        held.node,
        lines[1].split(": ")[0],
        out.node,
        "  refused",
    ]
