"""``torchgauge matrix`` as it is typed: real A/B runs of tiny models, what it shows, and its refusals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import torchgauge
from torchgauge.errors import TorchgaugeError

SOURCE = Path(torchgauge.__file__).resolve().parent.parent
PLUGIN = Path(__file__).resolve().parents[1] / "harness" / "ab" / "racers_plugin"
RACERS = ("racers", "--models", "steady", "--device", "fake", "--config", "eager", "--threads", "1")
TOYS = ("toy", "--models", "sum", "--device", "fake", "--config", "eager", "--threads", "1")
HERE = sys.executable


def matrix(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command with the racers installed, its environments and its store in ``folder``."""
    return subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", "matrix", *words, "--store", str(folder / "store"),
         "--environments", str(folder / "environments")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(PLUGIN)]), **variables},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """This very interpreter against itself, twice: an A/A matrix, with its page and its picture."""
    folder = tmp_path_factory.mktemp("matrix")
    words = ("--python", f"a={HERE}", "--python", f"b={HERE}", "--python", f"b={HERE}")
    files = ("--markdown", str(folder / "page.md"), "--svg", str(folder / "picture.svg"))
    return folder, matrix(folder, *RACERS, *words, "--max-launches", "3", "--seed", "1", *files, "--json")


def test_cells_take_turns_and_each_is_an_ab_run_of_the_store(twice):
    """Two columns beside the baseline, each with a ratio of its own and its A/B run."""
    folder, done = twice
    assert done.returncode == 0, done.stderr
    table = json.loads(done.stdout)["matrix"]
    assert [column["label"] for column in table["columns"]] == ["a", "b", "b (again)"]
    assert [column["baseline"] for column in table["columns"]] == [True, False, False]
    assert [column["repeats"] for column in table["columns"]] == ["", "a", "a"]
    assert {column["agreed"] for column in table["columns"][1:]} <= {0, 1}
    (row,) = table["rows"]
    assert row["case"] == "racers/steady:inference:float32:b1:eager@fake"
    base, *others = row["entries"]
    assert base["median"] > 0
    assert base["ratio"] is None
    for column, entry in zip(table["columns"][1:], others, strict=True):
        assert entry["low"] < entry["ratio"] < entry["high"]
        assert entry["launches"] == 3
        assert (folder / "store" / "tables" / "verdicts" / f"{column['comparison']}.parquet").is_file()
    launches = [line.partition("]")[0] for line in done.stderr.splitlines() if "] launch " in line]
    assert len(launches) == 6
    for at in (0, 2, 4):  # in each round both cells are measured, whichever comes first
        assert set(launches[at : at + 2]) == {"[b", "[b (again)"}


def test_page_and_picture_show_every_cell(twice):
    """The page has the table; the picture is XML with the names of cells and models."""
    folder, _ = twice
    page = (folder / "page.md").read_text()
    assert "# Version matrix" in page
    assert "`b (again)` (A/A)" in page
    assert "racers/steady:inference" in page
    picture = ET.parse(folder / "picture.svg").getroot()
    texts = "".join(picture.itertext())
    assert "racers/steady" in texts
    assert "b (again)" in texts


def test_the_same_command_shows_what_is_there_and_measures_nothing(twice):
    """Everything comes from the store; so does what `--show` prints."""
    folder, done = twice
    words = ("--python", f"a={HERE}", "--python", f"b={HERE}", "--python", f"b={HERE}")
    again = matrix(folder, *RACERS, *words, "--max-launches", "3", "--seed", "1", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout) == json.loads(done.stdout)
    assert "] launch " not in again.stderr
    shown = matrix(folder, "--show", "latest", "--json")
    assert json.loads(shown.stdout) == json.loads(done.stdout)


def test_another_machines_matrix_has_numbers_and_no_verdict(twice, tmp_path):
    """Its columns stand beside, apart, and say that they were not measured in turns."""
    folder, done = twice
    file = tmp_path / "laptop.json"
    file.write_text(done.stdout)
    shown = matrix(folder, "--show", "latest", "--beside", f"laptop={file}")
    assert shown.returncode == 0, shown.stderr
    assert "laptop: b" in shown.stdout
    assert "not in turns" in shown.stdout
    assert "no verdict" in shown.stdout


