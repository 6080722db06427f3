"""The groups of a selection in shards that end together, the same in every shard's own process.

Nobody tells the shards of each other: each plans the whole and takes its part. That works as long as all have
the same selection and the same durations, so the sharding has a digest by which one can tell.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.counted import counted
from torchgauge.errors import NothingSelectedError
from torchgauge.harness.planning.bin_packing import Part, pack
from torchgauge.harness.planning.forecast import Forecast
from torchgauge.harness.planning.selection import parse_shard
from torchgauge.records import Group, Plan, digest
from torchgauge.results.store import Store

MOST_RUNS = 32
"""Runs of a store whose shardings are compared."""


@dataclass(frozen=True)
class Sharding:
    """All shards of a selection: their groups in its order, and their expected seconds.

    ``whole`` is a digest of what was sharded, ``digest`` one of who got which.
    """

    shards: tuple[tuple[Group, ...], ...]
    expected_s: tuple[float, ...]
    whole: str
    digest: str

    def shard(self, text: str) -> tuple[Group, ...]:
        """The groups of shard ``text`` (``i/n``); raises :class:`NothingSelectedError` for an empty one."""
        number, _ = parse_shard(text)
        if number > len(self.shards):
            raise NothingSelectedError(
                f"shard {text} is empty: the selection has {counted(len(self.shards), 'group')}",
                hint=f"at most --shard i/{len(self.shards)}",
            )
        return self.shards[number - 1]


def other_shardings(store: Store, plan: Plan) -> list[str]:
    """Latest runs in ``store`` that are shards of the same groups in as many parts, but sharded otherwise.

    Together with them the run of ``plan`` would leave groups out and repeat others.
    """
    ours = plan.schedule
    if ours is None or not ours.sharding:
        return []
    found = []
    for run_id in store.run_ids()[-MOST_RUNS:]:
        try:
            said = json.loads((store.path / "runs" / run_id / "plan.json").read_bytes())
            theirs, of = said["schedule"] or {}, said["shard"].partition("/")[2]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # of another torchgauge, or not whole yet
        if of == plan.shard.partition("/")[2] and theirs.get("whole") == ours.whole:
            found += [run_id] if theirs.get("sharding") != ours.sharding else []
    return found


def shard_groups(groups: Sequence[Group], shards: int, forecast: Forecast) -> Sharding:
    """``groups`` in ``shards`` parts, fewer where there are fewer groups; none of them is empty."""
    by_id = {group.id: group for group in groups}
    bins = pack([Part((group.id,), forecast.of_group(group)) for group in groups], shards)
    ids = [sorted(bin_.cases) for bin_ in bins]
    return Sharding(
        tuple(tuple(by_id[each] for each in bin_.cases) for bin_ in bins),
        tuple(bin_.expected_s for bin_ in bins),
        digest(sorted(by_id)),
        digest(ids),
    )
