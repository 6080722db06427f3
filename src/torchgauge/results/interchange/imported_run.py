"""What an import makes: an ordinary run whose plan and environment say which file it came from.

A file is read to its end and all that it becomes is tried before anything is written, so a mistake in its
last line leaves the store as it was. A value that the file does not have is not in the run either.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchgauge.clock import SYSTEM_CLOCK, Clock
from torchgauge.errors import DataFileError, UsageError
from torchgauge.records import (
    Case,
    Configuration,
    Environment,
    Group,
    Measurement,
    Metric,
    Modifier,
    Plan,
    PlannedCase,
    Provenance,
    Realised,
    Result,
    RunSettings,
    Scalar,
    Status,
    Tolerance,
    from_plain,
    to_json,
)
from torchgauge.results.interchange.upstream_statuses import Ending
from torchgauge.results.journal import End, Kind, RunState
from torchgauge.results.origin import IMPORTED_FROM
from torchgauge.results.run_id import new_run_id
from torchgauge.results.stats import summarise
from torchgauge.results.store import Store

UNKNOWN_BATCH = 0
"""The batch of a case whose file does not say it: no workload that was ever built has it."""

_FORBIDDEN = frozenset(":@[]")
_UNTOLD = Tolerance(0.0, 0.0, 0.0, "imported: the file does not contain the tolerance of the check")


@dataclass(frozen=True)
class Known:
    """The metrics and configurations of this torchgauge, which another room declares."""

    metrics: Mapping[str, Metric]
    configurations: Mapping[str, Configuration]


@dataclass(frozen=True)
class Source:
    """A file that was read: its name, its format, a hash of its bytes and what it says of its machine."""

    path: Path
    form: str
    digest: str
    identity: tuple[tuple[str, Scalar], ...] = ()

    def environment(self, device: str) -> Environment:
        """Where the file's numbers come from, as far as it says."""
        told = (*self.identity, ("imported_as", self.form), ("imported_from", self.path.name))
        return Environment(
            device,
            tuple(sorted((*told, ("imported_sha256", self.digest)))),
            notes=("imported: only the machine and versions that the file contains are recorded",),
        )


@dataclass(frozen=True)
class ImportedCase:
    """A case of a file with all that is known of it; ``origin`` is the line or the entry that it stood in."""

    case: Case
    ending: Ending
    source: Source
    origin: str
    measurements: tuple[Measurement, ...] = ()
    facts: tuple[tuple[str, Scalar], ...] = ()
    started_at: float = 0.0
    realised: Realised | None = None
    modifiers: tuple[Modifier, ...] = ()


def read_bytes(path: Path) -> bytes:
    """The file's bytes; raises :class:`DataFileError` for a folder, an empty or an unreadable file."""
    try:
        if path.is_dir():
            raise DataFileError(str(path), "is a folder", hint="pass the files in the folder")
        data = path.read_bytes()
    except OSError as error:
        raise DataFileError(
            str(path), f"cannot be read: {error.strerror or error}", hint="check the name and the permissions"
        ) from error
    if not data.strip():
        raise DataFileError(str(path), "is empty", hint="repeat the run that should have written it")
    return data


