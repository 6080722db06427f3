"""What the file of an event says of the run that ended: the only thing that the comment job believes of it.

The runner writes this file, not the run that ended. What stands in an artifact of that run is compared with
it and never takes its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchgauge.errors import DataFileError
from torchgauge.workflows.github_api import is_repository, is_sha

MOST_BYTES = 32 * 1024 * 1024
SUCCESS = "success"
"""The one conclusion of a run after which its verdict may be a pass."""
NO_RUN = {
    "skipped": "every job of the run was skipped",
    "action_required": "the run waits for approval",
}
"""Conclusions of a run that measured nothing and was not to; any other is told of."""


class SkippedError(Exception):
    """There is nothing to do for this event; says why, for the summary of the step."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class GateRun:
    """A run of the untrusted workflow that has ended, as GitHub itself describes it."""

    repository: str
    run_id: int
    attempt: int
    head_sha: str
    head_branch: str
    head_repository: str
    conclusion: str
    default_branch: str = "main"


def read_event(path: Path | str) -> dict[str, Any]:
    """The event in the file ``path``; raises :class:`DataFileError`."""
    where = str(path)
    hint = 'pass --event "$GITHUB_EVENT_PATH"'
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise DataFileError(where, f"cannot be read: {error.strerror or error}", hint=hint) from error
    if len(data) > MOST_BYTES:
        raise DataFileError(where, f"has more than {MOST_BYTES:,} bytes", hint=hint)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataFileError(where, f"is not JSON: {error}", hint=hint) from error
    if not isinstance(found, dict):
        raise DataFileError(where, "is not a JSON object", hint=hint)
    return found


def gate_run(event: Mapping[str, Any], repository: str, workflow_path: str, workflow_name: str) -> GateRun:
    """The run that ``event`` tells of.

    Raises :class:`SkippedError` where it is not an ended run of the workflow ``workflow_path``, called
    ``workflow_name``, for a pull request: a pull request may add another workflow with the same name. Raises
    :class:`DataFileError` for an event of another form.
    """
    run = event.get("workflow_run")
    if not isinstance(run, dict):
        raise DataFileError(
            "the event",
            "does not contain a workflow run",
            hint="run this step in a workflow `on: workflow_run`",
        )
    if event.get("action") != "completed" or run.get("status") not in ("completed", None):
        raise SkippedError("the run has not ended")
    if run.get("event") != "pull_request":
        raise SkippedError("the run was not for a pull request")
    path = str(run.get("path", "")).partition("@")[0]
    if path != workflow_path or run.get("name") != workflow_name:
        raise SkippedError("the run's workflow file or name differs from the gate's")
    conclusion = _text(run, "conclusion")
    if conclusion in NO_RUN:
        raise SkippedError(NO_RUN[conclusion])
    found = GateRun(
        repository=_text(event, "repository", "full_name"),
        run_id=_number(run, "id"),
        attempt=_number(run, "run_attempt"),
        head_sha=_text(run, "head_sha"),
        head_branch=_text(run, "head_branch"),
        head_repository=_text(run, "head_repository", "full_name"),
        conclusion=conclusion,
        default_branch=_text(event, "repository", "default_branch"),
    )
    if found.repository.lower() != repository.lower():
        raise SkippedError("the run belongs to another repository")
    if not is_sha(found.head_sha) or not all(map(is_repository, (found.repository, found.head_repository))):
        raise DataFileError("the event", "does not contain the commit or the repository of the head")
    return found


def _text(data: Mapping[str, Any], *names: str) -> str:
    value: Any = data
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(value, str) or not value:
        raise DataFileError("the event", "is missing or is not text", field=".".join(names))
    return value


def _number(data: Mapping[str, Any], name: str) -> int:
    value = data.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise DataFileError("the event", "is not a positive number", field=name)
    return value
