"""Whose numbers they are: own runners, contributors and imported files stand apart on the site."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from patience import until
from site_files import files_of

sys.path.insert(0, str(Path(__file__).parents[1] / "workflows"))

from campaign_sets import Night, import_sets

from torchgauge.dashboard import build_site
from torchgauge.harness.planning.configurations import bundled
from torchgauge.records import METRICS
from torchgauge.results.interchange.formats import read_files
from torchgauge.results.interchange.imported_run import Known, write_run
from torchgauge.results.interchange.upstream_names import Context

NAME = "inductor_no_cudagraphs_timm_models_float32_inference_fake_performance.csv"


def imported(night: Night, folder: Path) -> None:
    """A file of PyTorch's own runner, read into the store of ``night``."""
    (folder / NAME).write_text("dev,name,batch_size,speedup,abs_latency\nfake,resnet18,2,1.5,3.25\n")
    known = Known(METRICS, {name: each.configuration for name, each in bundled().items()})
    cases = read_files([folder / NAME], None, Context("", "", "", "", ""), known, ())
    write_run(night.store.path, cases, known, ["torchgauge", "import", NAME], night.clock)


def contribute(night: Night, shard: int, who: str) -> None:
    """Take a set of ``night``, and name ``who`` as its contributor."""
    _, refused = import_sets(night.store, [night.pack(shard)], night.expected, night.clock)
    assert not refused
    file = night.store.path / "runs" / night.run_id(shard) / "provenance.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "contributor": who}))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of all three origins and its site."""
    folder = tmp_path_factory.mktemp("origins")
    night = Night(folder / "night")
    contribute(night, 1, "acme")
    contribute(night, 2, "")
    imported(night, folder)
    build_site(night.store.path, folder / "site", now=night.begin + 7200)
    return folder


def text_of(path: Path) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", path.read_text())))


def rows_of(built: Path) -> dict[str, dict[str, Any]]:
    """The rows of the JSON download by model."""
    data = json.loads((built / "site" / "data" / "latest.json").read_text())
    return {row["model"]: row for row in data["results"]}


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("linear", "contributor acme, pool pool"),
        ("norm", "own runner, pool pool"),
        ("resnet18", f"imported from {NAME}"),
    ],
)
def test_a_case_says_where_its_row_came_from(built: Path, model: str, said: str) -> None:
    """On the page of every cell, beside run and environment."""
    page = next((built / "site" / "models").glob(f"*-{model}-*.html"))
    found = re.findall(r"Source: <b>(.*?)</b>", page.read_text())
    assert len(found) == 1
    assert found[0].startswith(said)


def test_the_downloads_say_it_too(built: Path) -> None:
    """JSON, CSV and Parquet have the same words."""
    rows = rows_of(built)
    kinds = {model: row["origin"] for model, row in rows.items()}
    assert kinds == {
        "linear": "contributed", "conv": "contributed", "norm": "own", "attention": "own",
        "resnet18": "imported",
    }  # fmt: skip
    assert rows["linear"]["origin_name"] == "contributor acme, pool pool"
    with (built / "site" / "data" / "latest.csv").open(newline="") as file:
        assert {row["model"]: row["origin"] for row in csv.DictReader(file)} == kinds
    table = pq.read_table(built / "site" / "data" / "latest.parquet", columns=["model", "origin"])
    assert {row["model"]: row["origin"] for row in table.to_pylist()} == kinds


def test_the_matrix_marks_what_is_not_of_the_owners(built: Path) -> None:
    """A cell of a contributor or a file has a mark, an own one has none, and the legend counts them."""
    page = (built / "site" / "compatibility.html").read_text()
    marks = {
        model: sorted(set(re.findall(r"contributed|imported", row)))
        for model in ("linear", "conv", "norm", "attention", "resnet18")
        for row in [next(part for part in page.split("<tr>") if f"{model}</a>" in part)]
    }
    assert marks == {
        "linear": ["contributed"], "conv": ["contributed"], "norm": [], "attention": [],
        "resnet18": ["imported"],
    }  # fmt: skip
    assert "contributed submitted by a contributor" in text_of(built / "site" / "compatibility.html")
    assert rows_of(built)["linear"]["marks"] == ["contributed"]


def test_a_run_names_its_origin(built: Path) -> None:
    """On the page of runs."""
    page = text_of(built / "site" / "runs.html")
    assert "Source: contributor acme, pool pool ." in page
    assert "Source: own runner, pool pool ." in page
    assert "Source: imported file (dynamo performance CSV) ." in page


def test_a_contributors_runs_that_are_added_and_one_whose_origin_changes(tmp_path: Path) -> None:
    """A site that is built where one stands says of every run what the store says of it now."""
    night = Night(tmp_path / "night")
    contribute(night, 1, "acme")
    now = night.begin + 7200
    build_site(night.store.path, tmp_path / "site", now=now)
    contribute(night, 2, "other")
    build_site(night.store.path, tmp_path / "site", now=now)
    build_site(night.store.path, tmp_path / "again", now=now)
    assert files_of(tmp_path / "site") == files_of(tmp_path / "again")
    file = night.store.path / "runs" / night.run_id(1) / "provenance.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "contributor": ""}))
    build_site(night.store.path, tmp_path / "site", now=now)
    assert b'"origin":"own"' in (tmp_path / "site" / "data" / "latest.json").read_bytes()


def test_a_query_finds_what_contributors_submitted(
    built: Path, serve: Callable[[Path], str], browser: Any
) -> None:
    """The marks are words of the query box, and `-contributed` leaves what is the owners' or imported."""
    page = browser.new_page()
    page.goto(serve(built / "site") + "compatibility.html")
    shown = "[...document.querySelectorAll('tbody tr')].filter((row) => !row.hidden).length"
    for query, rows in (("contributed", 2), ("imported", 1), ("-contributed", 3)):
        page.fill("input[type=search]", query)
        until(page, f"{shown} === {rows}")
    page.close()
