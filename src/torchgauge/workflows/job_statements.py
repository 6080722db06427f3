"""Which job made which result set, as the Git host says: each job states its set on its own page.

The name of an artifact is chosen by the job that uploads it, and any job may upload under any name. What
a job writes into its log is its own, though: a notice becomes an annotation of its check run, which no
other job can write without a token for that. So a set is a job's where that job's page names its digest.

Source: docs.github.com, "REST API endpoints for workflow jobs" (a job's id is that of its check run) and "for
check runs" (annotations).
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from torchgauge.errors import UsageError
from torchgauge.workflows.github_api import GitHubApi, own_name, repository_path
from torchgauge.workflows.github_files import annotate, in_actions
from torchgauge.workflows.plain_text import one_line

MOST_CONCLUSION = 60
"""Characters of what the Git host calls the end of a job."""
TITLE = "torchgauge result set"
_STATED = re.compile(r"sha256:([0-9a-f]{64})")

Stated = Mapping[tuple[str, int], frozenset[str]]
"""The digests that a job stated, by its name (without those of calling workflows) and its attempt."""


@dataclass(frozen=True)
class WorkflowRun:
    """A run of a workflow, as its own steps know it."""

    repository: str
    run_id: int

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> WorkflowRun:
        """The run that this step is of; raises :class:`UsageError` outside GitHub Actions."""
        names = os.environ if environment is None else environment
        run = names.get("GITHUB_RUN_ID", "")
        if not run.isdecimal() or not names.get("GITHUB_REPOSITORY"):
            raise UsageError(
                "GITHUB_RUN_ID and GITHUB_REPOSITORY are not set: this is not a step of a workflow",
                hint="leave out --ask-github",
            )
        return cls(names["GITHUB_REPOSITORY"], int(run))


def state_digest(digest: str) -> None:
    """Let a job of a workflow state on its page that it made the file with the SHA-256 ``digest``."""
    if in_actions():
        annotate("notice", f"sha256:{digest}", title=TITLE)


def job_name(pool: str, shard: int, of: int) -> str:
    """What the workflows call the job of a shard, behind the names of the workflows that call it."""
    return f"{pool} {shard} of {of}"


def stated_answers(stated: Stated, pool: str) -> frozenset[str]:
    """The digests that the jobs ``confirm POOL LEG`` stated, which measured suspicions of ``pool`` again."""
    name = re.compile(rf"confirm {re.escape(pool)} \d+")
    return frozenset().union(*(said for (job, _), said in stated.items() if name.fullmatch(job)))


def ended_jobs(api: GitHubApi, run: WorkflowRun) -> tuple[tuple[str, str], ...]:
    """Name and conclusion of each job of ``run``, in its newest attempt; raises :class:`ApiError`."""
    newest: dict[str, tuple[int, str]] = {}
    home = repository_path(run.repository)
    for job in api.pages(f"{home}/actions/runs/{run.run_id}/jobs", "jobs", filter="all"):
        attempt, name = job.get("run_attempt"), own_name(job)
        if isinstance(attempt, int) and attempt >= newest.get(name, (0, ""))[0]:
            newest[name] = attempt, one_line(str(job.get("conclusion") or "unfinished"))[:MOST_CONCLUSION]
    return tuple((name, ended) for name, (_, ended) in sorted(newest.items()))


def asked_ends() -> tuple[tuple[str, str], ...]:
    """How the jobs of the run ended that this step is of, as :func:`ended_jobs`."""
    return ended_jobs(GitHubApi.from_environment(), WorkflowRun.from_environment())


def asked_sets() -> Stated:
    """What the jobs of the run stated that this step is of, by the API and the environment of the step."""
    return stated_sets(GitHubApi.from_environment(), WorkflowRun.from_environment())


def stated_sets(api: GitHubApi, run: WorkflowRun) -> Stated:
    """What each job of ``run`` stated, in all attempts; raises :class:`ApiError` where the API fails."""
    home = repository_path(run.repository)
    found: dict[tuple[str, int], set[str]] = defaultdict(set)
    for job in api.pages(f"{home}/actions/runs/{run.run_id}/jobs", "jobs", filter="all"):
        number, attempt = job.get("id"), job.get("run_attempt")
        if not isinstance(number, int) or not isinstance(attempt, int):
            continue
        name = own_name(job)
        for said in api.pages(f"{home}/check-runs/{number}/annotations"):
            stated = _STATED.fullmatch(str(said.get("message", "")))
            if said.get("title") == TITLE and stated:
                found[name, attempt].add(stated[1])
    return {job: frozenset(digests) for job, digests in found.items()}
