"""The yardstick: a float64 copy of the model on the host, where it fits."""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

from torchgauge.harness.worker.observer import Observer
from torchgauge.harness.worker.subjects import make_subject
from torchgauge.harness.worker.tied_parameters import untie
from torchgauge.records import Workload
from torchgauge.suites.outputs import Observation
from torchgauge.suites.suite import HOST, BuiltWorkload

COPIES = 8
"""A float64 training observation holds about eight copies of the parameters at eight bytes each."""


@dataclass(frozen=True)
class Reference:
    """What results are compared with: ``fp64`` on the host, and eager on the host in the same dtype.

    ``host`` is None where the device under test is the host itself and the scenario has no ``reference`` of
    its own. ``eager_of`` says what made it. A model that draws random numbers draws
    other ones in float64: ``random`` says that its results need not be near ``fp64``.
    """

    name: str
    fp64: Observation | None
    host: Observation | None
    random: bool = False
    eager_of: str = "the host"


class HostSession:
    """The part of a device session that a reference run needs; notices whether random numbers are drawn."""

    def __init__(self) -> None:
        self.seeded: Any = None
        self.drew = False

    def seed(self, seed: int) -> None:
        """Seed the host's generator."""
        self.look()
        torch.manual_seed(seed)
        self.seeded = torch.get_rng_state()

    def look(self) -> bool:
        """Whether anything was drawn since the first seed."""
        self.drew |= self.seeded is not None and not torch.equal(self.seeded, torch.get_rng_state())
        return self.drew


def float64_reference(
    built: BuiltWorkload, workload: Workload, scenario: Any, on_host: bool, *, untied: bool = False
) -> Reference:
    """Run the reference of ``workload``; says in ``name`` which one it is.

    Its parameters are ``untied`` where the device's are.
    """
    own, host, eager_of = getattr(scenario, "reference", None), None, Reference.eager_of
    if own is not None:
        eager_of = getattr(scenario, "REFERENCE", "the scenario's reference")
        scenario = SimpleNamespace(observe=own)
    if not on_host or own is not None:
        host, _ = _observe(built, workload, scenario, untied=untied)
    if not _fits(built.module):
        alone = "eager alone" if host is None else f"{workload.dtype} eager on {eager_of}"
        return Reference(f"{alone}: a float64 copy does not fit", None, host, eager_of=eager_of)
    try:
        fp64, drew = _observe(built, workload, scenario, torch.float64, untied=untied)
    except Exception as error:  # noqa: BLE001  whatever a model says to float64, it was not asked for it
        first = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        return Reference(f"eager alone: no float64 run ({first})", None, host, eager_of=eager_of)
    return Reference("float64 on the host", fp64, host, random=drew, eager_of=eager_of)


def _observe(
    built: BuiltWorkload, workload: Workload, scenario: Any, dtype: Any = None, *, untied: bool = False
) -> tuple[Observation, bool]:
    """What the model returns on the host, and whether it draws random numbers."""
    session = HostSession()
    subject = make_subject(built, workload, session, HOST, dtype=dtype, apart=True)
    if untied:
        untie(subject.module)
    seen = Observer(scenario, subject).observe()
    del subject
    gc.collect()
    return seen, session.look()


def _fits(module: Any) -> bool:
    count = sum(p.numel() for p in module.parameters())
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return True
    return bool(count * 8 * COPIES < 0.8 * free)
