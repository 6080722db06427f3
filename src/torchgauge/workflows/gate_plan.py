"""Which pools and cases a run of the gate had to submit: the base says so, never the run.

The plan of a pull request is made by its own run, whose file is the author's. So what is missing is held
against ``torchgauge.yml`` of the base. A label may name one more pool for one commit; that run is told of
apart, since it measures none of the pools that everyone's runs must have.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from torchgauge.results.markdown_text import one_line
from torchgauge.workflows.gate_base import GateBase
from torchgauge.workflows.github_api import GitHubApi, own_name, repository_path
from torchgauge.workflows.pull_request import PullRequest
from torchgauge.workflows.workflow_event import SUCCESS, GateRun

MOST_JOBS = 5
"""Jobs that a sentence names."""
MOST_NAME = 60
"""Characters of a job's name that are shown."""


@dataclass(frozen=True)
class GateJob:
    """One job of a run as the API lists it, on one line; a job of a called workflow by its own name.

    Names are the author's of the workflow file, which a pull request may bring along.
    """

    name: str
    conclusion: str


@dataclass(frozen=True)
class GatePlan:
    """The pools that must submit a set, and the jobs that there were, as far as they are known.

    ``named`` says that somebody asked for the pools by name. ``cases`` are those that each pool must have
    compared, and ``unknown`` says why they are not known. ``base`` is a branch that is not the default one,
    ``request`` the pull request as the API lists it.
    """

    pools: tuple[str, ...]
    jobs: tuple[GateJob, ...] = ()
    named: bool = False
    base: str = ""
    cases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: str = ""
    request: PullRequest | None = None

    def title(self, name: str) -> str:
        """What the check run and the comment called ``name`` are called for this run."""
        of_base = ("on", self.base) if self.base else ()
        return " ".join((name, *of_base, *(self.pools if self.named else ())))


def gate_plan(base: GateBase, jobs: tuple[GateJob, ...], came: Collection[str]) -> GatePlan:
    """What a run with these ``jobs``, which submitted sets of the pools ``came``, had to by its ``base``.

    Pools for everyone are in every run. Only a run that has nothing of them counts as one for a pool that
    was named; it has a title of its own, so that it makes no other one green.
    """
    everyone = tuple(pool.name for pool in base.pools if pool.trust == "anyone")
    ran = {job.name for job in jobs} | set(came)
    own = tuple(pool.name for pool in base.pools if pool.trust != "anyone" and pool.name in ran)
    named = bool(own) and ran.isdisjoint(everyone)
    pools = own if named else everyone
    return GatePlan(pools, jobs, named, base.branch, base.cases, base.unknown, base.request)


def jobs_of(api: GitHubApi, run: GateRun) -> tuple[GateJob, ...]:
    """The jobs of the newest attempt at ``run``; raises :class:`ApiError`."""
    home = repository_path(run.repository)
    listed = api.pages(f"{home}/actions/runs/{run.run_id}/jobs", "jobs", filter="latest")
    return tuple(
        GateJob(
            one_line(own_name(each), MOST_NAME),
            one_line(str(each.get("conclusion") or "unfinished"), MOST_NAME),
        )
        for each in listed
    )


def why_absent(plan: GatePlan, pool: str) -> str:
    """Why ``pool`` has no result set, as far as the jobs of the run tell."""
    told = "no result set was submitted"
    own = [job for job in plan.jobs if job.name == pool]
    if own:
        ended = own[-1].conclusion
        return f"{told}: its job ended with {ended}" + (", and submitted none" if ended == SUCCESS else "")
    if not plan.jobs:
        return told
    others = failed_jobs(plan)
    return f"{told}: the run had no job for this pool" + (f", {others}" if others else "")


def failed_jobs(plan: GatePlan) -> str:
    """Which jobs did not end well, in words; empty where all did or were skipped."""
    failed = [f"{job.name} ended with {job.conclusion}" for job in plan.jobs if job.conclusion not in _FINE]
    more = f", and {len(failed) - MOST_JOBS} more" if len(failed) > MOST_JOBS else ""
    return ", ".join(failed[:MOST_JOBS]) + more


_FINE = (SUCCESS, "skipped")
