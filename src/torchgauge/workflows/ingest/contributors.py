"""``contributors.yml``: who, other than our own jobs, may write results of which pools.

It lies at the top of the history, where its owners review it; a job that hands a history on never changes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from torchgauge.errors import UnknownNameError
from torchgauge.suites.document import Document, read_document
from torchgauge.suites.schema import convert, refuse
from torchgauge.workflows.attestation import WORKFLOW
from torchgauge.workflows.set_signature import KEY

CONTRIBUTORS = "contributors.yml"
"""Its name in a store."""
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,59}$")]

Key = Annotated[str, msgspec.Meta(pattern=f"^{KEY.pattern}$")]
Workflow = Annotated[str, msgspec.Meta(pattern=f"^{WORKFLOW.pattern}$")]
ROWS_PER_DAY = 50_000
"""Rows that a contributor may submit within a day: twice the largest planned night of one shard and more."""


class Contributor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An owner of machines: the pools that they may write, and where they can be asked.

    ``attested_by`` maps each pool to the workflow that attests its sets and no other pool's.
    """

    name: Name
    pools: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)]
    contact: Annotated[str, msgspec.Meta(min_length=3, max_length=200)]
    keys: tuple[Key, ...] = ()
    attested_by: dict[Name, Workflow] = {}
    rows_per_day: Annotated[int, msgspec.Meta(ge=1)] = ROWS_PER_DAY


class ContributorFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    version: Literal[1]
    contributors: tuple[Contributor, ...]


def read_contributors(path: Path | str) -> dict[str, Contributor]:
    """Name to contributor; raises :class:`DataFileError` with the line of a mistake."""
    document = read_document(Path(path))
    found: dict[str, Contributor] = {}
    for index, contributor in enumerate(convert(document, ContributorFile).contributors):
        if contributor.name in found:
            at = f"$.contributors[{index}].name"
            raise refuse(document, at, f"{contributor.name!r} is listed twice", "keep one, with all pools")
        _check_workflows(document, index, contributor)
        found[contributor.name] = contributor
    return found


def _check_workflows(document: Document, index: int, contributor: Contributor) -> None:
    """Raise where a workflow's attestation would not say of which pool it is."""
    workflows = contributor.attested_by
    at = f"$.contributors[{index}].attested_by"
    if workflows and set(workflows) != set(contributor.pools):
        raise refuse(document, at, "names other pools than `pools`", "a workflow for each pool, or for none")
    if len({each.lower() for each in workflows.values()}) < len(workflows):
        hint = "a workflow file for each pool: its jobs could attest the other pool's sets"
        raise refuse(document, at, "names one workflow for two pools", hint)


def contributor_named(path: Path | str, name: str) -> Contributor:
    """The contributor called ``name``; raises :class:`UnknownNameError`."""
    found = read_contributors(path)
    if name not in found:
        hint = f"a maintainer adds an entry to {path}"
        raise UnknownNameError("contributor", name, found, hint=hint)
    return found[name]
