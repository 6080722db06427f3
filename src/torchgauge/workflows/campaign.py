"""The plan of one campaign: which cases each pool runs in which shard, written before any job starts.

Every later step trusts this file and compares what jobs submit with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torchgauge.errors import DataFileError, UnknownNameError, UsageError
from torchgauge.records import Case, Expectation, PlannedCase, digest, to_plain
from torchgauge.results.json_file import as_record, read_object

CAMPAIGN_SCHEMA = 3
"""Version of ``campaign.json``."""


@dataclass(frozen=True)
class ShardPlan:
    """The cases of one job, by their ids; ``index`` counts from 1 to ``of``.

    ``terms`` is :func:`terms_of` its cases: a job, or a result set, of other ones is none of the campaign.
    ``expected`` are cases that data files expect to end in another status than a pass, as far as they are
    there where the campaign is planned, and ``skipped`` those that a suite declares not to run at all, or
    that their device is known there to refuse.
    """

    index: int
    of: int
    cases: tuple[str, ...]
    expected_s: float
    terms: str
    expected: tuple[tuple[str, Expectation], ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class PoolPlan:
    """The part of a campaign that one pool of machines runs; ``container`` is empty for a venv."""

    name: str
    device: str
    runs_on: tuple[str, ...]
    container: str
    expected_s: float
    shards: tuple[ShardPlan, ...]

    def shard(self, index: int) -> ShardPlan:
        """The shard called ``index``; raises :class:`UsageError` where the pool has none of that number."""
        for shard in self.shards:
            if shard.index == index:
                return shard
        raise UsageError(
            f"pool {self.name!r} has no shard {index}",
            hint=f"--shard 1 to {len(self.shards)}",
        )


@dataclass(frozen=True)
class CampaignPlan:
    """A whole campaign; ``created_at`` is in seconds since the epoch (UTC), ``night`` a date (ISO 8601).

    ``left_out`` names the pools of torchgauge.yml that somebody asked it to do without, ``empty`` those for
    whose device the campaign has no case.
    """

    campaign_id: str
    created_at: float
    night: str
    repository: str
    sha: str
    torch: str
    suite_digest: str
    pools: tuple[PoolPlan, ...]
    left_out: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    schema: int = CAMPAIGN_SCHEMA

    @property
    def digest(self) -> str:
        """Sixteen hex digits over everything in the plan."""
        return digest(to_plain(self))

    @property
    def told_of(self) -> frozenset[str]:
        """The pools of torchgauge.yml of which the plan says what becomes of them."""
        return frozenset((*(pool.name for pool in self.pools), *self.left_out, *self.empty))

    def pool(self, name: str) -> PoolPlan:
        """The pool called ``name``; raises :class:`UnknownNameError` with suggestions."""
        for pool in self.pools:
            if pool.name == name:
                return pool
        raise UnknownNameError("pool", name, [pool.name for pool in self.pools])


def terms_of(cases: Mapping[str, PlannedCase]) -> str:
    """Sixteen hex digits over what the suites hold each of ``cases``, by id, to: :func:`term_of` it."""
    return digest([term_of(cases[name].case, cases[name]) for name in sorted(cases)])


def term_of(case: Case, planned: PlannedCase) -> list[object]:
    """What ``case`` is, its tolerance and the number of parameters of its model, as ``planned`` has them.

    Its key is there because its id is not enough: shapes that differ can be written alike. What a device's
    package adds is no part of it: where a campaign is planned that package may be missing.
    """
    said = planned.tolerance
    bounds = [float(said.absolute), float(said.relative), float(said.rmse_multiplier)]
    return [case.id, case.key, *bounds, planned.parameters]


def no_case(pool: str) -> str:
    """That ``pool`` has nothing to run, and what to try."""
    told = "no case is planned, since the campaign has no case for its device"
    return f"pool {pool}: {told}; fix `campaign` or `pools` of torchgauge.yml"


def campaign_json(plan: CampaignPlan) -> str:
    """``plan`` as the text of ``campaign.json``, with its digest."""
    return json.dumps({**to_plain(plan), "digest": plan.digest}, indent=1, allow_nan=False) + "\n"


def read_campaign(path: Path | str, wanted: str = "") -> CampaignPlan:
    """The plan in the file ``path``, whose digest must be ``wanted`` where one is.

    Raises :class:`DataFileError` where it cannot be trusted.
    """
    where, hint = str(path), "torchgauge ci plan writes this file"
    data = read_object(path, hint)
    if data.get("schema") != CAMPAIGN_SCHEMA:
        raise DataFileError(where, f"does not have schema version {CAMPAIGN_SCHEMA}", hint="plan it again")
    said = data.pop("digest", None)
    plan = as_record(CampaignPlan, data, path, hint)
    if said != plan.digest:
        raise DataFileError(where, "the digest does not match the content", hint="torchgauge ci plan")
    if wanted and wanted != plan.digest:
        raise DataFileError(
            where,
            f"has the digest {plan.digest}, but the planning job wrote a plan with digest {wanted}",
            hint="another job replaced the artifact: check the jobs of the run before repeating it",
        )
    return plan
