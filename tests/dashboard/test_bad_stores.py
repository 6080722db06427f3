"""Stores that other tools, bad disks and clocks made: a page that says so or an error, never half a site."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from page_text import words
from store_builder import CPU, DAY, EAGER, INDUCTOR, NOW, RunBuilder, environment, result, timings, workloads

from torchgauge.dashboard import build_site
from torchgauge.errors import InfrastructureError, TorchgaugeError
from torchgauge.records import Case, Status
from torchgauge.results.publication import publish_again
from torchgauge.results.store import Store
from torchgauge.results.tables import SUMMARIES

_SUMMARIES = SUMMARIES.names
_NOT_NUMBERS = ("nan", "inf", "-inf", "NaN", "Infinity", "-Infinity")

Change = Callable[[pa.Table], pa.Table]


def _store(path: Path, runs: int = 2) -> Path:
    """Two nights of two configurations of three models."""
    for night in range(runs):
        run = RunBuilder(f"run-{night}", NOW - (runs - night) * DAY)
        run.environments.append(environment("cpu"))
        for number, workload in enumerate(workloads()[:6:2]):
            for configuration in (EAGER, INDUCTOR):
                numbers = timings(random.Random(number), 0.01, 1.2 if configuration.compiled else None, "cpu")
                result(run, Case(workload, configuration, CPU), measurements=numbers)
        run.write(path)
    return path


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good store with its site beside it; not to be changed."""
    folder = tmp_path_factory.mktemp("good")
    build_site(_store(folder / "store"), folder / "site", now=NOW)
    return folder


@pytest.fixture
def work(good: Path, tmp_path: Path) -> Path:
    """A copy of them to be changed."""
    shutil.copytree(good, tmp_path / "work")
    return tmp_path / "work"


def _files(site: Path) -> dict[str, bytes]:
    return {p.relative_to(site).as_posix(): p.read_bytes() for p in sorted(site.rglob("*")) if p.is_file()}


def _rewrite(store: Path, table: str, change: Change, run: str = "run-1") -> None:
    path = store / "tables" / table / f"{run}.parquet"
    found = pq.read_table(path)
    made = change(found)
    fields = [field.with_nullable(True) for field in made.schema]
    schema = pa.schema(fields, metadata=found.schema.metadata)
    pq.write_table(pa.Table.from_arrays(made.columns, schema=schema), path)


def _column(name: str, value: Any, kind: pa.DataType | None = None) -> Change:
    """All of a column replaced by ``value``."""

    def change(table: pa.Table) -> pa.Table:
        field = table.schema.field(name)
        values = pa.array([value] * table.num_rows, kind or field.type)
        return table.set_column(table.schema.get_field_index(name), field.with_type(values.type), values)

    return change


def _refused(work: Path, *, match: str = ".") -> TorchgaugeError:
    """What the build of a changed store raises; the old site stands, and nothing is left beside it."""
    before = _files(work / "site")
    with pytest.raises(TorchgaugeError, match=match) as caught:
        build_site(work / "store", work / "site", now=NOW)
    assert _files(work / "site") == before
    assert sorted(path.name for path in work.iterdir()) == ["site", "store"]
    assert caught.value.hint
    return caught.value


def _left_out(work: Path, table: str) -> None:
    """The site is built, and says that run-1 is damaged, by which file and what mends it."""
    report = build_site(work / "store", work / "site", now=NOW)
    named = f"tables/{table}/run-1.parquet"
    assert [named in gap for gap in report.gaps] == [True]
    assert f"torchgauge results publish run-1 --store {work / 'store'}" in report.gaps[0]
    for page in ("index.html", "runs.html"):
        assert named in words(work / "site" / page)
        assert "is damaged" in words(work / "site" / page)
    assert "6/6" in words(work / "site" / "index.html")  # of the night before


def _outcome(work: Path) -> TorchgaugeError | None:
    """The error of a full build, if there is one; a site stands either way."""
    try:
        build_site(work / "store", work / "site", now=NOW)
    except TorchgaugeError as error:
        return error
    return None


def _cut(size: float) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * size)])

    return change


