"""What the base of a pull request asks of it: its torchgauge.yml says so, never the run of the pull request.

The file of the default branch lies in the checkout of the job that comments. That of any other base is asked
of the API, at the commit of the base. A check run stands on the commit of the head, which may be offered to
another branch tomorrow, so a base that is not the default one has a check and a comment of its own name.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from torchgauge.errors import TorchgaugeError
from torchgauge.records import digest
from torchgauge.workflows.config import Config, Pool, parse_config, read_config
from torchgauge.workflows.github_api import ApiError, GitHubApi, repository_path
from torchgauge.workflows.planning import devices_of, select_cases
from torchgauge.workflows.pull_request import PullRequest, pull_request_of
from torchgauge.workflows.workflow_event import GateRun, SkippedError

NOT_FOUND = 404
MOST_BRANCH = 60
"""Characters of a branch that are shown as they are."""
_UNSHOWN = re.compile(r"[^A-Za-z0-9._/-]|-(?=-)")


@dataclass(frozen=True)
class GateBase:
    """The pools and, by pool, the ids of the cases that a run of the gate had to compare.

    ``branch`` is empty for the default branch. ``unknown`` says why the cases are not known. ``request`` is
    the pull request, None where nobody was asked for one.
    """

    pools: tuple[Pool, ...] = ()
    branch: str = ""
    cases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: str = ""
    request: PullRequest | None = None


def base_of(api: GitHubApi | None, run: GateRun, file: Path, path: str) -> GateBase:
    """What the base of the pull request of ``run`` asks for; ``path`` is where its repository has the file.

    ``file`` is that of the default branch, which counts where nobody is asked or there is no pull request.
    Raises :class:`ApiError`, and :class:`DataFileError` for a mistake in ``file``.
    """
    request = None
    if api is not None:
        try:
            request = pull_request_of(api, run)
        except SkippedError:  # then there is nothing to write to, and nobody to mislead
            request = None
    if api is None or request is None or request.base_branch == run.default_branch:
        return replace(asked_by(read_config(file)), request=request)
    branch = shown_branch(request.base_branch)
    try:
        config = parse_config(_file(api, run, request, path), f"{path} of {branch}")
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise
        return GateBase(branch=branch, unknown=f"{branch} has no {path}", request=request)
    except TorchgaugeError as error:
        return GateBase(branch=branch, unknown=error.message, request=request)
    return replace(asked_by(config), branch=branch, request=request)


def asked_by(config: Config) -> GateBase:
    """The pools of ``config`` with the cases that it selects on each."""
    # Which device it is, its machine knows; here it is a name that cases end in.
    devices = devices_of((replace(pool, found_by_probe=True) for pool in config.pools), ask_torch=False)
    try:
        work = select_cases(config.campaign, devices)
    except TorchgaugeError as error:
        return GateBase(config.pools, unknown=error.message)
    by_device = {
        name: tuple(each.case.id for group in groups for each in group.cases)
        for name, groups in work.groups.items()
    }
    return GateBase(config.pools, cases={pool.name: by_device[pool.device] for pool in config.pools})


def shown_branch(branch: str) -> str:
    """``branch`` as a part of the name of a check: two branches never have one."""
    shown = _UNSHOWN.sub("_", branch)[:MOST_BRANCH]
    return shown if shown == branch else f"{shown}_{digest(branch)[:8]}"


def _file(api: GitHubApi, run: GateRun, request: PullRequest, path: str) -> str:
    said = api.get(f"{repository_path(run.repository)}/contents/{quote(path)}", ref=request.base_sha)
    content = said.get("content") if isinstance(said, dict) else None
    try:
        return base64.b64decode(str(content or "")).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ApiError(f"{path} of the base branch is not text", hint="check the file there") from error
