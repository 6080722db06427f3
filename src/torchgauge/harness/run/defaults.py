"""What campaigns do where nobody says, and where each of their settings came from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any

from torchgauge.devices.cpu_times import allowed_cpus
from torchgauge.devices.pinning import MOST_WORKERS
from torchgauge.harness.pool.watch import default_memory_limit
from torchgauge.records import Deadlines, Provenance, RunSettings

CAMPAIGN_MEASURE_S = 2.0
"""Seconds per case, a mean: what steady groups leave over goes to those that are still wide."""
MEMORY_OF_ONE = 3 << 30
"""Bytes that a worker with a model of ordinary size, its references and a C++ compiler beside it may need."""


def default_prefetch(cores: int | None = None, memory: int | None = None) -> int:
    """One for each core that this process may use and one more, fewer where ``memory`` (free bytes) is short.

    The one more has work for the core that another one leaves while its process ends and the next one starts.
    """
    if cores is None:
        cores = len(allowed_cpus())
    free = default_memory_limit() if memory is None else memory
    return max(1, min(cores + 1, free // MEMORY_OF_ONE, MOST_WORKERS)) if cores > 1 else 1


def check_settings(
    options: Mapping[str, Any], *parts: str, **others: Any
) -> tuple[RunSettings, tuple[Provenance, ...]]:
    """Settings of a run of checks with ``others``; ``options`` has ``threads`` and the deadline ``timeout``.

    The deadline, in seconds, is that of a check and of further ``parts`` of a case.
    """
    given = {name: options[name] for name in ("threads", "timeout") if options[name] is not None}
    timeout = given.pop("timeout", None)
    if timeout is not None:
        given["deadlines"] = replace(Deadlines(), **dict.fromkeys(("check_s", *parts), timeout))
    settings = replace(RunSettings(), memory_probe=False, **others, **given)
    return settings, sources_of(settings, given, timeout)


def sources_of(
    settings: RunSettings, typed: Collection[str], timeout: float | None, machine: Collection[str] = ()
) -> tuple[Provenance, ...]:
    """Where each setting came from: a flag that was ``typed``, the ``machine`` or a default.

    What was typed for all deadlines is ``timeout``, in seconds.
    """
    return tuple(
        Provenance(
            item.name,
            timeout if item.name == "deadlines" else getattr(settings, item.name),
            "flag" if item.name in typed else "machine" if item.name in machine else "default",
        )
        for item in fields(RunSettings)
    )