@pytest.mark.parametrize("table", ["results", "environments"])
@pytest.mark.parametrize("size", [0, 0.5])
def test_a_cut_table_is_named_and_the_other_runs_are_shown(work: Path, table: str, size: float) -> None:
    """A file that a full disk or a broken transfer left: its run is damaged, and no other one is."""
    _cut(size)(work / "store" / "tables" / table / "run-1.parquet")
    _left_out(work, table)


@pytest.mark.parametrize("table", ["results", "summaries"])
def test_a_table_that_was_published_and_is_gone_is_no_empty_one(work: Path, table: str) -> None:
    """A lost file is damage of its run, which is named; it is not shown as a run without numbers."""
    publish_again(Store.open(work / "store"), "run-1")
    (work / "store" / "tables" / table / "run-1.parquet").unlink()
    report = build_site(work / "store", work / "site", now=NOW)
    if table == "results":  # by which a run is published: it is not, now
        assert (report.gaps, report.unfinished) == ((), ("run-1",))
        assert "the run's tables are missing" in words(work / "site" / "runs.html")
    else:
        _left_out(work, table)
    publish_again(Store.open(work / "store"), "run-1")
    mended = build_site(work / "store", work / "site", now=NOW)
    assert (mended.gaps, mended.unfinished) == ((), ())


def test_a_flipped_bit_inside_a_table_is_found(work: Path) -> None:
    """Pages of tables have checksums: what still unpacks is not believed, and its run is left out."""
    path = work / "store" / "tables" / "summaries" / "run-1.parquet"
    data = path.read_bytes()
    column = pq.ParquetFile(path).metadata.row_group(0).column(_SUMMARIES.index("median"))
    middle = column.data_page_offset + column.total_compressed_size - 8
    path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    _left_out(work, "summaries")


@pytest.mark.parametrize(
    ("table", "column", "value", "kind"),
    [
        ("results", "status", "exploded", None),
        ("results", "status", None, None),
        ("results", "case_key", 7, pa.int64()),
        ("results", "case_id", b"\xff\xfe", pa.binary()),
        ("summaries", "median", "much", pa.string()),
    ],
)
def test_a_column_of_another_kind_is_damage_or_an_error(
    work: Path, table: str, column: str, value: object, kind: pa.DataType | None
) -> None:
    """A table that does not fit its schema is named and left out; a status that nobody knows is refused."""
    _rewrite(work / "store", table, _column(column, value, kind))
    if value == "exploded":
        _refused(work)
    else:
        _left_out(work, table)


@pytest.mark.parametrize("column", ["status", "median"])
def test_a_table_without_a_column_is_damaged(work: Path, column: str) -> None:
    table = "summaries" if column in {"median", "unit"} else "results"
    _rewrite(work / "store", table, lambda found: found.drop_columns([column]))
    _left_out(work, table)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0, 1e300])
@pytest.mark.parametrize("column", ["median", "low"])
def test_impossible_numbers_reach_no_file_as_numbers(work: Path, column: str, value: float) -> None:
    """JSON stays strict, pages say no NaN, and the site is whole."""
    _rewrite(work / "store", "summaries", _column(column, value))
    build_site(work / "store", work / "site", now=NOW)
    for path in (work / "site").rglob("*.json"):
        json.loads(path.read_bytes(), parse_constant=lambda text, at=path: pytest.fail(f"{at}: {text}"))
    for path in (work / "site").rglob("*.html"):
        found = set(words(path).replace("[", " ").replace(",", " ").split())
        if path.name == "about.html":
            continue  # it says in words that there is none
        assert not found & {each + unit for each in _NOT_NUMBERS for unit in ("", "%", "x")}, path


@pytest.mark.parametrize("facts", ["{", "[]", '{"a": {"b": [1]}}'])
def test_json_inside_a_table_may_be_anything(work: Path, facts: str) -> None:
    """Facts and shapes that are no objects are shown as they are, or left out."""
    schema = pq.read_schema(work / "store" / "tables" / "results" / "run-1.parquet")
    for name in {"facts", "shape", "options", "env"} & set(schema.names):
        _rewrite(work / "store", "results", _column(name, facts))
    error = _outcome(work)
    assert error is None or error.hint
    assert (work / "site" / "index.html").is_file()


