"""Results of somebody else's machine: a bringup's bundle, added to a store as a pull request adds it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchgauge.cli.main import cli
from torchgauge.results.lookup import results_of
from torchgauge.results.origin import OriginKind, origin_of
from torchgauge.results.store import Store


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a bringup of a device that runs no torch."""
    out = tmp_path_factory.mktemp("vendor") / "out"
    asked = ("--device", "fake", "--out", str(out), "--suites", "toy", "--models", "noop")
    done = subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", "bringup", *asked, "--parts", "models,check"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (out / "bundle" / "report.md").is_file(), done.stderr
    return out


def test_rows_of_a_merged_pull_request_are_published_as_the_contributors(
    vendor: Path, tmp_path: Path
) -> None:
    """Plan, journal and the contributor's name are all that is added; every row of the vendor's is there."""
    here = Store.open(tmp_path / "store", create=True)
    for folder in (vendor / "bundle" / "runs").iterdir():
        assert sorted(path.name for path in folder.iterdir()) == ["journal.jsonl", "plan.json"]
        added = shutil.copytree(folder, here.path / "runs" / folder.name)
        (added / "provenance.json").write_text('{"contributor": "acme"}')
    words = ["dashboard", "publish", "--store", str(here.path), "--site", str(tmp_path / "site")]
    done = CliRunner().invoke(cli, words)
    assert (done.exit_code, json.loads(done.stdout)["left_out"]) == (0, {}), done.output
    there = Store.open(vendor / "store")
    told = sorted((row.case_id, row.status) for run in there.published() for row in results_of(there, run))
    assert (
        sorted((row.case_id, row.status) for run in here.published() for row in results_of(here, run)) == told
    )
    assert told
    assert {origin_of(here, run).text for run in here.published()} == {"contributor acme"}
    assert {origin_of(here, run).kind for run in here.published()} == {OriginKind.CONTRIBUTED}
    assert CliRunner().invoke(cli, ["results", "fsck", "--store", str(here.path)]).exit_code == 0