def decoded(path: Path, data: bytes) -> str:
    """``data`` as UTF-8, with or without a mark of its byte order; raises :class:`DataFileError`."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataFileError(
            str(path),
            f"byte {error.start} is not UTF-8",
            line=data.count(b"\n", 0, error.start) + 1,
            hint="save it as UTF-8; upstream writes ASCII",
        ) from error


def source_of(path: Path, form: str, data: bytes, identity: Mapping[str, Scalar] | None = None) -> Source:
    """The source of ``data``, which was read from ``path``."""
    told = tuple(sorted((identity or {}).items()))
    return Source(path, form, hashlib.sha256(data).hexdigest()[:16], told)


def check_name(path: Path, kind: str, name: str, line: int | None, column: str = "") -> str:
    """``name``, which becomes part of case ids; raises :class:`DataFileError` where it cannot."""
    if name and name.isprintable() and not _FORBIDDEN & set(name) and name == name.strip():
        return name
    raise DataFileError(
        str(path),
        f"{name!r} cannot be the name of a {kind}",
        line=line,
        field=column,
        hint="use printable characters other than : @ [ ]",
    )


def write_run(
    store: Path | str,
    cases: Sequence[ImportedCase],
    known: Known,
    command: Sequence[str],
    clock: Clock = SYSTEM_CLOCK,
) -> str:
    """Write ``cases`` as a run of their own and publish it; its id.

    Raises :class:`DataFileError` where a case is listed twice or a store could not keep it, and
    :class:`UsageError` where there is none; nothing is written then.
    """
    by_key: dict[str, ImportedCase] = {}
    for each in cases:
        first = by_key.setdefault(each.case.key, each)
        if first is not each:
            raise DataFileError(
                str(each.source.path),
                f"{each.case.id} is listed twice: {first.origin} and {each.origin}",
                hint="keep one of the two, or import the files as two runs",
            )
    if not cases:
        raise UsageError("the files contain no case", hint="check the file names")
    now = clock.now()
    plan = _plan(new_run_id(clock), now, cases, command)
    results = _tried(plan, cases, known)
    environments = {
        environment.id: environment
        for each in cases
        for environment in [each.source.environment(str(each.case.device))]
    }
    opened = Store.open(store, create=True)
    folder = opened.begin(plan)
    with folder.open_journal() as journal:
        journal.append(Kind.ENVIRONMENT, list(environments.values()))
        journal.append(Kind.RESULT, results)
        journal.append(Kind.END, [End(RunState.COMPLETE, now)])
    opened.finish(plan.run_id, plan)
    return plan.run_id


def _plan(run_id: str, now: float, cases: Sequence[ImportedCase], command: Sequence[str]) -> Plan:
    groups: dict[tuple[str, str], list[PlannedCase]] = {}
    for each in cases:
        key = (each.case.workload.declared_hash, str(each.case.device))
        groups.setdefault(key, []).append(PlannedCase(each.case, _UNTOLD))
    sources = {each.source.path: each.source for each in cases}
    return Plan(
        run_id,
        now,
        tuple(command),
        RunSettings(),
        tuple(Group("@".join(key), tuple(planned)) for key, planned in groups.items()),
        provenance=tuple(
            Provenance("imported", f"{source.path.name} ({source.form}, sha256 {source.digest})", "file")
            for source in sources.values()
        ),
    )


def _tried(plan: Plan, cases: Sequence[ImportedCase], known: Known) -> list[Result]:
    """The results of ``cases``, which a journal and tables can keep; raises :class:`DataFileError`."""
    try:
        return _kept(plan, cases, known)
    except (ValueError, TypeError, OverflowError) as error:
        if len(cases) > 1:  # which one it is
            return [result for each in cases for result in _tried(plan, [each], known)]
        (each,) = cases
        raise DataFileError(
            str(each.source.path),
            f"a value cannot be stored: {error}",
            field=each.origin,
            hint="remove the value",
        ) from error


def _kept(plan: Plan, cases: Sequence[ImportedCase], known: Known) -> list[Result]:
    """The results, written and read back in memory; raises what that raises."""
    from torchgauge.results.publication import chunk_of
    from torchgauge.results.rows import RunContext, result_row, summary_rows
    from torchgauge.results.tables import TABLES

    results = [_result(plan.run_id, each, known) for each in cases]
    environments = {each.source.environment(str(each.case.device)) for each in cases}
    for record in (*environments, *results):
        from_plain(type(record), json.loads(to_json(record)))
    context = RunContext(plan.run_id, plan.created_at, {})
    chunk_of(TABLES["results"], [result_row(each, context) for each in results])
    chunk_of(TABLES["summaries"], [row for each in results for row in summary_rows(each, context)])
    return results


def _result(run_id: str, each: ImportedCase, known: Known) -> Result:
    ending = each.ending
    reason = ending.reason
    if ending.status is not Status.PASS and not reason:
        reason = "the file has no reason"
    return Result(
        run_id=run_id,
        case_id=each.case.id,
        case=each.case,
        status=ending.status,
        phase=ending.phase,
        expected=None,
        cause=ending.cause,
        reason=reason,
        modifiers=each.modifiers,
        measurements=each.measurements,
        summaries=tuple(summarise(one, known.metrics[one.metric]) for one in each.measurements),
        realised=each.realised,
        facts=tuple(sorted((*each.facts, (IMPORTED_FROM, f"{each.source.path.name} {each.origin}")))),
        environment_id=each.source.environment(str(each.case.device)).id,
        started_at=each.started_at,
    )
