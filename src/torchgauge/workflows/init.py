"""Write the workflows of a repository from its ``torchgauge.yml``, and never over somebody's own changes.

Beside them stand two files for pip: torchgauge with its hash, and with it everything that it needs. Each file
says in its first lines what wrote it and the digest of what follows. A file whose digest still fits is ours
to renew; any other is a person's, shown as a difference and kept.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import resources
from pathlib import Path

import jinja2

from torchgauge.errors import UsageError
from torchgauge.results.atomic_file import storage_errors, write_atomically
from torchgauge.workflows.action_pins import uses
from torchgauge.workflows.config import Config

WORKFLOWS = ("nightly", "pr-gate", "pr-comment", "dashboard")
FOLDER = Path(".github", "workflows")
ALONE, LOCKED = Path(".github", "torchgauge.txt"), Path(".github", "torchgauge-locked.txt")
"""What pip installs: torchgauge itself where another package brings the rest, and both."""
_PROJECT = re.compile(r"^\s*\[(project|build-system)\]", re.MULTILINE)
"""A table that makes of a ``pyproject.toml`` something that pip installs."""
_DIGEST = re.compile(r"# Digest of what follows: ([0-9a-f]{16})\n")


class Change(str, Enum):
    """What writing a file does to what is there."""

    NEW = "new"
    SAME = "same"
    RENEWED = "renewed"
    EDITED = "edited"


@dataclass(frozen=True)
class WorkflowFile:
    """A workflow as it would be written, and how it differs from what is there (unified, empty for new)."""

    path: Path
    text: str
    change: Change
    difference: str


def workflow_files(
    config: Config, folder: Path, config_name: str = "torchgauge.yml", package: str = ""
) -> list[WorkflowFile]:
    """The files of ``config`` for the repository at ``folder``; writes nothing.

    ``package`` is what pip installs as torchgauge, with its hash; empty for what ``config`` says.
    """
    texts = {FOLDER / f"torchgauge-{name}.yml": render(name, config, config_name) for name in WORKFLOWS}
    locked = resources.files("torchgauge.workflows").joinpath("locked.txt").read_text(encoding="ascii")
    texts[ALONE] = _signed(f"{package or config.torchgauge}\n", config_name)
    texts[LOCKED] = _signed(f"-r {ALONE.name}\n{locked}", config_name)
    return [_file(folder / path, text) for path, text in texts.items()]


def write_workflows(files: Sequence[WorkflowFile], *, force: bool = False) -> list[Path]:
    """Write what is new or renewed, and with ``force`` what was edited; returns the paths written.

    Raises :class:`UsageError` with the differences, and writes nothing, where a person changed a file.
    """
    edited = [file for file in files if file.change is Change.EDITED]
    if edited and not force:
        names = ", ".join(str(file.path) for file in edited)
        shown = "\n".join(file.difference for file in edited)
        raise UsageError(
            f"{names}: edited since torchgauge wrote this file, so nothing was written\n{shown}",
            hint="--force to overwrite the edits, or --dry-run to merge by hand",
        )
    written = [file for file in files if file.change is not Change.SAME]
    for file in written:
        with storage_errors(file.path):
            file.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file.path, file.text.encode())
    return [file.path for file in written]


def lacking(config: Config, folder: Path) -> list[str]:
    """Return what the repository at ``folder`` still lacks for its workflows to run."""
    project = folder / "pyproject.toml"
    named = {"gate.policy": config.policy, "campaign.config-file": config.campaign.config_file}
    lacks = [
        f"{path}, required by {key}" for key, path in named.items() if path and not (folder / path).is_file()
    ]
    sides = [pool.name for pool in config.pools if not (pool.base and pool.head)]
    installs = project.is_file() and _PROJECT.search(project.read_text(encoding="utf-8", errors="replace"))
    if sides and not (installs or (folder / "setup.py").is_file()):
        lacks.append(
            f"a project that pip can install: on pool {', '.join(sides)} the pull-request gate installs "
            f"the checkouts ./sides/base and ./sides/head. Try: add {project.name} with [project] or "
            "[build-system], or set base: and head: of the pool to other pip requirements"
        )
    return lacks


def render(name: str, config: Config, config_name: str = "torchgauge.yml", *, here: bool = False) -> str:
    """Return the workflow called ``name`` as text, with the lines that name its writer.

    ``here`` is for torchgauge's own repository, whose workflow installs its own source and has no such lines.
    """
    loader = jinja2.PackageLoader("torchgauge.workflows")
    environment = jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701  YAML, not HTML: every value goes through `quoted`
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        block_start_string="[%",
        block_end_string="%]",
        variable_start_string="[[",
        variable_end_string="]]",
        comment_start_string="[#",
        comment_end_string="#]",
    )
    environment.filters["quoted"] = json.dumps  # a JSON text is a YAML text
    body = environment.get_template(f"{name}.yml").render(
        config=config,
        config_name=config_name,
        uses=uses,
        here=here,
        cron=_cron(config.at, 0),
        watch_cron=_cron(config.expect_by, 5),
        expect_by=config.expect_by,
        anyone=any(pool.trust == "anyone" for pool in config.pools),
        collaborators=any(pool.trust == "collaborators" for pool in config.pools),
    )
    return body if here else _signed(body, config_name)


def _signed(body: str, config_name: str) -> str:
    return (
        f"# Written by `torchgauge ci init` from {config_name}. Edit that file, then run the command again.\n"
        f"# Digest of what follows: {_digest(body)}\n{body}"
    )


def _file(path: Path, text: str) -> WorkflowFile:
    with storage_errors(path):
        there = path.read_text(encoding="utf-8", errors="surrogateescape") if path.is_file() else None
    if there is None:
        return WorkflowFile(path, text, Change.NEW, "")
    if there == text:
        return WorkflowFile(path, text, Change.SAME, "")
    lines = difflib.unified_diff(there.splitlines(), text.splitlines(), str(path), "torchgauge", lineterm="")
    change = Change.RENEWED if _is_ours(there) else Change.EDITED
    return WorkflowFile(path, text, change, "\n".join(lines))


def _is_ours(text: str) -> bool:
    """Whether nobody changed ``text`` since it was written."""
    found = _DIGEST.search(text)
    return found is not None and text[found.end() :] != "" and found[1] == _digest(text[found.end() :])


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode(errors="surrogateescape")).hexdigest()[:16]


def _cron(time_of_day: str, later_minutes: int) -> str:
    """The line of a daily schedule at ``HH:MM``, some minutes later."""
    hour, minute = map(int, time_of_day.split(":"))
    total = (hour * 60 + minute + later_minutes) % (24 * 60)
    return f"{total % 60} {total // 60} * * *"