@pytest.mark.parametrize("rows", ["none", "double"])
def test_rows_that_do_not_sum_to_the_plan_are_damage(work: Path, rows: str) -> None:
    """A case that has no row, or two in one run."""
    if rows == "none":
        _rewrite(work / "store", "results", lambda table: table.slice(1))
    else:
        _rewrite(work / "store", "results", lambda table: pa.concat_tables([table, table]))
    _left_out(work, "results")


def test_summaries_of_cases_that_nobody_planned_are_left_out(work: Path) -> None:
    _rewrite(work / "store", "summaries", _column("case_key", "f" * 16))
    report = build_site(work / "store", work / "site", now=NOW)
    assert report.planned == 6


def test_a_store_without_environments_and_calibrations_says_so(work: Path) -> None:
    """A copy of the results only, of runs without a seal."""
    for seal in (work / "store" / "runs").glob("*/seal.json"):
        seal.unlink()
    for table in ("environments", "calibrations"):
        shutil.rmtree(work / "store" / "tables" / table, ignore_errors=True)
    for name in ("environments", "calibrations"):
        (work / "store" / "tables" / name).mkdir()
    build_site(work / "store", work / "site", now=NOW)
    page = next((work / "site" / "models").glob("*.html"))
    assert "environment" in words(page)


@pytest.mark.parametrize("name", ["plan.json", "run.json", "journal.jsonl"])
@pytest.mark.parametrize("content", [b"{", b"\xff\x00"])
def test_a_damaged_folder_of_a_run_is_said(work: Path, name: str, content: bytes) -> None:
    """Tables are what pages are made of: the site is built and says what it could not read, or refuses."""
    (work / "store" / "runs" / "run-1" / name).write_bytes(content)
    error = _outcome(work)
    assert error is None or (error.hint and "run-1" in error.message)
    assert "6/6" in words(work / "site" / "index.html")


def test_a_run_from_the_future_and_one_from_1970_are_on_the_axis(tmp_path: Path) -> None:
    """A clock that was never set, and one that runs ahead."""
    for run_id, at in (("first", 0.0), ("ahead", NOW + 4_000 * DAY)):
        run = RunBuilder(run_id, at)
        result(run, Case(workloads()[0], EAGER, CPU), started=at)
        run.write(tmp_path / "store")
    report = build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    assert report.snapshots == 2
    build_site(tmp_path / "store", tmp_path / "other", now=NOW)


def test_only_results_that_say_nothing(tmp_path: Path) -> None:
    """Every machine was lost: pages count it and claim nothing."""
    run = RunBuilder("lost", NOW - 60)
    for workload in workloads()[:3]:
        result(run, Case(workload, EAGER, CPU), Status.NOT_RUN)
        result(run, Case(workload, INDUCTOR, CPU), Status.INFRA, reason="the machine went away")
    run.write(tmp_path / "store")
    report = build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    assert (report.passed, report.planned) == (0, 6)
    assert "0/6" in words(tmp_path / "site" / "index.html")


_LIMITED = """
import resource, sys
from torchgauge.dashboard import build_site
from torchgauge.errors import InfrastructureError
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
try:
    build_site(sys.argv[1], sys.argv[2], now=1.8e9)
except InfrastructureError as error:
    print(error.message, error.hint)
    sys.exit(17)
"""


def test_a_file_that_cannot_grow_leaves_the_old_site(work: Path) -> None:
    """The kernel refuses to write on, as on a full disk or over a quota."""
    before = _files(work / "site")
    command = [sys.executable, "-c", _LIMITED, str(work / "store"), str(work / "site")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 17, done.stderr
    assert "cannot be written" in done.stdout
    assert _files(work / "site") == before
    assert sorted(path.name for path in work.iterdir()) == ["site", "store"]


def test_a_target_that_cannot_be_is_an_error(good: Path, tmp_path: Path) -> None:
    """A folder under a file, and one in a file system that takes none."""
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file" / "site", Path("/proc/torchgauge/site")):
        with pytest.raises(InfrastructureError, match="cannot be written") as caught:
            build_site(good / "store", out, now=NOW)
        assert caught.value.hint
