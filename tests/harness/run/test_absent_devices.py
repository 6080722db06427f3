"""A device that is not here is said once, before anything is measured or written."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch

ROWS = """device: {}
expectations:
  - {{suite: toy, status: pass, reason: its rows are wanted, link: https://example.org, date: 2026-01-01}}
"""


def run(sandbox, device, *more, **variables):
    """Two cases on ``device``."""
    words = ("toy", "--models", "mlp,embedding", "--device", device, "--config", "eager", *more)
    return sandbox.measure(*words, **variables)


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("npu", "device 'npu' is absent here: package torch-npu is not installed"),
        ("cpu,npu", "device 'npu' is absent here"),
        ("cpu.3", "device 'cpu' has no index 3 here: it has 1 device"),
        ("npusim.5", "device 'npusim' has no index 5 here"),
    ],
)
def test_it_is_said_once_and_nothing_is_written(sandbox, ending, device, said) -> None:
    """With what to try and exit 3, also where another device of the run is here."""
    done = run(sandbox, device)
    sandbox.assert_ended(done, ending(3, "try: ", state=""))
    assert done.stderr.startswith(f"error: {said}"), done.stderr
    assert done.stderr.count("absent") + done.stderr.count("no index") == 1
    assert "torchgauge devices lists the devices of this machine" in done.stderr
    assert not sandbox.store_path.exists()


def test_a_file_of_expectations_has_its_rows(sandbox, ending) -> None:
    """What somebody expects of an absent device is answered case by case."""
    path = sandbox.store_path.parent / "expected.yaml"
    path.write_text(ROWS.format("npu"))
    done = run(sandbox, "npu", "--expectations", str(path))
    rows = sandbox.assert_ended(done, ending(3))
    assert [(row.status.value, row.cause.value) for row in rows] == [("infra", "no_device")] * 2


def test_a_file_about_another_device_asks_for_no_rows(sandbox) -> None:
    """Only the devices that the file is about have them."""
    path = sandbox.store_path.parent / "expected.yaml"
    path.write_text(ROWS.format("cpu"))
    done = run(sandbox, "npu", "--expectations", str(path))
    assert done.returncode == 3
    assert "absent here" in done.stderr
    assert not sandbox.store_path.exists()
