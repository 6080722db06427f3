"""What runs are called: one grammar, because order, file names and links are made of these names.

::

    20261122T031500Z-1a2b3c4d                    a run that somebody started
    20261122T031500Z-POOL-002-01-1a2b3c4d        attempt 1 at shard 2 of POOL in a campaign

The first part is a moment in UTC, of the run or of its campaign's plan. The last eight digits of the second
form are the beginning of that plan's digest: such an id follows from what a run is, and nobody chooses it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from torchgauge.clock import DAY_S, SYSTEM_CLOCK, Clock

MOST_SHARDS, MOST_ATTEMPTS = 999, 50
"""Largest numbers in an id; 50 is how often GitHub runs a workflow again."""
_POOL = r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?"
_LAST = r"[0-9a-f]{8}"
_GRAMMAR = re.compile(rf"(\d{{8}}T\d{{6}}Z)-(?:{_LAST}|{_POOL}-\d{{3}}-\d{{2}}-{_LAST})", re.ASCII)
_SHARD = re.compile(
    rf"(?P<moment>\d{{8}}T\d{{6}}Z)-(?P<pool>{_POOL})-(?P<shard>\d{{3}})-(?P<attempt>\d{{2}})-(?P<plan>{_LAST})",
    re.ASCII,
)
_MOMENT = "%Y%m%dT%H%M%SZ"
_BEGIN = datetime(2020, 1, 1, tzinfo=timezone.utc)
"""No run is older than the project by years."""


@dataclass(frozen=True)
class ShardAttempt:
    """One attempt at one shard: what an id of the second form is made of; ``planned_at`` is in seconds (UTC).

    Raises ``ValueError`` for numbers that an id cannot hold.
    """

    planned_at: float
    pool: str
    shard: int
    attempt: int
    digest: str

    def __post_init__(self) -> None:
        if not (1 <= self.shard <= MOST_SHARDS and 1 <= self.attempt <= MOST_ATTEMPTS):
            raise ValueError(f"shard {self.shard}, attempt {self.attempt}: out of range for a run id")

    @property
    def run_id(self) -> str:
        """The id of its run, the same on every machine."""
        tail = f"{self.pool}-{self.shard:03d}-{self.attempt:02d}-{self.digest[:8]}"
        return f"{_moment(self.planned_at)}-{tail}"


def new_run_id(clock: Clock = SYSTEM_CLOCK) -> str:
    """A fresh run id that sorts by time, also among the runs of one second.

    UTC to the second, then eight hex digits: three count the 4096ths of that second (what is newest is asked
    by name, and short runs follow each other within a second), five are random.
    """
    second, part = divmod(clock.now(), 1)
    return f"{_moment(second)}-{int(part * 4096):03x}{secrets.randbelow(16**5):05x}"


def of_one_campaign(names: Sequence[str]) -> list[str]:
    """The last of ``names``, which are in order, with the other shards of its pool's campaign.

    Of each shard the newest attempt; a run that is no shard is alone.
    """
    last = _SHARD.fullmatch(names[-1]) if names else None
    if last is None:
        return list(names[-1:])
    found: dict[str, tuple[str, str]] = {}
    for name in names:
        each = _SHARD.fullmatch(name)
        if each is not None and each.group("moment", "pool", "plan") == last.group("moment", "pool", "plan"):
            shard, attempt = each.group("shard", "attempt")
            found[shard] = max(found.get(shard, ("", "")), (attempt, name))
    return [name for _, (_, name) in sorted(found.items())]


def is_run_id(text: object, now: float | None = None) -> bool:
    """Whether ``text`` is written as a run's id is, of a day that exists and is not after ``now`` (UTC)."""
    found = _GRAMMAR.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return False
    try:
        moment = datetime.strptime(found[1], _MOMENT).replace(tzinfo=timezone.utc)
    except ValueError:
        return False
    return moment >= _BEGIN and (now is None or moment.timestamp() <= now + DAY_S)


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(int(seconds), tz=timezone.utc):{_MOMENT}}"
