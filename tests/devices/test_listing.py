"""The list of devices stays readable in a narrow terminal and with many devices."""

from __future__ import annotations

from torchgauge.devices.discover import DeviceReport, Presence, Why
from torchgauge.devices.listing import listing
from torchgauge.devices.probe import HookFact, TorchBuild, Unit
from torchgauge.devices.verified import Verified

GIB = 1 << 30
BUILD = TorchBuild("2.13.0+cu130", "abc", "cuda 13.0", False, 1.0, "privateuseone")
PRESENT = DeviceReport(
    "cuda",
    "NVIDIA GPU (CUDA)",
    "cuda",
    Presence.PRESENT,
    count=4,
    units=(*(Unit(index, "NVIDIA H200", 140 * GIB) for index in range(3)), Unit(3, "NVIDIA L4", 24 * GIB)),
    driver="580.12",
    torch=BUILD,
    autocast_dtypes=("float16", "bfloat16"),
    compile_default="inductor",
    compile=(("inductor", ""), ("aot_eager", ""), ("other", "cannot be loaded: no module")),
    telemetry=tuple(f"device.reading_number_{number}" for number in range(8)),
    hooks=(HookFact("events", "", "there is no Event"), HookFact("synchronize", "torch.accelerator", "")),
    verified=Verified("2026-11-21", "a machine"),
)
BROKEN = DeviceReport(
    "rbln",
    "rbln",
    None,
    Presence.BROKEN,
    Why.IMPORT_RAISED,
    "OSError: librbln.so: cannot open",
    "uninstall it",
)


def test_present_device_shows_what_works_and_what_is_missing() -> None:
    """The default backend is marked, a refused one is named, and a missing hook points to its reason."""
    text = "\n".join(listing([PRESENT], 100))
    assert "inductor (default), aot_eager; not other" in text
    assert "events (--json says why)" in text
    assert "580.12" in text
    assert "cuda 2026-11-21 (a machine)" in text


def test_broken_device_shows_its_cause() -> None:
    """The cause of a failed import stands below the name."""
    text = "\n".join(listing([BROKEN], 80))
    assert "import raised" in text
    assert "OSError: librbln.so: cannot open" in text
    assert "try: uninstall it" in text
