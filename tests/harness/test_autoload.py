"""A run beside an installed extension that raises: one row says whose it is, everything else is measured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchgauge.devices.cpu import DEVICE
from torchgauge.harness.planning.plan import all_groups, load_suites
from torchgauge.harness.planning.selection import Selection
from torchgauge.harness.pool.worker_pool import groups_at_once, may_have_neighbours, workers_of_host
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


def test_checks_cost_models_no_neighbour() -> None:
    """Groups of models are prepared at once as if no check were among them; checks run by themselves."""
    selection = Selection(("toy", "features"), ("cpu",), models=("mlp", "noop", "device.autoload-*"))
    groups = list(all_groups(selection, {"cpu": DEVICE}, load_suites(selection.suites)))
    assert [may_have_neighbours(group) for group in groups] == [True, True, False]
    assert groups_at_once(groups, 2) == 2
    assert groups_at_once(groups[2:], 2) == 1


@pytest.mark.parametrize(
    ("usable", "threads", "workers"), [(1, None, 2), (2, None, 3), (16, None, 1), (16, 4, 4), (2, 2, 1)]
)
def test_the_host_prepares_no_more_groups_than_its_cpus_have_threads(
    monkeypatch, usable: int, threads: int | None, workers: int
) -> None:
    """Eight groups with fifteen threads each would wait for each other at every barrier."""
    monkeypatch.setattr("torchgauge.harness.pool.worker_pool.cores", lambda: usable)
    assert workers_of_host(threads) == workers
