"""Backend ``cheat``: compiled code that is right when it is checked; for tests only."""

from __future__ import annotations

from torchgauge.harness.backends.backend import BackendDescriptor

CHEAT = BackendDescriptor("cheat", "for tests only", "torchgauge_cheats.cheats", options=dict)
