"""What an executor has: its devices, who measures on them, and where none may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchgauge import registry
from torchgauge.errors import UsageError


@dataclass(frozen=True)
class FleetDevice:
    """Devices of one kind on one node: how many there are, how many of them are free (None: not known).

    ``state`` is the engine's word for the node, or this one's for the device; ``runs`` say who has them;
    ``refused`` why no agent of torchgauge may measure there.
    """

    node: str
    device: str
    count: int
    free: int | None
    state: str = ""
    runs: tuple[str, ...] = ()
    refused: str = ""


def fleet_of(name: str, options: Any) -> list[FleetDevice]:
    """The devices that the executor ``name`` has; raises :class:`UsageError` where it cannot say."""
    executor = registry.load("torchgauge.executors", name)
    fleet = getattr(executor, "fleet", None)
    if fleet is None:
        raise UsageError(f"executor {name!r} does not report its devices", hint="use executor local or slurm")
    found: list[FleetDevice] = fleet(options)
    return sorted(found, key=lambda each: (each.node, each.device))


def fleet_lines(devices: list[FleetDevice]) -> list[str]:
    """A line for each of ``devices``, and one for each run and refusal below it."""
    if not devices:
        return ["no device"]
    lines = []
    for each in devices:
        free = "" if each.free is None else f", {each.free} free"
        state = f" ({each.state})" if each.state else ""
        lines.append(f"{each.node}: {each.count} {each.device}{free}{state}")
        lines += [f"  {run}" for run in each.runs]
        if each.refused:
            lines.append(f"  refused: {each.refused}")
    return lines
