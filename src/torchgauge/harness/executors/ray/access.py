"""Who may speak to a cluster, and whether it is there: said without importing Ray, in bounded time."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.processes.kept_process import run
from torchgauge.processes.passed_variables import passed

INSTALL = "pip install 'torchgauge[ray]'"
TOKEN = "RAY_AUTH_TOKEN"
TOKEN_FILE = "RAY_AUTH_TOKEN_PATH"
MODE = "RAY_AUTH_MODE"
GENERATE = "ray get-auth-token --generate makes one; start every node with it and with RAY_AUTH_MODE=token"
IMPORT_S = 60.0
"""Seconds that importing Ray may take on a machine that does other things."""
CONNECT_S = 5.0
"""Seconds that the port of a cluster's head may take to accept a connection."""


@dataclass(frozen=True)
class Access:
    """Where a cluster is, and how it is spoken to.

    ``authentication`` is ``token``, or ``none`` where a person says that the cluster has none. ``answer_s``
    are the seconds within which its head must answer.
    """

    address: str
    authentication: str
    answer_s: float


def require_access(access: Access) -> None:
    """Raise where Ray is not installed, no token is to be found or nothing listens at the address.

    Raises :class:`UsageError` and :class:`InfrastructureError`.
    """
    if importlib.util.find_spec("ray") is None:
        raise InfrastructureError("executor 'ray' needs the package ray", hint=INSTALL)
    if access.authentication not in {"token", "none"}:
        raise UsageError(
            f"executor option authentication={access.authentication!r}", hint="it is token or none"
        )
    host, _, port = access.address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        raise UsageError(
            f"executor option address={access.address!r} is not an address of a cluster's head",
            hint="address=HOST:PORT, as `ray start --head` says; or the variable RAY_ADDRESS",
        )
    if access.authentication == "token" and not _has_token():
        raise InfrastructureError(
            f"no token for the Ray cluster at {access.address}: {TOKEN}, {TOKEN_FILE} and ~/.ray/auth_token "
            "name none",
            hint=GENERATE,
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except OSError as error:
        raise InfrastructureError(
            f"no Ray cluster answers at {access.address}: {error.strerror or error}",
            hint="ray status, on the head, says whether it runs",
        ) from error


def ray_environment(access: Access) -> dict[str, str]:
    """The variables of a process of ours that speaks to the cluster; nothing that measures gets the token."""
    found = passed(declared=("RAY_*",))
    found |= {name: os.environ[name] for name in (TOKEN, TOKEN_FILE) if name in os.environ}
    found[MODE] = "token" if access.authentication == "token" else "disabled"
    patience = {"RAY_gcs_rpc_server_connect_timeout_s": str(math.ceil(access.answer_s))}
    return {**found, **patience}


def cluster(access: Access, *asked: str) -> dict[str, Any]:
    """What ``cluster_facts`` says of the cluster; ``asked`` are its words.

    Raises :class:`InfrastructureError` with the reason, also where it does not answer in time.
    """
    command = [sys.executable, "-m", "torchgauge.harness.executors.ray.cluster_facts"]
    patience_s = 3 * access.answer_s + IMPORT_S
    silent = InfrastructureError(
        f"the Ray cluster at {access.address} has not answered for {3 * access.answer_s:g} s",
        hint="ray status, on the head, says whether it runs",
    )
    try:
        done = run(
            [*command, access.address, access.authentication, str(access.answer_s), *asked],
            ray_environment(access),
            timeout=patience_s,
        )
    except subprocess.TimeoutExpired:
        raise silent from None
    if done.returncode == -signal.SIGALRM:
        raise silent
    found = _last_line(done.stdout)
    if found is None:
        said = " ".join(done.stderr.split())[-500:] or f"exit status {done.returncode}"
        raise InfrastructureError(f"the Ray cluster at {access.address} cannot be asked: {said}")
    if "refused" in found:
        raise InfrastructureError(found["refused"], hint=found.get("hint", ""))
    return found


def _last_line(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text.splitlines()[-1])
    except (IndexError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _has_token(environ: Mapping[str, str] = os.environ) -> bool:
    if environ.get(TOKEN):
        return True
    path = Path(environ[TOKEN_FILE]) if environ.get(TOKEN_FILE) else Path.home() / ".ray" / "auth_token"
    try:
        return bool(path.read_text(encoding="utf-8").strip())
    except (OSError, ValueError):
        return False
