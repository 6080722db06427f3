"""In which order a run takes its groups, and why: what was known when it was planned."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """The order of a plan's groups; all times in seconds.

    ``order`` is ``longest`` (first), or ``value`` where a budget was given. ``expected_s`` maps group ids to
    their expected wall time; the durations of ``known`` of them were recorded in ``source``. Beside them
    ``startup_s`` passes before the first group of a device and ``closing_s`` after its last. ``left`` are
    groups that are not expected to fit into the budget, in the order in which they would come.

    ``whole`` is a digest of all groups that were shared out and ``sharding`` one of who got which: shards of
    one plan have both in common, or they do not fit together. Both are empty where the plan is no shard.
    """

    order: str
    expected_s: tuple[tuple[str, float], ...]
    known: int = 0
    source: str = ""
    startup_s: float = 0.0
    closing_s: float = 0.0
    left: tuple[str, ...] = ()
    whole: str = ""
    sharding: str = ""
