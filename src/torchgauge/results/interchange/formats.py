"""The formats by their names: which files an export writes and what reads a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from torchgauge.errors import UsageError
from torchgauge.results.interchange import dynamo_csv, hud_v3, torchbench_json
from torchgauge.results.interchange.dynamo_columns import FORM as DYNAMO
from torchgauge.results.interchange.dynamo_csv_export import write_dynamo_csv, write_expected_csv
from torchgauge.results.interchange.exported_run import Written, read_run
from torchgauge.results.interchange.hud_v3_export import BENCHMARK, write_hud_v3
from torchgauge.results.interchange.imported_run import ImportedCase, Known
from torchgauge.results.interchange.upstream_names import Context
from torchgauge.results.store import Store

EXPECTED = "dynamo-expected"
_READERS = {
    hud_v3.FORM: hud_v3.read_hud_v3,
    torchbench_json.FORM: torchbench_json.read_torchbench_json,
}
IMPORTS = (DYNAMO, *_READERS)


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
        raise UsageError(f"{out} is a file", hint="pass --out FOLDER: each configuration gets its own file")
    write = write_expected_csv if form == EXPECTED else write_dynamo_csv
    return write(run, out)


def read_files(
    paths: Sequence[Path], form: str | None, given: Context, known: Known, ignore: Iterable[str] = ()
) -> list[ImportedCase]:
    """Return the cases in ``paths``; without ``form``, names and contents of the files decide the format.

    Raises :class:`DataFileError` for the first mistake.
    """
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: there is no such file", hint="pass result files of another tool")
    form = form or _guess(paths)
    if form in _READERS:
        return _READERS[form](paths, given, known)
    return dynamo_csv.read_dynamo_csv(paths, given, known, ignore)


def _guess(paths: Sequence[Path]) -> str:
    endings = {path.suffix.lower() for path in paths}
    if endings == {".csv"}:
        return DYNAMO
    if endings <= {".json", ".jsonl"}:
        return torchbench_json.FORM if all(_has_metrics(path) for path in paths) else hud_v3.FORM
    raise UsageError(
        f"the format of {', '.join(path.name for path in paths)} cannot be derived from the name",
        hint=f"pass --format {'|'.join(IMPORTS)}, and files of one format at a time",
    )


def _has_metrics(path: Path) -> bool:
    """Return whether the first 4096 bytes hold the key that TorchBench's files begin with."""
    try:
        with path.open("rb") as file:
            return b'"metrics"' in file.read(4096)
    except OSError:
        return False  # the reader of the format reports the error
