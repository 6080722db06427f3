"""Reports in the form of PyTorch's cross-repository CI relay (CRCR), for devices that live out of its tree.

PyTorch's relay sends a ``repository_dispatch`` to an allow-listed repository and takes back one callback when
the job begins and one when it has ended. A callback is the dispatched payload with ``workflow`` beside it,
sent with an OIDC token of the job for the audience ``pytorch-cross-repo-ci-relay``. HTTP 4xx means that we
sent something wrong and is red; 5xx or no answer is the relay's trouble and is not.

Sources: pytorch/rfcs 90 (RFC-0050, Cross-Repository CI Relay for PyTorch Out-of-Tree Backends) and 98
(RFC-0056, nightly and periodic runs, which report themselves once);
pytorch/test-infra, ``aws/lambda/cross_repo_ci_relay/README.md`` and ``callback/callback_handler.py``, and
``.github/actions/cross-repo-ci-relay-callback`` (schema version 1), read in 2026.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, build_opener

from torchgauge.clock import SYSTEM_CLOCK, utc
from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.records import INCOMPLETE, Status
from torchgauge.results.hostile_text import first_line
from torchgauge.results.reports.run_report import RunReport
from torchgauge.workflows.github_api import is_sha

AUDIENCE = "pytorch-cross-repo-ci-relay"
SCHEMA_VERSION = "1"
STATUSES = ("in_progress", "completed")
SELF_REPORTED = ("nightly", "periodic")
"""Runs that no dispatch started: they name the upstream commit themselves, once they are completed."""
EXAMPLE = {
    "GITHUB_RUN_ID": "1",
    "GITHUB_REPOSITORY": "OWNER/NAME",
    "GITHUB_WORKFLOW": "WORKFLOW",
    "GITHUB_JOB": "JOB",
}
"""What stands in a callback that is only tried, outside of a forge."""
EXAMPLE_PAYLOAD = {
    "event_type": "pull_request",
    "delivery_id": "DELIVERY",
    "payload": {"pull_request": {"number": 1, "head": {"sha": "0" * 40}}},
}
"""What the relay sends, as an example."""
ATTEMPTS = 4
TIMEOUT_S = 10.0
MOST_ANSWER = 65_536
_LOCAL = ("127.0.0.1", "localhost", "::1")


class RelayRefusedError(UsageError):
    """The relay says that the callback is wrong (HTTP 4xx)."""

    exit_code = 1


@dataclass(frozen=True)
class RelayJob:
    """The job that reports; ``name`` must tell the legs of a matrix apart."""

    workflow: str
    url: str
    run_id: str
    attempt: str
    name: str
    check_run_id: str = ""

    @classmethod
    def from_environment(cls, name: str, check_run_id: str = "", *, tried: bool = False) -> RelayJob:
        """The job that the runner's variables describe; raises :class:`UsageError` outside a workflow.

        Where it is only ``tried`` (nothing is sent), the variables that are missing stand as examples.
        """
        names = {**(EXAMPLE if tried else {}), **os.environ}
        run, home = names.get("GITHUB_RUN_ID", ""), names.get("GITHUB_REPOSITORY", "")
        if not run or not home:
            raise UsageError(
                "this is not a job of a workflow", hint="run this command in a workflow, or with --dry-run"
            )
        server = names.get("GITHUB_SERVER_URL", "https://github.com")
        return cls(
            workflow=names.get("GITHUB_WORKFLOW", ""),
            url=f"{server}/{home}/actions/runs/{run}",
            run_id=run,
            attempt=names.get("GITHUB_RUN_ATTEMPT", "1"),
            name=name or names.get("GITHUB_JOB", ""),
            check_run_id=check_run_id,
        )


@dataclass(frozen=True)
class Told:
    """What is reported; ``counts`` has passed, failed and skipped cases, None where nothing was counted."""

    status: str
    conclusion: str = ""
    counts: Mapping[str, int] | None = None
    artifact_url: str = ""


def told_of(report: RunReport) -> Told:
    """What a finished run says: success only where everything was measured and ended as expected.

    A pass that is none of what was asked for, or that nothing checked, is told as skipped. Where nothing else
    is left, it is no success.
    """
    failed = len(report.unexpected)
    unmeasured = sum(each.status in INCOMPLETE for each in report.cases if not each.unexpected)
    unmeasured += len(report.not_run)
    skipped = sum(
        each.status in (Status.SKIPPED, Status.UNSUPPORTED) for each in report.cases if not each.unexpected
    )
    skipped += sum(
        each.status is Status.PASS and not each.counted for each in report.cases if not each.unexpected
    )
    passed = len(report.cases) + len(report.not_run) - failed - unmeasured - skipped
    fine = failed == 0 and not report.incomplete and passed > 0
    counts = {"passed": passed, "failed": failed, "skipped": skipped + unmeasured}
    return Told("completed", "success" if fine else "failure", counts)


def all_told(told: Sequence[Told]) -> Told:
    """What several finished runs say together: success only where each of them does."""
    counts: Counter[str] = Counter()
    for each in told:
        counts.update(each.counts or {})
    fine = bool(told) and all(each.conclusion == "success" for each in told)
    listed = {name: counts[name] for name in ("passed", "failed", "skipped")}
    return Told("completed", "success" if fine else "failure", listed)


def dispatched(event: Mapping[str, Any]) -> dict[str, Any]:
    """The payload that the relay sent, from the event of a ``repository_dispatch``.

    Raises :class:`UsageError` where the event has none.
    """
    payload = event.get("client_payload")
    if not isinstance(payload, dict) or not payload.get("delivery_id") or "payload" not in payload:
        raise UsageError(
            "the event has no client_payload from the relay",
            hint="start the workflow `on: repository_dispatch`; for a nightly run, pass --upstream-sha",
        )
    return payload


def self_reported(event_type: str, upstream_sha: str) -> dict[str, Any]:
    """The payload of a run that no dispatch started, for the upstream commit that it tested.

    Raises :class:`UsageError` for another kind of run or what is no commit.
    """
    if event_type not in SELF_REPORTED:
        raise UsageError(f"{event_type!r} runs must be started by the relay", hint=" or ".join(SELF_REPORTED))
    if not is_sha(upstream_sha):
        raise UsageError(f"{upstream_sha!r} is not a commit id", hint="--upstream-sha with all 40 digits")
    upstream = {"repository": {"full_name": "pytorch/pytorch"}, "head_sha": upstream_sha}
    return {"event_type": event_type, "delivery_id": upstream_sha, "payload": upstream}


def callback(payload: Mapping[str, Any], job: RelayJob, told: Told) -> dict[str, Any]:
    """The body of one callback; raises :class:`UsageError` for what the relay would refuse."""
    if told.status not in STATUSES:
        raise UsageError(f"{told.status!r} is not a status of the relay", hint=" or ".join(STATUSES))
    ended = told.status == "completed"
    if ended and not told.conclusion:
        raise UsageError("a completed job needs a conclusion", hint="success, failure or cancelled")
    if not ended and payload.get("event_type") in SELF_REPORTED:
        raise UsageError("nightly and periodic runs cannot report in_progress, only completed")
    if not job.workflow or not job.name:
        raise UsageError(
            "the workflow or the job has no name", hint="pass --job-name, for example bench-POOL"
        )
    now = f"{utc(SYSTEM_CLOCK.now()):%Y-%m-%dT%H:%M:%SZ}"
    workflow: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "status": told.status,
        "conclusion": told.conclusion if ended else None,
        "name": job.workflow,
        "url": job.url,
        "run_id": job.run_id,
        "run_attempt": job.attempt,
        "job_name": job.name,
        "check_run_id": job.check_run_id or f"{job.run_id}-{job.attempt}",
        "started_at": None if ended else now,
        "completed_at": now if ended else None,
    }
    if told.counts is not None:
        workflow["test_results"] = dict(told.counts)
    if told.artifact_url:
        workflow["artifact_url"] = told.artifact_url
    return {**payload, "workflow": workflow}


def oidc_token() -> str:
    """A token that proves whose job this is; raises :class:`UsageError` where the job may not have one."""
    url = os.environ.get("ACTIONS_ID_TOKEN_REQUEST_URL")
    secret = os.environ.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
    if not url or not secret:
        raise UsageError(
            "the job cannot request an OIDC token", hint="set `permissions: {id-token: write}` of the job"
        )
    joined = f"{url}{'&' if '?' in url else '?'}audience={quote(AUDIENCE)}"
    status, answer = _exchange(joined, secret, None, time.sleep)
    try:
        found = json.loads(answer)
        token = found["value"] if isinstance(found, dict) else ""
    except (ValueError, KeyError):
        token = ""
    if status != 200 or not isinstance(token, str) or not token:
        raise InfrastructureError(
            f"GitHub returned no OIDC token (HTTP {status})",
            hint="run the job again; GitHub may have an outage",
        )
    return token


def send(url: str, token: str, body: Mapping[str, Any], sleep: Callable[[float], None] = time.sleep) -> str:
    """Send one callback; empty, or what the relay's trouble is where it could not take it.

    Raises :class:`RelayRefusedError` where the relay says that the callback is wrong.
    """
    status, answer = _exchange(url, token, json.dumps(body, allow_nan=False).encode(), sleep)
    if 200 <= status < 300:
        return ""
    said = first_line(answer.decode(errors="replace"))
    if 400 <= status < 500 and status != 429:
        raise RelayRefusedError(
            f"the relay refused the callback: HTTP {status}{': ' + said if said else ''}",
            hint="report in_progress once, then completed once; the repository needs CRCR level L2 or higher",
        )
    return f"the relay did not accept the callback (HTTP {status or 'none'}){': ' + said if said else ''}"


def _exchange(url: str, token: str, data: bytes | None, sleep: Callable[[float], None]) -> tuple[int, bytes]:
    """Status and body of one request; status 0 where nothing answers.

    A callback that may have arrived is not sent again: the relay refuses a second one.
    """
    found = urlsplit(url)
    if found.scheme != "https" and not (found.scheme == "http" and found.hostname in _LOCAL):
        raise UsageError(f"{url[:80]!r}: a token is sent only over https", hint="https://...")
    status, answer = 0, b""
    for attempt in range(ATTEMPTS):
        request = Request(url, data=data)  # noqa: S310  https or this machine, see above
        request.add_header("Accept", "application/json")
        request.add_header("User-Agent", "torchgauge")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        request.add_unredirected_header("Authorization", f"Bearer {token}")
        try:
            with build_opener().open(request, timeout=TIMEOUT_S) as reply:
                return int(reply.status), reply.read(MOST_ANSWER)
        except HTTPError as error:
            with error:
                status, answer = error.code, error.read(MOST_ANSWER)
            again = status in (429, 503) or (status >= 500 and data is None)
        except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
            refused = isinstance(error, URLError) and isinstance(error.reason, ConnectionRefusedError)
            status, answer, again = 0, b"", refused or data is None
        if not again:
            break
        if attempt + 1 < ATTEMPTS:
            sleep(2.0**attempt)
    return status, answer
