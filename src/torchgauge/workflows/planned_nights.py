"""What each campaign of a store had planned: what is missing can be told from the store alone.

::

    campaigns/<digest>.json     pools with the cases of their shards, what was left out, how its jobs ended

The intake writes it before anything of the campaign is imported, so that a night of which nothing came still
says what should have.
"""

from __future__ import annotations

from dataclasses import dataclass

from torchgauge.records import to_json
from torchgauge.results.atomic_file import storage_errors, write_atomically
from torchgauge.results.json_file import read_record
from torchgauge.results.store import Store
from torchgauge.workflows.campaign import CampaignPlan
from torchgauge.workflows.job_statements import job_name
from torchgauge.workflows.workflow_event import SUCCESS

FOLDER = "campaigns"
PLANNED_SCHEMA = 1
"""Version of the files."""


@dataclass(frozen=True)
class PlannedPool:
    """A pool and how many cases each of its shards has, from the first."""

    name: str
    cases: tuple[int, ...]


@dataclass(frozen=True)
class EndedJobs:
    """How the Git host says that the jobs of a night ended: together, and by name; empty where unasked."""

    together: str = ""
    each: tuple[tuple[str, str], ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it is said that not all of them ended well."""
        return self.together not in ("", SUCCESS)

    def of(self, pool: str, shard: int, count: int) -> str:
        """How the job of a shard did not end well, in words; empty where it did or nobody was asked."""
        if not self.each:
            return ""
        ended = dict(self.each).get(job_name(pool, shard, count))
        if ended is None:
            return "its job never started"
        return "" if ended == SUCCESS else f"its job ended with {ended}"


UNASKED = EndedJobs()


@dataclass(frozen=True)
class PlannedNight:
    """One plan of a campaign: a night that is planned again has another digest."""

    campaign_id: str
    digest: str
    night: str
    pools: tuple[PlannedPool, ...]
    left_out: tuple[str, ...]
    empty: tuple[str, ...]
    ended: EndedJobs = UNASKED
    schema: int = PLANNED_SCHEMA

    @property
    def told_of(self) -> frozenset[str]:
        """The pools of which the plan says what becomes of them, as :attr:`CampaignPlan.told_of`."""
        return frozenset((*(pool.name for pool in self.pools), *self.left_out, *self.empty))

    def pool(self, name: str) -> PlannedPool | None:
        """The pool called ``name``, if it was planned."""
        return next((pool for pool in self.pools if pool.name == name), None)


def planned_night(plan: CampaignPlan, ended: EndedJobs) -> PlannedNight:
    """What is kept of ``plan``."""
    pools = tuple(
        PlannedPool(pool.name, tuple(len(shard.cases) for shard in pool.shards)) for pool in plan.pools
    )
    return PlannedNight(plan.campaign_id, plan.digest, plan.night, pools, plan.left_out, plan.empty, ended)


def keep_plan(store: Store, plan: CampaignPlan, ended: EndedJobs = UNASKED) -> None:
    """Keep what ``plan`` has planned in ``store``, and how its jobs ``ended``, as it is known last.

    Raises :class:`InfrastructureError` on a failing disk.
    """
    folder = store.path / FOLDER
    file = folder / f"{plan.digest}.json"
    if ended != UNASKED or not file.exists():
        with storage_errors(folder):
            folder.mkdir(exist_ok=True)
        write_atomically(file, to_json(planned_night(plan, ended)).encode() + b"\n")


def planned_nights(store: Store) -> list[PlannedNight]:
    """Every plan that ``store`` keeps, night by night; raises :class:`DataFileError` for a damaged one."""
    hint = "restore it from the last commit of the branch"
    found = [read_record(PlannedNight, file, hint) for file in (store.path / FOLDER).glob("*.json")]
    return sorted(found, key=lambda plan: (plan.night, plan.campaign_id, plan.digest))