@pytest.fixture(scope="module")
def slowed(tmp_path_factory):
    """A build whose steps take three times as long, one whose model raises, and one that is broken."""
    folder = tmp_path_factory.mktemp("slowed")
    slow = folder / "slow"
    slow.write_text(f'#!/bin/sh\nRACERS_FACTOR=3 exec {HERE} "$@"\n')
    faulty = folder / "faulty"
    faulty.write_text(f'#!/bin/sh\nRACERS_FAULT=raise exec {HERE} "$@"\n')
    broken = folder / "broken"
    broken.write_text("#!/bin/sh\necho no Python here\n")
    for file in (slow, faulty, broken):
        file.chmod(0o755)
    words = [f"--python={name}={path}" for name, path in
             (("good", HERE), ("broken", broken), ("slow", slow), ("faulty", faulty))]  # fmt: skip
    both = ("racers", "--models", "steady,faulty", *RACERS[3:])
    return folder, matrix(folder, *both, *words, "--max-launches", "6", "--seed", "1", "--json")


def test_the_first_version_that_is_slower_is_named_with_the_bisection(slowed):
    """The cell after the last one that was alike, and the command that goes on between both."""
    _, done = slowed
    table = json.loads(done.stdout)["matrix"]
    step = next(each for each in table["steps"] if each["case"].startswith("racers/steady"))
    assert (step["at"], step["after"]) == ("slow", "good")
    assert step["what"].startswith("slower: 1.000x to ")
    assert step["command"].startswith("torchgauge bisect racers/steady --device fake")
    assert f"--build good={HERE}" in step["command"]


def test_a_cell_that_cannot_run_says_why_and_the_others_go_on(slowed):
    """A broken interpreter is missing, a model that raises has its status, and neither is slower."""
    _, done = slowed
    assert done.returncode == 3, done.stderr
    table = json.loads(done.stdout)["matrix"]
    columns = {column["label"]: column for column in table["columns"]}
    assert "this is not a working Python" in columns["broken"]["failed"]
    assert "no results of broken; the table shows the reason" in done.stderr
    assert "repeat the command to continue" not in done.stderr
    assert columns["slow"]["state"] == "complete"
    rows = {row["model"]: dict(zip(columns, row["entries"], strict=True)) for row in table["rows"]}
    assert rows["steady"]["broken"]["status"] == "missing"
    assert rows["steady"]["slow"]["verdict"] == "regression"
    assert rows["steady"]["faulty"]["status"] == "pass"
    failed = rows["faulty"]["faulty"]
    assert (failed["status"], failed["ratio"], failed["verdict"]) == ("error", None, "")
    assert "once too often" in failed["reason"]
    assert any(step["what"].startswith("pass to error") for step in table["steps"])


def test_time_that_is_over_goes_on_with_the_same_command(tmp_path):
    """Exit 3 after one launch; without time the same command begins none, and with time it goes on."""
    words = (*RACERS, *(f"--python={name}={HERE}" for name in "abc"), "--max-launches", "3", "--seed", "1")
    done = matrix(tmp_path, *words, "--max-time", "0.1s")
    assert done.returncode == 3, done.stderr
    assert "run the same command again, to continue" in done.stderr
    assert done.stderr.count("] launch ") == 1
    assert done.stderr.count("time limit was reached") == 2
    none = matrix(tmp_path, *words, "--max-time", "0.1s", "--json")
    assert none.returncode == 3, none.stderr
    assert "] launch " not in none.stderr
    assert none.stderr.count("time limit was reached") == 2
    ratios = [entry["launches"] for entry in json.loads(none.stdout)["matrix"]["rows"][0]["entries"]]
    assert sorted(ratios) == [0, 0, 1]
    again = matrix(tmp_path, *words)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("resumed with 1 measurement done") == 1
    assert again.stderr.count("] launch ") == 5


