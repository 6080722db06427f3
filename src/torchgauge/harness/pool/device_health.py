"""What a run has seen of one device, and whether it has left the pool: for this run, or until it is lifted.

A device that two models lose, drifts, or has a process that cannot be ended would do the same to the next
run, and stays out (:mod:`.quarantine`). One that could not be opened stays out of this run only: the next one
asks it at its start anyway.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

from torchgauge.clock import Clock
from torchgauge.devices.device import Device
from torchgauge.harness.pool import quarantine, strays
from torchgauge.harness.pool.device_lease import place_of
from torchgauge.records import Calibration, DeviceTarget

MOST_LOSSES = 2
"""Groups that a device may lose before it leaves."""
MOST_DRIFT = 0.75
"""Share of its speed that a device may lose within a run: neighbours take less of a calibration."""


@dataclass
class DeviceHealth:
    """The health of ``target`` in the run called ``run_id``; ``gone`` says why it left, "" while it is in.

    A run that has ``only_checks`` for it examines it: no quarantine is in the way. Several threads may tell
    it things; what there is to say of it waits in ``notes``.
    """

    device: Device
    target: DeviceTarget
    run_id: str
    clock: Clock
    only_checks: bool = False
    losses: int = 0
    losers: set[str] = field(default_factory=set)
    lost_at: float = 0.0
    was_open: bool = False
    gone: str = ""
    notes: list[str] = field(default_factory=list)
    _mutex: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        if self.place is None or self.only_checks:
            return
        if (found := quarantine.read(self.place)) is not None:
            self.gone = found.words
            self.notes.append(f"device '{self.target}' is not used: {found.words}; try: {found.lift}")

    @property
    def place(self) -> Path | None:
        """Where the machine keeps what is known of the device; None for the host and what is no hardware."""
        return place_of(self.device, self.target)

    def lost(self, model: str, reason: str, *, began: float, opened: bool) -> None:
        """Record that a group, which ``began`` then (seconds since the epoch), lost the device.

        Losses of groups that ran at the same time count once. The device stays out of later runs as well only
        where a group has ``opened`` it and two models have lost it. Otherwise another user may hold the
        device, or a single ``model`` may be the cause.
        """
        with self._mutex:
            self.was_open = self.was_open or opened
            if self.losses and began <= self.lost_at:
                return
            self.losses += 1
            self.losers.add(model)
            self.lost_at = self.clock.now()
            twice = self.losses >= MOST_LOSSES
        if twice:
            said = f"lost {self.losses} times, the last time: {reason}"
            self.leave(said, lasting=self.was_open and len(self.losers) > 1)

    def said(self) -> list[str]:
        """What became of the device since this was last asked."""
        found, self.notes[:] = list(self.notes), []
        return found

    def look_for_strays(self) -> None:
        """A worker was not ended in time: what escaped is ended here, or the device leaves with it."""
        ended, left = strays.end(strays.escaped())
        self.notes += [
            f"ended a process that had escaped on device '{self.target}': {name}" for name in ended
        ]
        if left:
            self.leave(f"a process that cannot be killed holds the device: {'; '.join(left)}", lasting=True)

    def drifted(self, start: Calibration, end: Calibration) -> str:
        """How much slower the device is at the ``end`` than at the ``start``; "" for less than the limit."""
        pairs = (
            ("gemm", start.gemm_flops, end.gemm_flops),
            ("copy", start.copy_bytes_per_s, end.copy_bytes_per_s),
        )
        for name, before, after in pairs:
            if before and after is not None and after < (1 - MOST_DRIFT) * before:
                return f"calibration {name} fell to {after / before:.0%} of its value at the start"
        return ""

    def leave(self, reason: str, *, lasting: bool = False) -> None:
        """Take the device out of the pool; where it is ``lasting``, the next run on this machine too."""
        with self._mutex:
            if self.gone:
                return
            self.gone = reason
        said = f"device '{self.target}' has left the pool: {reason}"
        if lasting and self.place is not None:
            kept = quarantine.Quarantine(self.place.name, reason, self.clock.now(), self.run_id)
            said += f"; {quarantine.keep(self.place, kept)}"
        self.notes.append(said)
