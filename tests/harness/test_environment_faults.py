"""When the device or a plugin is broken, every case still has its row, and the rest of the run goes on."""

from __future__ import annotations


def test_a_device_that_cannot_be_opened_is_not_the_models_fault(sandbox) -> None:
    """Every case on it is infra with the cause, and the run is incomplete."""
    done = sandbox.measure("toy", "--models", "noop,sum", "--device", "lostdevice", "--config", "eager")
    assert done.returncode == 3, done.stderr
    rows = sandbox.rows()
    assert [(row.status.value, row.cause.value) for row in rows] == [("infra", "no_device")] * 2
    assert all("no driver for lostdevice.0" in row.reason for row in rows)


def test_a_deadly_plugin_takes_nobody_along(sandbox) -> None:
    """A suite whose import kills the process crashes alone; the other suite of the run passes."""
    words = ("--models", "victim,noop", "--device", "fake", "--config", "eager")
    done = sandbox.measure("hostile", "toy", *words)
    assert done.returncode == 1, done.stderr
    ends = {row.case.workload.model: (row.status.value, row.phase.value) for row in sandbox.rows()}
    assert ends == {"victim": ("crash", "import"), "noop": ("pass", "done")}
    assert "crashed while importing its modules" in done.stderr


def test_an_interpreter_that_does_not_start_leaves_rows(sandbox) -> None:
    """Where no host comes up at all, the cases are infra and the run ends."""
    site = sandbox.store_path.with_name("site")
    site.mkdir()
    guard = "import os, sys\nif 'torchgauge.harness.worker.host' in ' '.join(sys.orig_argv): os._exit(1)\n"
    (site / "sitecustomize.py").write_text(guard)
    path = f"{site}:{sandbox.environment['PYTHONPATH']}"
    words = ("toy", "--models", "noop", "--device", "fake", "--config", "eager")
    done = sandbox.measure(*words, PYTHONPATH=path)
    assert done.returncode == 3, done.stderr
    assert [(row.status.value, row.cause.value) for row in sandbox.rows()] == [("infra", "lost_worker")]
    assert "did not start" in done.stderr