def test_a_build_that_was_changed_begins_anew(tmp_path):
    """What was measured of the build that was there before is not counted for the one that is there now."""
    build = tmp_path / "build"
    build.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{tmp_path}/more" exec {HERE} "$@"\n')
    build.chmod(0o755)
    about = tmp_path / "more" / "extra.dist-info" / "METADATA"
    about.parent.mkdir(parents=True)
    about.write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
    words = (*RACERS, "--python", f"a={HERE}", "--python", f"b={build}", "--max-launches", "3", "--seed", "1")
    first = matrix(tmp_path, *words, "--max-time", "0.1s")
    assert first.returncode == 3, first.stderr
    about.write_text("Metadata-Version: 2.1\nName: extra\nVersion: 2.0\n")
    again = matrix(tmp_path, *words, "--max-time", "0.1s", "--json")
    assert "b changed (extra 1.0 is 2.0 now): its measurement starts over" in again.stderr
    assert "resumed with" not in again.stderr
    column = json.loads(again.stdout)["matrix"]["columns"][1]
    assert f"comparison {column['comparison']}" in again.stderr
    assert column["comparison"] not in first.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*TOYS, "--torch", "2.13.0"), "at least two cells"),
        ((*TOYS, "--torch", "2.13.0,newest"), "is not a version"),
        ((*TOYS, "--timm", "1.0.9,1.0.31"), "without --torch"),
        (("nosuch", "--device", "fake", "--torch", "2.12.1,2.13.0"), "unknown suite 'nosuch'"),
        (("toy", "--device", "nosuch", "--torch", "2.12.1,2.13.0"), "nosuch"),
        (("toy", "--torch", "2.12.1,2.13.0"), "no device was given"),
        ((*TOYS, "--torch", "2.12.1,2.13.0", "--no-accuracy"), "--no-accuracy"),
        ((*TOYS, "--torch", "2.12.1,2.13.0", "--policy", "/no/such/file"), "/no/such/file"),
        ((*TOYS, "--torch", "2.12.1,2.13.0", "--beside", "x=/no/such/file"), "cannot be read"),
    ],
)
def test_a_mistake_is_said_before_anything_is_made(invoke, words, said, tmp_path):
    """What is wrong and what to try; neither a store nor an environment appears."""
    places = ("--store", str(tmp_path / "store"), "--environments", str(tmp_path / "environments"))
    done = invoke("matrix", *words, *places)
    assert isinstance(done.exception, TorchgaugeError), done.exception
    assert said in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_keeps_what_was_measured(tmp_path):
    """Exit 130 once the launch that runs is over; the same command goes on."""
    words = [*RACERS, "--python", f"a={HERE}", "--python", f"b={HERE}", "--max-launches", "12", "--seed", "1"]
    places = ["--store", str(tmp_path / "store"), "--environments", str(tmp_path / "environments")]
    child = subprocess.Popen(
        [HERE, "-m", "torchgauge.cli.main", "matrix", *words, *places],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(PLUGIN)])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = []
    for line in child.stderr:
        said.append(line)
        if "] launch 2" in line:
            child.send_signal(signal.SIGINT)
            break
    said += child.stderr.read().splitlines()
    child.stderr.close()
    assert child.wait(120) == 130, said
    assert "incomplete; try: run the same command again" in said[-1]


def test_a_baseline_that_cannot_be_measured_fails_alone(tmp_path):
    """Its reason stands in its own column, and the cells after it are measured against the next one."""
    library = tmp_path / "library" / "torch"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text("raise RuntimeError('no device of this build answers')\n")
    bad = tmp_path / "bad"
    bad.write_text(f'#!/bin/sh\nPYTHONPATH={library.parent}:$PYTHONPATH exec {HERE} "$@"\n')
    bad.chmod(0o755)
    cells = [f"--python={name}={path}" for name, path in (("bad", bad), ("a", HERE), ("b", HERE))]
    words = ("toy", "--models", "mlp", "--device", "cpu", "--config", "eager", "--threads", "1")
    done = matrix(tmp_path, *words, *cells, "--max-launches", "3", "--seed", "1", "--json")
    assert done.returncode == 3, done.stderr
    table = json.loads(done.stdout)["matrix"]
    failed = {column["label"]: column["failed"] for column in table["columns"]}
    assert "no device of this build answers" in failed["bad"]
    assert (failed["a"], failed["b"], table["baseline"]) == ("", "", "a")
    assert "bad cannot be measured: a becomes the baseline" in done.stderr
    (row,) = table["rows"]
    assert row["entries"][2]["launches"] == 3


def test_a_dry_run_writes_no_store(tmp_path):
    """It says what would be made, or why a cell cannot be, and leaves the folder as it was."""
    words = ("--torch", "2.12.1,2.13.0", "--dry-run")
    done = matrix(tmp_path, *TOYS, *words, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path))
    assert done.returncode == 3, done.stderr
    assert "2.12.1: " in done.stderr
    assert not (tmp_path / "store").exists()


def test_the_site_has_the_matrix_of_a_store_without_a_published_run(twice, invoke):
    """Its numbers are those of the command, and the empty overview leads to what was compared."""
    folder, done = twice
    assert invoke("dashboard", "build", str(folder / "store"), "--out", str(folder / "site")).exit_code == 0
    page = (folder / "site" / "matrices.html").read_text()
    (row,) = json.loads(done.stdout)["matrix"]["rows"]
    shown = re.findall(r">([\d.]+)x", page)
    digits = [len(number.partition(".")[2]) for number in shown]
    entries = zip(row["entries"][1:], digits, strict=True)
    speedups = [f"{1 / entry['ratio']:.{decimals}f}" for entry, decimals in entries]
    assert shown == speedups, page
    printed = (folder / "page.md").read_text()
    assert all(f"{speedup}x [" in printed for speedup in speedups), printed
    assert "racers/steady" in page
    front = (folder / "site" / "index.html").read_text()
    assert "matrices.html" in front
    assert "regressions.html#ab" in front
