"""The formats by their names: which files an export writes and what reads a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from torchgauge.errors import UsageError
from torchgauge.results.interchange import (
    dynamo_csv,
    gpt_fast_log,
    hud_v3,
    inferencex_json,
    optimum_json,
    torchbench_json,
)
from torchgauge.results.interchange.dynamo_columns import FORM as DYNAMO
from torchgauge.results.interchange.dynamo_csv_export import write_dynamo_csv, write_expected_csv
from torchgauge.results.interchange.exported_run import Written, read_run
from torchgauge.results.interchange.hud_v3_export import BENCHMARK, write_hud_v3
from torchgauge.results.interchange.imported_run import ImportedCase, Known
from torchgauge.results.interchange.upstream_names import Context
from torchgauge.results.store import Store

EXPECTED = "dynamo-expected"
EXPORTS = (DYNAMO, EXPECTED, hud_v3.FORM)
_READERS = {
    hud_v3.FORM: hud_v3.read_hud_v3,
    torchbench_json.FORM: torchbench_json.read_torchbench_json,
    optimum_json.FORM: optimum_json.read_optimum_json,
    gpt_fast_log.FORM: gpt_fast_log.read_gpt_fast_log,
    inferencex_json.FORM: inferencex_json.read_inferencex_json,
}
IMPORTS = (DYNAMO, *_READERS)


_MARKS = {
    optimum_json.FORM: (b'"optimum_benchmark', b'"load_model"'),
    inferencex_json.FORM: (b'"tput_per_gpu"', b'"output_tput_per_gpu"'),
    torchbench_json.FORM: (b'"metrics"',),
}
"""What the beginning of a file of each format has, one of which is enough."""


def export_run(store: Store, run_id: str, form: str, out: Path, benchmark: str = BENCHMARK) -> Written:
    """Write the published run ``run_id`` in ``form``: CSV files into the folder ``out``, JSON to the file.

    Raises :class:`UnknownNameError` for a run that is not published, :class:`UsageError` for a place that is
    of the wrong kind and :class:`NothingSelectedError` where the format has no row for any case.
    """
    run = read_run(store, run_id)
    if form == hud_v3.FORM:
        if out.is_dir() or not out.parent.is_dir():
            raise UsageError(f"{out} is a folder, or its folder is missing", hint="--out FILE")
        return write_hud_v3(run, out, benchmark)
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file", hint="--out FOLDER: each configuration has a file of its own")
    write = write_expected_csv if form == EXPECTED else write_dynamo_csv
    return write(run, out)


def read_files(
    paths: Sequence[Path], form: str | None, given: Context, known: Known, ignore: Iterable[str] = ()
) -> list[ImportedCase]:
    """The cases in ``paths``; without ``form``, CSV is the dynamo runner's, a log gpt-fast's, JSON is read.

    Raises :class:`DataFileError` for the first mistake.
    """
    _refuse_missing(paths)
    form = form or _guess(paths)
    if form in _READERS:
        return _READERS[form](paths, given, known)
    return dynamo_csv.read_dynamo_csv(paths, given, known, ignore)


def _refuse_missing(paths: Sequence[Path]) -> None:
    """Raise :class:`UsageError` for a file that is not there: its name says nothing of a format."""
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: there is no such file", hint="name files of another tool")


def _guess(paths: Sequence[Path]) -> str:
    endings = {path.suffix.lower() for path in paths}
    if endings == {".csv"}:
        return DYNAMO
    if endings == {".log"}:
        return gpt_fast_log.FORM
    if endings <= {".json", ".jsonl"}:
        return next((form for form, marks in _MARKS.items() if _have(paths, marks)), hud_v3.FORM)
    raise UsageError(
        f"the format of {', '.join(path.name for path in paths)} is not known by the name",
        hint=f"--format {'|'.join(IMPORTS)}, with files of one format at a time",
    )


def _have(paths: Sequence[Path], marks: Sequence[bytes]) -> bool:
    return all(any(mark in _beginning(path) for mark in marks) for path in paths)


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(4096)
    except OSError:
        return b""  # the reader of the format says what is wrong with it
