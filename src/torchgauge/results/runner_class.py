"""The class of a runner: machines whose noise may be pooled.

Why not the environment's id: that changes with every package and build, and noise does not. What counts is
the machine (processor, cores, memory, system) and the model of the device.
"""

from __future__ import annotations

from torchgauge.records import Environment

UNKNOWN = "unknown"
_GIB = 1 << 30


def runner_class(environment: Environment) -> str:
    """One line that equal machines share, such as ``Some CPU, 2 cores, 8 GiB, Linux, cpu``."""
    facts = dict(environment.identity)
    model = facts.get("cpu.model") or facts.get("cpu.architecture")
    cores = facts.get("cpu.quota_cores") or facts.get("cpu.cores_available")
    memory = facts.get("host.memory_bytes")
    parts = [
        str(model or UNKNOWN),
        f"{cores:g} cores" if isinstance(cores, (int, float)) else "",
        f"{memory / _GIB:.0f} GiB" if isinstance(memory, (int, float)) else "",
        str(facts.get("host.system") or ""),
    ]
    device = facts.get("device.model")
    named = "" if device in (None, model) else f" {device}"
    return ", ".join([*(part for part in parts if part), f"{environment.device}{named}"])
