"""The machine is described by facts that stay the same, apart from those that change."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchgauge.devices import host
from torchgauge.devices.conformance import check_session
from torchgauge.devices.fake import FakeSession
from torchgauge.devices.session import Absent
from torchgauge.processes import host_memory


def test_unreadable_facts_are_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no file can be read nothing is invented."""
    monkeypatch.setattr(host, "read", lambda _path: "")
    monkeypatch.setattr(host_memory, "_MEMINFO", Path("/nowhere/meminfo"))
    identity, conditions = host.host_identity(), host.host_conditions()
    assert "host.memory_bytes" not in identity
    assert "host.virtualised" not in identity
    assert "host.cpu_clock_hz" not in conditions
    assert None not in {*identity.values(), *conditions.values()}


class BadSession(FakeSession):
    """A session that breaks promises in every way."""

    def synchronize(self) -> None:
        raise RuntimeError("no wait")

    def peak_memory(self) -> Absent:
        return Absent("two\nlines")

    def is_oom(self, error: BaseException) -> bool:
        return True

    def telemetry(self) -> dict[str, float]:
        return {"device.clock_hz": float("nan")}


def test_conformance_names_each_broken_promise() -> None:
    """Every broken promise is one sentence, and one that raises does not hide the next."""
    found = "\n".join(check_session(BadSession()))
    assert "synchronize: raised RuntimeError: no wait" in found
    assert "peak memory: returned Absent with a reason" in found
    assert "out of memory: ValueError('out of memory') must not be classified as out of memory" in found
    assert "telemetry: device.clock_hz is nan" in found
