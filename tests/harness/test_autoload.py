"""A run beside an installed extension that raises: one row says whose it is, everything else is measured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchgauge.records import Status

WORDS = "libxyz.so: cannot open shared object file"


def installed(folder: Path) -> Path:
    """A package whose extension raises while torch is imported."""
    information = folder / "torch_xyz-1.2.3.dist-info"
    information.mkdir(parents=True)
    (folder / "xyz_extension.py").write_text(f"def autoload():\n    raise OSError({WORDS!r})\n")
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-xyz\nVersion: 1.2.3\n")
    (information / "entry_points.txt").write_text("[torch.backends]\nxyz = xyz_extension:autoload\n")
    return folder


@pytest.mark.torch
def test_a_run_beside_an_extension_that_raises(sandbox, tmp_path: Path) -> None:
    """The check that loads it is an error in its words; the others, and models beside them, pass."""
    path = os.pathsep.join([str(installed(tmp_path / "site")), sandbox.environment["PYTHONPATH"]])
    words = ("toy", "features", "--device", "cpu", "--models", "toy/mlp,device.autoload-*")
    done = sandbox.measure(*words, "--config", "eager", "--prefetch", "2", PYTHONPATH=path)
    rows = {row.case.workload.model: row for row in sandbox.rows()}
    assert {name: row.status for name, row in rows.items()} == {
        "mlp": Status.PASS,
        "device.autoload-on": Status.ERROR,
        "device.autoload-off": Status.PASS,
        "device.autoload-raising": Status.PASS,
    }, done.stderr
    reason = rows["device.autoload-on"].reason
    assert "Failed to load the backend extension: xyz" in reason
    assert WORDS in reason
    assert "xyz (torch-xyz 1.2.3)" in reason
    assert dict(rows["device.autoload-off"].facts)["device_visible"] == "yes"
    (seconds,) = [each for each in rows["device.autoload-off"].summaries if each.metric == "import_time"]
    assert seconds.median > 0
    assert done.returncode == 1, done.stderr
