"""Where a number was measured: the environment and the calibration of the machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torchgauge.records.codec import Scalar, digest


@dataclass(frozen=True)
class Environment:
    """Where a number was measured: identity (hashed) and conditions (recorded, never hashed)."""

    device: str
    identity: tuple[tuple[str, Scalar], ...]
    conditions: tuple[tuple[str, Scalar], ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def id(self) -> str:
        """Sixteen hex digits over device and identity."""
        return digest([self.device, [list(pair) for pair in self.identity]])


@dataclass(frozen=True)
class Calibration:
    """Speed of this runner now: one GEMM, one copy, one launch, at the start or end of a shard.

    ``node`` names the machine where several measured one run; "" where one did.
    """

    device: str
    at: str
    gemm_flops: float | None
    copy_bytes_per_s: float | None
    launch_s: float | None
    absent: str = ""
    node: str = ""
