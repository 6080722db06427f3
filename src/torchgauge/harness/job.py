"""What one worker process is asked to do, as it travels in a file from the parent to the worker."""

from __future__ import annotations

from dataclasses import dataclass

from torchgauge.harness.suspects import Remedies, Suspect
from torchgauge.records import DeviceTarget, Group, RunSettings

MEASURE = "measure"
FRESH = "fresh"
CALIBRATE = "calibrate"
SIDE = "side"
CHECKS = "checks"


@dataclass(frozen=True)
class Job:
    """One process's work: measure a group, run checks, run a case afresh, be a side of a pair, or calibrate.

    ``session``, ``builder`` and ``scenario`` are ``module:attribute`` references that the worker imports.
    ``cache`` is the compile-cache folder shared by the processes of one group, ``filled`` where it holds the
    case already. ``cpus`` binds a worker whose configuration asks for none. A side of a pair connects to the
    Unix socket ``control``. ``timing_lock`` is where it asks for the machine before it times
    (:mod:`.timing_lock_client`); "" where it has the machine to itself.

    A group that is not ``cold`` may use ``kept``, the folder of caches that outlive the run ("" for none),
    and its compilation is not timed. ``shared_budget`` is the file with the seconds that earlier groups left
    over. Of several ``processes`` of one group this is ``rank``; they meet at the file ``rendezvous``.
    """

    kind: str
    device: DeviceTarget
    session: str
    settings: RunSettings
    events: str
    cursor: str
    cache: str = ""
    group: Group | None = None
    builder: str = ""
    scenario: str = ""
    install_hint: str = ""
    preload: tuple[str, ...] = ()
    at: str = ""
    runs_torch: bool = True
    cpus: str = ""
    control: str = ""
    timing_lock: str = ""
    filled: bool = False
    kept: str = ""
    cold: bool = True
    shared_budget: str = ""
    suspects: tuple[Suspect, ...] = ()
    rank: int = 0
    processes: int = 1
    rendezvous: str = ""

    @property
    def remedies(self) -> Remedies:
        """What is known of what a model may lack."""
        return Remedies(self.install_hint, self.suspects)
