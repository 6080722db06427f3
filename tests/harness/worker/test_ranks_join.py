"""Processes meet only where torch has a back end for their device."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from torchgauge.harness.job import Job
from torchgauge.harness.worker.ranks import Ranks
from torchgauge.records import DeviceTarget, RunSettings


@pytest.mark.torch
def test_a_device_without_a_back_end_is_said_in_the_words_of_torch() -> None:
    """Before anybody waits for the others."""
    torch = pytest.importorskip("torch")
    job = Job("measure", DeviceTarget("meta"), "", RunSettings(), "", "", processes=2, rendezvous="nowhere")
    session: Any = SimpleNamespace(torch_device=torch.device("meta"))
    events: Any = None
    with pytest.raises(NotImplementedError, match="backend not registered for device"):
        Ranks().join(job, session, events)
