"""A child process of a benchmark that fell over, or that has no results, is never a time."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from child_run import ChildFailure, run_child

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PEER = """\
#!{python}
import os, signal, sys
if sys.argv[1] == "-c":  # which packages are missing: this peer imports none
    sys.exit()
table, what = sys.argv[sys.argv.index("--output") + 1], sys.argv[3].removeprefix("--")
print("begun", flush=True)
fate = os.environ["PEER_FATE"] if what == os.environ["PEER_FALLS_IN"] else "sound"
if fate == "raises":
    {{}}["resnet"]
if fate == "is killed":
    os.kill(os.getpid(), signal.SIGKILL)
if fate == "is silent":
    sys.exit()
if fate == "prints garbage":
    print("Segfault? 0x7f")
    open(table, "wb").write(b"\\x00\\xff garbage")
    sys.exit()
with open(table, "w") as file:
    file.write("name,accuracy,compilation_latency,speedup\\nm,pass,2.5,1.5\\n")
if what == "performance":
    import numpy
    model = sys.argv[sys.argv.index("--only") + 1]
    numpy.save(f"{{model}}-performance-raw_timings-x.npy", [[0.2, 0.1]] * 30)
"""
"""An interpreter that is a whole peer: it ends as ``PEER_FATE`` names, in the run ``PEER_FALLS_IN``."""


def python(code: str, *read: Any, **options: Any) -> Any:
    return run_child([sys.executable, "-c", code], *(read or (str,)), **options)


def test_a_sound_process_has_results_a_time_and_what_it_used() -> None:
    """Lines have the moments at which they came; stderr is kept in the log and is no result."""
    code = "import sys; sys.stdout.write(sys.stdin.read()); print('a word', file=sys.stderr)"
    log = io.BytesIO()
    ended = python(code, json.loads, given='{"figure":\n 7}', log=log)
    assert (ended.results, ended.code, log.getvalue()) == ({"figure": 7}, 0, b"a word\n")
    assert [line for _, line in ended.lines] == ['{"figure":', " 7}"]
    assert 0 < ended.lines[0][0] <= ended.lines[1][0]
    assert ended.seconds > 0
    assert ended.cpu_s > 0
    assert ended.used.ru_maxrss > 0


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("print('{}'); {}['resnet']", "ended with exit code 1: KeyError: 'resnet'"),
        ("import os; print('{}', flush=True); os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
        ("pass", "ended without its results: JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
        ("print('garbage')", "ended without its results: JSONDecodeError"),
        (
            "import sys; print('tidy', file=sys.stderr); print('{}')",
            "ended without its results: 0 of 1: tidy",
        ),
    ],
    ids=["raises", "is killed", "is silent", "prints garbage", "has too few"],
)
def test_a_process_that_fell_over_is_a_failure(code: str, problem: str) -> None:
    """Its problem is one line that ends with the last one of its stderr, and nothing is returned."""

    def one_row(text: str) -> Any:
        rows = json.loads(text)
        if len(rows) != 1:
            raise ValueError(f"{len(rows)} of 1")
        return rows

    with pytest.raises(ChildFailure) as failure:
        python(code, one_row)
    assert failure.value.problem.startswith(problem)
    assert "\n" not in failure.value.problem
    assert problem.partition(":")[0] in str(failure.value)


def test_a_process_that_hangs_is_ended_at_its_limit() -> None:
    """And so is one that keeps its output open."""
    with pytest.raises(ChildFailure, match="did not end within 2 s"):
        python("import time; time.sleep(600)", limit_s=2)


def campaign(folder: Path, fate: str, falls_in: str) -> subprocess.CompletedProcess[str]:
    """Run the campaign benchmark of one model against a peer that ends as ``fate`` names."""
    vendored = folder / "checkout" / "userbenchmark" / "dynamo" / "dynamobench"
    vendored.mkdir(parents=True)
    (vendored / "timm_models.py").touch()
    peer = folder / "peer"
    peer.write_text(PEER.format(python=sys.executable))
    peer.chmod(0o755)
    words = ("--torchbench", str(folder / "checkout"), "--work", str(folder / "work"))
    words += ("--models", "mobilenetv2_100", "--variants", "peer-again", "--peer-python", str(peer))
    return subprocess.run(
        [sys.executable, str(BENCHMARKS / "campaign.py"), *words],
        env={**os.environ, "PEER_FATE": fate, "PEER_FALLS_IN": falls_in},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def records(folder: Path) -> list[dict[str, Any]]:
    """Return the record of each unit of the campaign."""
    lines = (folder / "work" / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [record for line in lines for record in json.loads(line)["records"]]


@pytest.mark.parametrize(
    ("fate", "falls_in", "problem"),
    [
        ("raises", "accuracy", "accuracy ended with exit code 1: KeyError: 'resnet'"),
        ("raises", "performance", "performance ended with exit code 1: KeyError: 'resnet'"),
        ("is killed", "performance", "performance was killed by SIGKILL: begun"),
        ("is silent", "accuracy", "accuracy ended without its results: it wrote no row: begun"),
        ("prints garbage", "accuracy", "accuracy ended without its results: "),
    ],
)
def test_a_campaign_refuses_a_peer_that_fell_over(
    tmp_path: Path, fate: str, falls_in: str, problem: str
) -> None:
    """It is recorded with its problem and without a time, has no ratio, and the benchmark ends with 1."""
    done = campaign(tmp_path, fate, falls_in)
    assert done.returncode == 1, done.stderr
    first, again = records(tmp_path)
    assert (first["side"], again["side"]) == ("peer", "peer-again")
    for record in (first, again):
        assert record["problem"].startswith(problem)
        assert (record["seconds"], record["cpu_s"], record["samples"]) == (None, None, {})
    assert f"- peer, mobilenetv2_100: {problem}" in done.stdout
    assert "| peer-again | 0 | - | - | - |" in done.stdout


def test_a_campaign_of_a_sound_peer_has_its_times(tmp_path: Path) -> None:
    """The same peer, which does not fall over: a ratio, and exit code 0."""
    done = campaign(tmp_path, "sound", "")
    assert done.returncode == 0, done.stderr
    assert [(each["problem"], each["compile_s"]) for each in records(tmp_path)] == [("", 2.5)] * 2
    assert all(each["seconds"] > 0 for each in records(tmp_path))
    assert "| peer-again | 1 | " in done.stdout
    assert "| peer-again | 1 | - |" not in done.stdout
