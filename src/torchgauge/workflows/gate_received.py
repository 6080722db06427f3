"""What a run of the gate submitted, against what it had to: what is missing is never a pass."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchgauge.results.comparing.gate_verdict import GateVerdict, worst
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.reports.report import ComparisonReport
from torchgauge.workflows.gate_base import GateBase
from torchgauge.workflows.gate_plan import GatePlan, failed_jobs, gate_plan, jobs_of, why_absent
from torchgauge.workflows.gate_set import ARTIFACT_PREFIX, POOL, GateSet, Origin, read_gate_set
from torchgauge.workflows.github_api import GitHubApi, repository_path
from torchgauge.workflows.ingest.refusal import RefusedSetError
from torchgauge.workflows.workflow_event import SUCCESS, GateRun

MOST_PACKED = 32 * 1024 * 1024
"""Bytes of a packed artifact that is downloaded at all."""
_BATCH = re.compile(r":b\d+:")
UNPLANNED = "this pool is not in the plan of the run, so its result set was ignored"


@dataclass(frozen=True)
class Received:
    """What one pool submitted: its set, or in ``trouble`` why there is none.

    ``missing`` are planned cases of which the set says nothing, ``planned`` counts all of them.
    """

    pool: str
    found: GateSet | None
    trouble: str = ""
    missing: tuple[str, ...] = ()
    planned: int = 0

    @property
    def verdict(self) -> GateVerdict:
        """The set's verdict, no better than incomplete where a case, or all of it, is missing."""
        beside = [GateVerdict.INCOMPLETE] if self.missing or self.found is None else []
        return worst([*([self.found.verdict] if self.found else []), *beside])


@dataclass(frozen=True)
class Gathered:
    """Everything of one run: an entry for each pool that it had to submit, then what nobody planned."""

    run: GateRun
    plan: GatePlan
    received: tuple[Received, ...]

    @property
    def trouble(self) -> str:
        """What is wrong with the run as a whole; empty where it ended well."""
        if self.run.conclusion == SUCCESS:
            return ""
        jobs = failed_jobs(self.plan)
        return f"the run ended with {self.run.conclusion}" + (f": {jobs}" if jobs else "")

    @property
    def verdict(self) -> GateVerdict:
        """The worst of all pools; no better than incomplete where the run did not end well."""
        beside = [GateVerdict.INCOMPLETE] if self.trouble or self.plan.unknown else []
        return worst([*(each.verdict for each in self.received), *beside])


def fetch(api: GitHubApi, run: GateRun, base: GateBase, policy: Policy | None = None) -> Gathered:
    """What ``run`` submitted, from the API, against what its ``base`` asks for.

    With ``policy``, that of the base, verdicts gate as it says: a pull request may have brought another one.
    Raises :class:`ApiError`.
    """
    listed = _listed(api, run)
    plan = gate_plan(base, jobs_of(api, run), listed)
    with tempfile.TemporaryDirectory() as folder:
        _download(api, run, plan, listed, Path(folder))
        return gather(Path(folder), run, plan, policy)


def gather(folder: Path, run: GateRun, plan: GatePlan, policy: Policy | None = None) -> Gathered:
    """What lies in ``folder``: one zip or one folder for each artifact, named after it, each looked at.

    Other artifacts of the run are passed over: a gate may keep logs beside its sets.
    """
    there = artifacts_of(folder)
    planned = [_planned(pool, there.get(pool, []), run, plan, policy) for pool in plan.pools]
    others = [Received(pool, None, UNPLANNED) for pool in there if pool not in plan.pools]
    return Gathered(run, plan, (*planned, *others))


def artifacts_of(folder: Path) -> dict[str, list[Path]]:
    """Pool to what lies in ``folder`` under the name of its artifact."""
    names: dict[str, list[Path]] = {}
    for each in sorted(folder.iterdir()) if folder.is_dir() else []:
        name = each.name.removesuffix(".zip")
        if name.startswith(ARTIFACT_PREFIX):
            names.setdefault(name.removeprefix(ARTIFACT_PREFIX), []).append(each)
    return names


def _listed(api: GitHubApi, run: GateRun) -> dict[str, dict[str, Any]]:
    """Pool to its artifact as the API lists it; of two with one name, of two attempts, the later one."""
    path = f"{repository_path(run.repository)}/actions/runs/{run.run_id}/artifacts"
    return {
        str(each["name"]).removeprefix(ARTIFACT_PREFIX): each
        for each in sorted(api.pages(path, "artifacts"), key=lambda found: int(found["id"]))
        if str(each.get("name", "")).startswith(ARTIFACT_PREFIX)
    }


def _download(
    api: GitHubApi, run: GateRun, plan: GatePlan, listed: Mapping[str, dict[str, Any]], folder: Path
) -> None:
    """Fetch the zips of planned pools into ``folder``; what is not fetched is an empty file, and is said."""
    home = repository_path(run.repository)
    for number, (pool, each) in enumerate(listed.items()):
        named = pool if POOL.fullmatch(pool) else f"{number}-not-a-pool"
        size = each.get("size_in_bytes")
        small = isinstance(size, int) and 0 < size <= MOST_PACKED and not each.get("expired")
        wanted = small and pool in plan.pools
        data = api.download(f"{home}/actions/artifacts/{int(each['id'])}/zip", MOST_PACKED) if wanted else b""
        (folder / f"{ARTIFACT_PREFIX}{named}.zip").write_bytes(data)


def _planned(
    pool: str, paths: Sequence[Path], run: GateRun, plan: GatePlan, policy: Policy | None
) -> Received:
    if not paths:
        return Received(pool, None, why_absent(plan, pool))
    if len(paths) > 1:
        return Received(pool, None, "two artifacts have the name of this pool")
    origin = Origin(run.repository, run.head_sha, run.run_id, run.attempt)
    try:
        found = read_gate_set(paths[0], origin, pool, policy)
    except RefusedSetError as error:
        return Received(pool, None, f"the result set was rejected ({error.reason.value}): {error.detail}")
    planned = plan.cases.get(pool, ())
    missing = () if found.manifest.trouble else left_out(planned, found.report)
    return Received(pool, found, missing=missing, planned=len(planned))


def left_out(planned: Sequence[str], report: ComparisonReport) -> tuple[str, ...]:
    """The cases of ``planned`` of which ``report`` has neither a verdict nor that they did not run.

    Whatever their batch is: a pull request may give a model another one.
    """
    told = {case for each in report.judged for case in (each.base_case, each.head_case)}
    told |= {pair.partition(" against ")[0] for pair in report.not_run}
    known = {_BATCH.sub(":", case) for case in told}
    return tuple(case for case in planned if _BATCH.sub(":", case) not in known)
