"""The site's JSON files: they hold what the store holds, strictly, and name it by number."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from site_files import files_of

from torchgauge.records import Status
from torchgauge.results.dataset import read_table
from torchgauge.results.store import Store

LIMIT = 64 * 1024


def _json(path: Path) -> Any:
    return json.loads(path.read_bytes(), parse_constant=pytest.fail)


@pytest.fixture(scope="module")
def manifest(site: Path) -> Any:
    """The manifest of the realistic site."""
    return _json(site / "manifest.json")


def test_every_row_of_the_store_is_in_its_series(store: Path, site: Path, manifest: Any) -> None:
    """Status and median of every row, found by the numbers in the files of cases."""
    letter = {entry["status"]: entry["letter"] for entry in manifest["statuses"]}
    found = {}
    for path in site.glob("series/*/*/*.json"):
        data = _json(path)
        cases = _json(site / "cases" / f"{path.parts[-3]}.json")["cases"]
        for series in data["cases"]:
            case = cases[series["case"]]
            assert (case["model"], case["configuration"]) == (data["model"], series["configuration"])
            assert len(series["status"]) == len(data["snapshots"])
            for place, snapshot in enumerate(data["snapshots"]):
                latency = series["metrics"].get("latency", {}).get("median")
                found[snapshot[:10], case["key"]] = series["status"][place], latency and latency[place]
    rows = read_table(Store.open(store), "results").to_pylist()
    numbers = {
        (row["run_id"], row["case_key"]): row["median"]
        for row in read_table(Store.open(store), "summaries").to_pylist()
        if row["metric"] == "latency"
    }
    assert len(found) == len(rows) == 192
    for row in rows:
        median = numbers.get((row["run_id"], row["case_key"]))
        shown = found[f"{row['run_created_at']:%Y-%m-%d}", row["case_key"]]
        assert shown == (letter[row["status"]], None if median is None else float(f"{median:.4g}"))


def test_anchors_and_files_of_cases_exist(site: Path) -> None:
    """A script that finds a number can link to its case."""
    for path in site.glob("cases/*.json"):
        for case in _json(path)["cases"]:
            assert f'id="{case["anchor"]}"' in (site / case["file"]).read_text()


def test_the_digest_of_the_manifest_stands_for_every_file(site: Path, manifest: Any) -> None:
    """Whoever cites a site can check all of it: SHA-256 over names and hashes of all other files."""
    found = hashlib.sha256()
    for name, content in sorted(files_of(site).items()):
        if name != "manifest.json":
            found.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    assert manifest["digest"] == found.hexdigest()


def test_the_epoch_is_a_table_for_pandas(site: Path) -> None:
    """One row per case and snapshot, with every status."""
    table = pq.read_table(site / "data" / "0.parquet")
    assert table.num_rows == 192
    assert set(table.column("status").to_pylist()) == {status.value for status in Status}
    assert {"snapshot", "run_id", "suite", "model", "latency.median", "mark.degraded"} <= set(
        table.column_names
    )


def test_shards_are_small(site: Path) -> None:
    """No file that a page loads is above 64 KiB gzipped."""
    for folder in ("series", "snapshots", "cases"):
        for path in (site / folder).rglob("*.json"):
            assert len(gzip.compress(path.read_bytes(), 6)) <= LIMIT, path
