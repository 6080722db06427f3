"""Expectations that a device's own package declares reach the plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torchgauge.devices.cpu import DEVICE
from torchgauge.devices.descriptor_conformance import check_device
from torchgauge.harness.planning.plan import load_suites, select_groups
from torchgauge.harness.planning.selection import Selection
from torchgauge.records import Status


def test_the_file_of_a_device_is_in_the_plan(tmp_path: Path) -> None:
    """Its skip is planned; without the file the case would run; the descriptor is sound."""
    path = tmp_path / "expectations.yaml"
    evidence = "reason: it has no second row\n    link: https://example.org/1\n    date: 2026-11-21\n"
    path.write_text(
        f"device: {DEVICE.name}\nexpectations:\n  - model: noop\n    status: skipped\n    {evidence}"
    )
    selection = Selection(("toy",), (DEVICE.name,), models=("noop",), configurations=("eager",))
    device = replace(DEVICE, expectations=str(path))
    assert check_device(device) == []
    for each, skipped in ((DEVICE, False), (device, True)):
        (group,) = select_groups(selection, {DEVICE.name: each}, load_suites(("toy",)))
        (planned,) = group.cases
        assert (planned.expectation is not None) == skipped
    assert planned.expectation is not None
    assert planned.expectation.status is Status.SKIPPED


def test_a_path_that_is_no_file_is_a_broken_promise() -> None:
    """A relative path would depend on where a person stands."""
    (said,) = check_device(replace(DEVICE, expectations="expectations.yaml"))
    assert "not the absolute path of a file" in said
