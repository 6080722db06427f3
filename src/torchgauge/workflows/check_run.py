"""The check run that mirrors a gate's verdict on the commit that was measured."""

from __future__ import annotations

from typing import Any

from torchgauge.results.comparing.gate_verdict import GateVerdict
from torchgauge.workflows.gate_verdict import CONCLUSIONS, TITLES
from torchgauge.workflows.github_api import GitHubApi, repository_path
from torchgauge.workflows.workflow_event import GateRun

MOST_SUMMARY = 65_000
"""Characters of a summary that are sent; GitHub takes 65,535."""


def put_check_run(
    api: GitHubApi, run: GateRun, name: str, verdict: GateVerdict, *, summary: str, details_url: str
) -> None:
    """Make the check run ``name`` on the head of ``run``, or change the one that an earlier try left.

    Raises :class:`ApiError`.
    """
    home = repository_path(run.repository)
    mine = f"torchgauge:{run.run_id}:{run.attempt}"
    body: dict[str, Any] = {
        "name": name,
        "status": "completed",
        "conclusion": CONCLUSIONS[verdict],
        "external_id": mine,
        "details_url": details_url,
        "output": {"title": TITLES[verdict], "summary": summary[:MOST_SUMMARY]},
    }
    listed = api.pages(f"{home}/commits/{run.head_sha}/check-runs", "check_runs", check_name=name)
    known = next((each["id"] for each in listed if each.get("external_id") == mine), None)
    if known is None:
        api.send("POST", f"{home}/check-runs", {**body, "head_sha": run.head_sha})
    else:
        api.send("PATCH", f"{home}/check-runs/{int(known)}", body)
