"""``torchgauge suites expect`` and ``--expectations``: what is shown, written, refused, and then expected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import stored_runs

from torchgauge.errors import UsageError
from torchgauge.records import Failure, Phase, Status
from torchgauge.results.store import Store
from torchgauge.suites.expectations import FOLDER, load_expectations

LINK = ("--link", "https://example.org/42")


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, ...]:
    """A store in which one case fails in two runs and another one passes."""
    kept = Store.open(tmp_path / "store", create=True)
    failure = Failure("RuntimeError", "it is broken", "f:1", "", "p")
    rows = [
        stored_runs.result(
            stored_runs.case("noop"), None, status=Status.ERROR, phase=Phase.EAGER, failure=failure
        ),
        stored_runs.result(stored_runs.case("sum")),
    ]
    for number in range(2):
        stored_runs.run(kept, f"n{number}", rows, at=stored_runs.BEGIN + number * stored_runs.DAY)
    return ("suites", "expect", "--store", str(kept.path))


def test_the_difference_is_shown_and_nothing_is_written(invoke, words, tmp_path) -> None:
    """A unified diff with MISSING for a link, the clusters that need one, and no file anywhere."""
    before = sorted(tmp_path.iterdir())
    done = invoke(*words)
    assert done.exit_code == 0, done.output
    assert "+++ b/fake.yaml" in done.stdout
    assert "+    model: noop" in done.stdout
    assert "+    link: MISSING" in done.stdout
    assert "needs a link" in done.stderr
    assert "nothing was written" in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_a_file_of_ones_own_is_made_read_back_and_then_right(process, words, tmp_path) -> None:
    """Made where there was none; a second update changes nothing; the strict reader accepts it."""
    own = tmp_path / "mine.yaml"
    place = ("--file", str(own), "--in-place")
    made = process(*words, *place, "--device", "fake", *LINK)
    assert made.returncode == 0, made.stderr
    (entry,) = load_expectations(own).entries
    assert (entry.model, entry.status, entry.link) == ("noop", Status.ERROR, LINK[1])
    text = own.read_text()
    again = process(*words, *place)
    assert (again.returncode, again.stdout) == (0, ""), again.stderr
    assert own.read_text() == text
    assert process("validate", str(own)).returncode == 0


def test_out_writes_a_copy_and_leaves_the_package_alone(invoke, words, tmp_path) -> None:
    """DEVICE.yaml in the folder, and files that ship are as they were."""
    shipped = {path.name: path.read_bytes() for path in FOLDER.glob("*.yaml")}
    done = invoke(*words, "--out", str(tmp_path), *LINK)
    assert done.exit_code == 0, done.output
    assert len(load_expectations(tmp_path / "fake.yaml").entries) == 1
    assert {path.name: path.read_bytes() for path in FOLDER.glob("*.yaml")} == shipped


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--in-place", "--dry-run"), "one of --out, --in-place and --dry-run"),
        (("--out", "."), "new entries need a link"),
        (("--out", "/no/such/folder", *LINK), "is not a folder"),
        (("--in-place", *LINK), "no expectations for device 'fake'"),
        (("--file", "/no/such.yaml", "--in-place"), "--device NAME for a new file"),
        (("--device", "fak"), "did you mean fake"),
        (("--link", "example.org"), "is not an http or https URL"),
        (("--link", "https://a", "--link", "https://b"), "several --link URLs"),
    ],
)
def test_mistakes_are_explained_and_nothing_is_written(invoke, words, more, said) -> None:
    """Exit 2 with what to try."""
    done = invoke(*words, *more)
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)
    assert not Path("fake.yaml").exists()


def test_a_link_can_be_given_by_cluster(process, words, tmp_path) -> None:
    """The id that triage prints names the entries that the link explains."""
    shown = json.loads(process("results", "triage", *words[2:], "--json").stdout)
    cluster = shown["clusters"][0]["id"]
    done = process(*words, "--out", str(tmp_path), "--link", f"{cluster}=https://example.org/7")
    assert done.returncode == 0, done.stderr
    (entry,) = load_expectations(tmp_path / "fake.yaml").entries
    assert entry.link == "https://example.org/7"


def test_a_run_takes_expectations_of_ones_own(tmp_path) -> None:
    """A declared skip and an expected status from a file outside the package count: option, variable."""
    own = tmp_path / "mine.yaml"
    evidence = "reason: nothing to see here\n    link: https://example.org/1\n    date: 2026-11-21\n"
    own.write_text(f"device: fake\nexpectations:\n  - model: sum\n    status: skipped\n    {evidence}")
    command = [sys.executable, "-m", "torchgauge.cli.main"]
    run = ["run", "toy", "--device", "fake", "--models", "noop,sum", "--config", "eager"]
    run += ["--measure-seconds", "0.05", "--no-calibration", "--json"]
    for number, (words, variables) in enumerate(
        [(["--expectations", str(own)], {}), ([], {"TORCHGAUGE_EXPECTATIONS": str(own)})]
    ):
        store = ["--store", str(tmp_path / f"s{number}")]
        done = subprocess.run(
            [*command, *run, *words, *store],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        shown = subprocess.run(
            [*command, "results", "query", "model=sum", "--json", *store],
            capture_output=True,
            text=True,
            timeout=240,
            check=True,
        )
        (row,) = json.loads(shown.stdout)
        assert (row["status"], row["cause"], row["expected"]) == ("skipped", "declared", "skipped")


def test_a_wrong_file_ends_before_anything_runs(process, tmp_path) -> None:
    """With file, line and field."""
    own = tmp_path / "mine.yaml"
    own.write_text("device: fake\nexpectations:\n  - model: sum\n    status: skip\n")
    store = tmp_path / "s"
    done = process("run", "toy", "--device", "fake", "--expectations", str(own), "--store", str(store))
    assert done.returncode == 2
    assert "mine.yaml:" in done.stderr
    assert not store.exists()
