"""``torchgauge ab`` as it is typed: its refusals, its verdict, its exit code and its JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import torchgauge
from torchgauge.errors import UsageError

SOURCE = Path(torchgauge.__file__).resolve().parent.parent
PLUGIN = Path(__file__).resolve().parents[1] / "harness" / "ab" / "racers_plugin"
TOYS = ("toy", "--models", "sum", "--device", "fake", "--config", "eager")
RACERS = ("racers", "--models", "steady", "--device", "fake", "--config", "eager", "--threads", "1")


def ab(store: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command with the racers installed."""
    return subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", "ab", *words, "--store", str(store)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(PLUGIN)])},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.fixture(scope="module")
def slowed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A head that does three times the work of the base."""
    store = tmp_path_factory.mktemp("ab") / "store"
    words = ("--head-env", "RACERS_FACTOR=3", "--max-launches", "6", "--seed", "1", "--json")
    return store, ab(store, *RACERS, *words, "--no-control")


def test_a_slower_head_ends_with_one_and_says_so_first(slowed: Any) -> None:
    """The verdict is the first line after the progress, with the ratio and its interval below it."""
    _, done = slowed
    assert done.returncode == 1, done.stderr
    lines = done.stderr.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith("Regression: 1 worse")]
    assert all(not line.startswith("Regression") for line in lines[:at])
    row = lines[at + 1]
    assert "racers/steady" in row
    assert "regression" in row
    assert " -> " in row


def test_machine_output_holds_every_verdict(slowed: Any) -> None:
    """On standard output alone, with what the rows rest on; each outcome names the code of its model."""
    store, done = slowed
    data = json.loads(done.stdout)
    latency = next(each for each in data["verdicts"] if each["metric"] == "latency")
    assert (data["exit_code"], latency["verdict"], latency["head_case"]) == (
        1,
        "regression",
        "racers/steady:inference:float32:b1:eager@fake",
    )
    assert 1 < latency["low"] < latency["ratio"] < latency["high"]
    journal = (store / "comparisons" / data["run_id"] / "journal.jsonl").read_text().splitlines()
    launches = [each["data"] for each in map(json.loads, journal) if each["kind"] == "launch"]
    digests = {dict(launch[side]["facts"])["model_code"] for launch in launches for side in ("base", "head")}
    assert len(digests) == 1
    assert (store / "tables" / "verdicts" / f"{data['run_id']}.parquet").is_file()


def test_a_complete_comparison_is_not_resumed(slowed: Any) -> None:
    """There is nothing left to do, and the message says so."""
    store, done = slowed
    folder = store / "comparisons" / json.loads(done.stdout)["run_id"]
    again = ab(store, "--resume", str(folder))
    assert (again.returncode, "nothing to resume" in again.stderr) == (2, True), again.stderr


def test_time_that_is_over_ends_undecided_and_goes_on_later(tmp_path: Path) -> None:
    """Exit 3, the command to go on with, and more launches when it is typed."""
    done = ab(tmp_path, *RACERS, "--head-env", "RACERS_FACTOR=1", "--max-time", "0.1s", "--no-control")
    assert done.returncode == 3, done.stderr
    assert "Incomplete" in done.stderr
    (hint,) = [line for line in done.stderr.splitlines() if "Continue with: torchgauge ab --resume" in line]
    folder = hint.partition("--resume ")[2]
    again = ab(tmp_path, "--resume", folder, "--max-time", "0.1s")
    assert "resumed with 1 measurement done" in again.stderr
    assert "launch 2" not in again.stderr
    again = ab(tmp_path, "--resume", folder, "--max-time", "20s")
    assert "launch 2: 1 pair" in again.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*TOYS,), "base and head are the same"),
        ((*TOYS, "--control", "--head-env", "A=1"), "base and head must be equal"),
        ((*TOYS, "--head-env", "=1"), "'=***' is not a valid NAME=VALUE"),
        ((*TOYS, "--head-env", "MY-TOKEN=s3cret"), "'MY-TOKEN=***' is not a valid NAME=VALUE"),
        ((*TOYS, "--head-env", "A"), "--head-env NAME=VALUE"),
        ((*TOYS, "--base-config", "eager"), "--base-config and --head-config go together"),
        ((*TOYS, "--base", "/no/such/python"), "/no/such/python"),
        ((*TOYS, "--control", "--policy", "/no/such/file"), "/no/such/file"),
        (("--resume", "/no/such/folder"), "not the folder of a comparison"),
        (("toy", "--control"), "no device was given"),
        (("nosuch", "--control", "--device", "fake"), "unknown suite 'nosuch'"),
    ],
)
def test_a_mistake_is_said_before_anything_is_written(
    invoke: Any, words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    """What is wrong and what to try; no store appears."""
    done = invoke("ab", *words, "--store", str(tmp_path / "store"))
    assert isinstance(done.exception, UsageError), done.exception
    assert said in str(done.exception)
    assert not (tmp_path / "store").exists()


@pytest.mark.torch
def test_a_head_that_silently_stops_compiling_is_broken(tmp_path: Path) -> None:
    """Its configuration did not run, whatever its latency and its graphs."""
    words = ("toy", "--models", "mlp", "--device", "cpu", "--config", "aot_eager", "--threads", "1")
    done = ab(tmp_path, *words, "--head-env", "TORCH_COMPILE_DISABLE=1", "--no-control", "--json")
    assert done.returncode == 1, done.stderr
    assert "Regression: 1 broken" in done.stderr
    said = {each["metric"]: each for each in json.loads(done.stdout)["verdicts"]}
    assert {name: each["verdict"] for name, each in said.items()} == {
        "latency": "not_comparable",
        "status": "broken",
    }
    assert "the configuration did not run" in said["status"]["reason"]


def test_where_no_pair_can_be_compared_it_ends_early_and_says_why(tmp_path: Path) -> None:
    """The A/A pair beside it runs well, and would be measured in all twelve launches."""
    words = ("racers", "--models", "faulty", "--device", "fake", "--config", "eager", "--threads", "1")
    done = ab(tmp_path, *words, "--base-env", "RACERS_FAULT=raise", "--json")
    assert "2 pairs, 1 of them head against head" in done.stderr
    (note,) = [line for line in done.stderr.splitlines() if "it ends early" in line]
    assert "cannot be compared: launch 2: base error" in note
    assert "launch 2: 2 pairs" in done.stderr
    assert "launch 3" not in done.stderr
    verdicts = [each["verdict"] for each in json.loads(done.stdout)["verdicts"] if each["metric"] == "status"]
    assert sorted(verdicts) == ["fixed", "unchanged"]
