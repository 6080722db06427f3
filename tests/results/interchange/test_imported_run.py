"""What an import leaves in the store."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from exchange_store import KNOWN, rows

from torchgauge.errors import DataFileError, UsageError
from torchgauge.results.dataset import read_table
from torchgauge.results.interchange.dynamo_csv import read_dynamo_csv
from torchgauge.results.interchange.imported_run import write_run
from torchgauge.results.interchange.upstream_names import Context
from torchgauge.results.store import Store

GIVEN = Context("timm", "inference", "float32", "", "inductor")
TEXT = "dev,name,batch_size,speedup,abs_latency\nfake,a,2,1.5,3.0\nfake,b,0,0.0,0.0\n"


def read(path):
    return read_dynamo_csv([path], GIVEN, KNOWN)


def test_an_import_is_an_ordinary_run_that_says_where_it_came_from(tmp_path) -> None:
    """Plan, environment and rows name the file; tables, counts and statuses are there as in any run."""
    path = tmp_path / "results.csv"
    path.write_text(TEXT)
    run_id = write_run(tmp_path / "store", read(path), KNOWN, ["torchgauge", "import", "results.csv"])
    store = Store.open(tmp_path / "store")
    info = store.info(run_id)
    assert (info.published, info.planned, info.counts) == (True, 2, {"pass": 1, "error": 1})
    (provenance,) = store.run(run_id).plan().provenance
    assert provenance.name == "imported"
    assert "results.csv (dynamo performance CSV, sha256 " in str(provenance.value)
    facts = {row["key"]: row["value"] for row in read_table(store, "environments", run_id).to_pylist()}
    assert facts["imported_from"] == '"results.csv"'
    found = {row.case.workload.model: row for row in rows(store, run_id).values()}
    assert dict(found["a"].facts)["imported_from"] == "results.csv line 2"
    assert found["b"].summaries == ()


def test_nothing_is_written_on_an_error(tmp_path) -> None:
    """A mistake in the last line leaves not even a store behind."""
    path = tmp_path / "results.csv"
    path.write_text(TEXT + "fake,c,2,inf,3.0\n")
    with pytest.raises(DataFileError):
        write_run(tmp_path / "store", read(path), KNOWN, ["x"])
    with pytest.raises(UsageError, match="contain no case"):
        write_run(tmp_path / "store", [], KNOWN, ["x"])
    path.write_text(TEXT)
    with pytest.raises(DataFileError, match="is listed twice"):
        write_run(tmp_path / "store", [*read(path), *read(path)], KNOWN, ["x"])
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    "cell",
    ["batch", "fact"],
)
def test_what_the_store_cannot_keep_is_found_before_it_is_touched(tmp_path, cell: str) -> None:
    """A batch of 31 digits, a fact that is infinite: no run is begun."""
    path = tmp_path / "results.csv"
    path.write_text(TEXT)
    first, *rest = read(path)
    workload = replace(first.case.workload, batch=10**30)
    broken = {
        "batch": replace(first, case=replace(first.case, workload=workload)),
        "fact": replace(first, facts=(("x", math.inf),)),
    }[cell]
    with pytest.raises(DataFileError, match=r"results\.csv at `line 2`: a value cannot be stored"):
        write_run(tmp_path / "store", [*rest, broken], KNOWN, ["x"])
    assert not (tmp_path / "store").exists()
