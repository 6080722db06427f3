"""A row of a single operation says which share of the device's peak it achieved, and of what that is made."""

from __future__ import annotations

from typing import Any

import pytest

from torchgauge.devices.fake import FakeSession
from torchgauge.harness.worker.roofline import attainable
from torchgauge.records import Status
from torchgauge.suites.suite import Work

QUICK = ("--device", "cpu", "--config", "eager", "--threads", "1", "--no-calibration")


@pytest.mark.torch
def test_rows_have_their_share_of_the_peak(sandbox) -> None:
    """Share and rates are declared work over wall time, block by block."""
    done = sandbox.measure("micro", "--models", "matmul,copy", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "shared by all: micro, inference" in done.stderr
    assert "matmul[n=512]" in done.stderr
    rows = sandbox.rows()
    assert len(rows) == 9
    for row in rows:
        assert row.status is Status.PASS, row.reason
        found = {each.metric: each for each in row.measurements}
        wall, least = found["latency"].samples, found["attainable"].samples[0]
        assert found["peak_share"].samples == tuple(least / each for each in wall)
        assert found["bytes_rate"].samples == tuple(found["bytes"].samples[0] / each for each in wall)
        assert "copy of as many bytes" in found["attainable"].provenance
        arithmetic = row.case.workload.model == "matmul"
        assert bool(found["flops"].samples) is bool(found["flops_rate"].samples) is arithmetic
        assert ("product in float32" in found["attainable"].provenance) is arithmetic
        assert arithmetic or "memory-bound" in found["flops_rate"].absent


@pytest.mark.torch
def test_models_are_not_asked_for_a_peak(sandbox) -> None:
    """A model whose suite declares no work has neither share nor bytes."""
    assert sandbox.measure("toy", "--models", "mlp", *QUICK).returncode == 0
    (row,) = sandbox.rows()
    assert not {each.metric for each in row.measurements} & {
        "attainable",
        "peak_share",
        "bytes",
        "bytes_rate",
    }
    assert "flops_rate" in {each.metric for each in row.measurements}


@pytest.mark.parametrize("flops", [0, 10])
def test_a_peak_that_cannot_be_measured_is_absent_with_its_reason(monkeypatch, flops: int) -> None:
    """The device's own words stand there; a lost device or a full memory stays the case's failure."""
    session = FakeSession()
    error = RuntimeError("no copy here")

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr("torchgauge.harness.worker.roofline.copy_time", fail)
    monkeypatch.setattr("torchgauge.harness.worker.roofline.product_times", fail)
    found = attainable(Work(flops, 100), session, "float32")
    assert (found.samples, found.absent) == ((), "no peak could be measured: no copy here")
    monkeypatch.setattr(FakeSession, "is_oom", lambda *_: True)
    with pytest.raises(RuntimeError, match="no copy here"):
        attainable(Work(flops, 100), session, "float32")
