"""A third party's suite: models that fail in every way that a model can fail, each followed by a healthy one.

It is what a vendor's package would be: it imports the seams of torchgauge and nothing else of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torchgauge.records import digest
from torchgauge.suites.suite import ModelEntry

INFERENCE = {"inference": 2}
BOTH = {"inference": 2, "training": 2}
FAULTS: dict[str, dict[str, int]] = {
    "healthy": BOTH,
    "raises": INFERENCE,
    "raises_in_training": BOTH,
    "raises_while_measured": INFERENCE,
    "nan_eager": INFERENCE,
    "nan_compiled": INFERENCE,
    "wrong_compiled": INFERENCE,
    "wrong_eager": BOTH,
    "gradient_lost": BOTH,
    "gradient_scaled": BOTH,
    "random_numbers": BOTH,
    "nondeterministic": INFERENCE,
    "allocates_without_end": INFERENCE,
    "segfault_in_build": INFERENCE,
    "segfault_in_step": INFERENCE,
    "segfault_in_compiler": INFERENCE,
    "segfault_while_measured": INFERENCE,
    "hangs_in_c": INFERENCE,
    "wakes_when_killed": INFERENCE,
    "hangs_at_exit": INFERENCE,
    "os_exit": INFERENCE,
    "exits_zero": INFERENCE,
    "sys_exit": INFERENCE,
    "result_then_crash": INFERENCE,
    "prints_without_end": INFERENCE,
    "daemon_child": INFERENCE,
    "closes_stdout": INFERENCE,
    "device_oom": INFERENCE,
    "missing_package": INFERENCE,
    "unsupported": INFERENCE,
    "unfinished": INFERENCE,
    "kills_itself": INFERENCE,
    "bus_error": INFERENCE,
    "maps_more_than_there_is": INFERENCE,
    "writes_more_than_there_is": INFERENCE,
    "recompiles_every_call": INFERENCE,
    "captures_no_graph": INFERENCE,
    "runs_a_rnn": INFERENCE,
    "caches_a_norm": INFERENCE,
    "raises_while_profiled": INFERENCE,
    "hangs_while_profiled": INFERENCE,
    "segfault_while_profiled": INFERENCE,
}


@dataclass(frozen=True)
class FaultSuite:
    """Every fault, and after each one a model called ``after_FAULT`` that must pass."""

    name: str = "faults"
    doc: str = "Models that fail in every way; for tests only."
    builder: str = "torchgauge_faults.models:build"
    preload: tuple[str, ...] = ()
    install_hint: str = "pip install no-such-package"
    unavailable: None = None
    notes: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Sixteen hex digits over the names and modes."""
        return digest(FAULTS)

    def models(self) -> tuple[ModelEntry, ...]:
        """The faults with their healthy followers."""
        entries = []
        for name, batch in FAULTS.items():
            entries.append(ModelEntry(name, ("smoke",), batch))
            entries.append(ModelEntry(f"after_{name}", ("smoke",), INFERENCE))
        return tuple(entries)


SUITE = FaultSuite()
