"""What the gate of a pull request hands from the job without secrets to the job that comments.

::

    manifest.json     whose it is (pool, commit, run), how it ended, and the hash and size of the report
    report.json       every verdict, as ``torchgauge report --format json`` has it

Launches and steps stay behind: they are most of an A/B run, and nobody who comments reads them. What was
measured is self-reported either way; the headline and the counts are made again from the verdicts, so that a
set cannot call itself better than the numbers in it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torchgauge.clock import LATEST
from torchgauge.processes.known_secrets import known_secrets
from torchgauge.records import digest, from_plain, to_plain
from torchgauge.records.comparison import CodeSource, MetricVerdict
from torchgauge.results.atomic_file import storage_errors
from torchgauge.results.comparing.gate import under
from torchgauge.results.comparing.gate_verdict import GATE_VERDICTS, GateVerdict, Headline, headline
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.journal import RunState
from torchgauge.results.reports.report import (
    VERSION,
    ComparisonReport,
    Counts,
    SideFacts,
    count,
)
from torchgauge.results.run_id import is_run_id
from torchgauge.workflows.github_api import is_sha
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.plain_text import plain_values
from torchgauge.workflows.result_set import MANIFEST, FileStamp, new_folder, seal

GATE_SET_SCHEMA = "pr-gate-v1"
ARTIFACT_PREFIX = f"{GATE_SET_SCHEMA}-"
"""Artifacts of the gate are called by this and their pool."""
REPORT = "report.json"
MOST_PAIRS = 5_000
MOST_VERDICTS = 10_000
"""Eight metrics of 1,250 pairs, more than a job has hours for; the sets of all pools are held at once."""
MOST_FACTS = 5_000
"""Variables and facts of the environments of one side; a device has some fifty."""

POOL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_HEX = re.compile(r"[0-9a-f]{16}")
NO_RUN = "none"
"""In place of the id of an A/B run that never began."""
_UNIT = re.compile(r"[A-Za-z0-9 %/*^._-]{0,24}")


@dataclass(frozen=True)
class GateManifest:
    """Whose set it is; ``trouble`` says why nothing could be measured, and is empty where something was."""

    pool: str
    repository: str
    head_sha: str
    run_id: int
    attempt: int
    base: str
    head: str
    trouble: str
    files: tuple[FileStamp, ...]
    schema: str = GATE_SET_SCHEMA

    @property
    def artifact(self) -> str:
        """The name of the artifact that holds the set."""
        return ARTIFACT_PREFIX + self.pool


@dataclass(frozen=True)
class GateSet:
    """A set whose every field was looked at."""

    manifest: GateManifest
    report: ComparisonReport

    @property
    def verdict(self) -> GateVerdict:
        """What it says; what could not be measured is incomplete."""
        return GateVerdict.INCOMPLETE if self.manifest.trouble else GATE_VERDICTS[self.report.headline]


@dataclass(frozen=True)
class Origin:
    """Where a set must come from: as GitHub says, or as the runner of the job does."""

    repository: str
    head_sha: str
    run_id: int
    attempt: int


def write_gate_set(
    out: Path,
    origin: Origin,
    pool: str,
    sides: tuple[str, str],
    report: ComparisonReport | None,
    *,
    trouble: str = "",
) -> GateManifest:
    """Write the set to the new folder ``out``, whole or not at all; ``trouble`` says why there is no report.

    Raises :class:`UsageError` where ``out`` exists.
    """
    secrets = known_secrets()
    said = secrets.hide_in(to_plain(report or nothing_measured(sides)))
    text = json.dumps(plain_values(said), allow_nan=False) + "\n"
    data = text.encode("ascii")
    stamp = FileStamp(REPORT, hashlib.sha256(data).hexdigest(), len(data))
    told = secrets.hide(trouble)[:2000]
    whose = (pool, origin.repository, origin.head_sha, origin.run_id, origin.attempt)
    manifest = GateManifest(*whose, *sides, told, (stamp,))
    manifest = from_plain(GateManifest, plain_values(to_plain(manifest)))
    with new_folder(out) as aside:
        with storage_errors(out):
            (aside / REPORT).write_bytes(data)
        seal(aside, out, manifest)
    return manifest


def read_gate_set(path: Path, origin: Origin, pool: str, policy: Policy | None = None) -> GateSet:
    """The set of ``pool`` in the folder or zip at ``path``; its verdicts gate as ``policy`` says, if given.

    Raises ``RefusedSetError`` for anything odd.
    """
    from torchgauge.workflows.ingest.container import KIB, MIB, Caps, read_container
    from torchgauge.workflows.ingest.strict_records import decode

    caps = Caps(sizes={MANIFEST: 64 * KIB, REPORT: 6 * MIB}, files=2, packed=6 * MIB)
    files = read_container(path, caps)
    manifest = decode(files[MANIFEST], GateManifest, MANIFEST)
    if manifest.schema != GATE_SET_SCHEMA or len(manifest.trouble) > 2000:
        raise RefusedSetError(Reason.NOT_A_SET, f"the schema version is not {GATE_SET_SCHEMA}")
    stamp = FileStamp(REPORT, hashlib.sha256(files[REPORT]).hexdigest(), len(files[REPORT]))
    if manifest.files != (stamp,):
        raise RefusedSetError(Reason.HASH, f"{REPORT} is not the file that the manifest describes")
    if manifest.pool != pool or POOL.fullmatch(pool) is None:
        raise RefusedSetError(
            Reason.ARTIFACT_NAME, "the manifest is for another pool than the artifact's name"
        )
    if not is_sha(manifest.head_sha) or manifest.head_sha != origin.head_sha:
        raise RefusedSetError(Reason.FOREIGN_SHA, "the set was measured at another commit")
    ours = (origin.repository.lower(), origin.run_id)
    if (manifest.repository.lower(), manifest.run_id) != ours or not 1 <= manifest.attempt <= origin.attempt:
        raise RefusedSetError(Reason.FOREIGN_CAMPAIGN, "the set is from another workflow run")
    report = decode(files.pop(REPORT), ComparisonReport, REPORT, caps.sizes[REPORT])
    _check_size(report)
    _check_report(report)
    return GateSet(manifest, _judged_again(report, policy))


def nothing_measured(sides: tuple[str, str]) -> ComparisonReport:
    """The report of an A/B run that never began."""
    base, head = (SideFacts(label, "", (), "", ()) for label in sides)
    return ComparisonReport(
        run_id=NO_RUN,
        created_at=0.0,
        state=RunState.INTERRUPTED,
        headline=Headline.NOTHING_COMPARED,
        counts=Counts(0, 0, 0, 0, 0, 0),
        base=base,
        head=head,
        verdicts=(),
        not_run=(),
        detectable=None,
        false_alarms=None,
        command=(),
        policy="",
        marker=digest([]),
    )


def _judged_again(report: ComparisonReport, policy: Policy | None) -> ComparisonReport:
    """``report`` with counts and headline made from its verdicts, whatever it said of itself.

    The command is left out: nobody should copy one from a pull request of a stranger. Of the code of a side
    the commit stays; branch and address, which make links, are what GitHub says of the pull request.
    """
    verdicts = report.verdicts
    if policy is not None:
        verdicts = tuple(under(each, policy) for each in verdicts)
    pairs = {each.pair_key for each in verdicts if each.pair_key and not each.control}
    counts = count(len(pairs) + len(report.not_run), verdicts, len(report.not_run))
    incomplete = bool(report.not_run) or report.state is not RunState.COMPLETE
    said = headline(verdicts, incomplete=incomplete)
    judged = replace(report, verdicts=verdicts, counts=counts, headline=said, command=(), false_alarms=None)
    return replace(judged, base=_commit_alone(report.base), head=_commit_alone(report.head))


def _commit_alone(side: SideFacts) -> SideFacts:
    if side.source is None or not is_sha(side.source.commit):
        return replace(side, source=None)
    return replace(side, source=CodeSource(side.source.commit))


def _check_size(report: Any) -> None:
    """Refuse more than a gate measures or a machine says of itself, before it is held a second time."""
    if len(report.verdicts) > MOST_VERDICTS or len(report.not_run) > MOST_PAIRS:
        raise RefusedSetError(Reason.TOO_LARGE, "more verdicts or pairs than a gate measures")
    for side in (report.base, report.head):
        facts = sum(len(found) for _, found in side.environments)
        if facts + len(side.variables) + len(side.environments) > MOST_FACTS:
            raise RefusedSetError(Reason.TOO_LARGE, f"base or head has more than {MOST_FACTS} facts")


def _check_report(report: ComparisonReport) -> None:
    """Refuse what no A/B run writes; shapes and finiteness were looked at before."""
    if report.version != VERSION:
        raise RefusedSetError(Reason.SCHEMA, f"report version {report.version} is not supported")
    if not _HEX.fullmatch(report.marker):
        raise RefusedSetError(Reason.TEXT, "the report has an invalid marker")
    if report.run_id != NO_RUN and not is_run_id(report.run_id):
        raise RefusedSetError(Reason.RUN_ID, "the id of the A/B run is invalid")
    if not 0 <= report.created_at <= LATEST:
        raise RefusedSetError(Reason.TIME, "the report has an impossible date")
    seen: set[tuple[str, str]] = set()
    for each in report.verdicts:
        if (each.pair_key, each.metric) in seen:
            raise RefusedSetError(Reason.CASE_TWICE, "two verdicts on one metric of one pair")
        seen.add((each.pair_key, each.metric))
        if each.pair_key and not _HEX.fullmatch(each.pair_key):
            raise RefusedSetError(Reason.FOREIGN_CASE, "a verdict has an invalid pair")
        _check_numbers(each)
    if report.detectable is not None and report.detectable < 0:
        raise RefusedSetError(Reason.NUMBER, "the smallest detectable change is below zero")


def _check_numbers(verdict: MetricVerdict) -> None:
    shares = (verdict.confidence, verdict.p, verdict.p_adjusted)
    named = ("base", "head", "tolerance", "detectable", "spread", "prior_spread", "prior_df", "time_s",
             "launches", "needed")  # fmt: skip
    sizes = [getattr(verdict, name) for name in named]
    fine = (
        _within(shares, 0.0, 1.0)
        and _within(sizes, 0.0, math.inf)
        and _within((verdict.ratio, verdict.low, verdict.high), 0.0, 1e9)
        and (verdict.low is None or verdict.high is None or verdict.low <= verdict.high)
        and _UNIT.fullmatch(verdict.unit) is not None
        and len(verdict.metric) <= 64
        and len(verdict.pair_id) <= 1000
    )
    if not fine:
        raise RefusedSetError(Reason.NUMBER, "a verdict has impossible numbers or names")


def _within(values: Iterable[float | None], least: float, most: float) -> bool:
    return all(value is None or least <= value <= most for value in values)
