"""Collectives in real processes: right to the bit, timed in the slowest process, with both bandwidths."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchgauge.harness.planning.plan import all_groups
from torchgauge.harness.planning.selection import Selection
from torchgauge.harness.run import rank_devices
from torchgauge.records import Result, Status
from torchgauge.registry import load

CHILD = Path(__file__).with_name("child_collectives.py")
SUITES = {name: load("torchgauge.suites", name) for name in ("distributed", "toy")}
DEVICES = {name: load("torchgauge.devices", name) for name in ("cpu", "cuda", "fake")}


def samples(row: Result) -> dict[str, tuple[float, ...]]:
    """Metric to the numbers of its blocks."""
    return {each.metric: each.samples for each in row.measurements if each.samples}


@pytest.mark.torch
@pytest.mark.parametrize("count", [2, 3, 4])
def test_every_collective_is_right_to_the_bit(tmp_path: Path, count: int) -> None:
    """In each process, and again from the same message; also those without effects."""
    words = [sys.executable, str(CHILD)]
    ranks = [
        subprocess.Popen([*words, str(rank), str(count), str(tmp_path / "meet")], stdout=subprocess.PIPE)
        for rank in range(count)
    ]
    said = [json.loads(each.communicate(timeout=120)[0]) for each in ranks]
    assert len(said) == count
    assert len(said[0]) == 11
    assert [wrong for each in said for pair in each.values() for wrong in pair if wrong] == []


@pytest.mark.torch
def test_bandwidths_are_size_by_time_and_by_the_factor(sandbox: Any) -> None:
    """Of each block in its slowest process; the size is what fits three processes."""
    names = ("--models", "collectives-reduce_scatter", "--processes", "3")
    done = sandbox.measure("distributed", "--device", "cpu", *names)
    assert done.returncode == 0, done.stderr
    (row,) = sandbox.rows()
    assert row.status is Status.PASS, row.reason
    assert row.case.workload.processes == 3
    assert dict(row.facts)["collective_backend"] == "gloo"
    found, size = samples(row), 65536 // 12 * 12
    assert found["algorithm_bandwidth"] == pytest.approx([size / wall for wall in found["latency"]])
    assert found["bus_bandwidth"] == pytest.approx([2 / 3 * each for each in found["algorithm_bandwidth"]])


@pytest.mark.torch
def test_functional_collectives_are_compiled_as_a_whole(sandbox: Any) -> None:
    """One graph and no break, of the same exact values."""
    done = sandbox.measure("distributed", "--device", "cpu", "--models", "functional-all_reduce")
    assert done.returncode == 0, done.stderr
    found = {row.case.configuration.name: row for row in sandbox.rows()}
    assert set(found) == {"eager", "inductor-fullgraph"}
    assert all(row.status is Status.PASS for row in found.values()), [row.reason for row in found.values()]
    compiled = samples(found["inductor-fullgraph"])
    assert (compiled["graph_count"], compiled["graph_breaks"]) == ((1.0,), (0.0,))


def groups(*devices: str, **chosen: Any) -> Any:
    """The groups that are planned of the suite."""
    selection = Selection(suites=("distributed",), devices=devices, **chosen)
    return all_groups(selection, DEVICES, SUITES)


def test_a_selection_without_several_processes_refuses_their_number(sandbox: Any) -> None:
    """It would be ignored."""
    done = sandbox.run("plan", "toy", "--device", "cpu", "--processes", "2")
    assert done.returncode == 2
    assert "no selected model runs in several processes" in done.stderr
    done = sandbox.run("plan", "distributed", "--device", "cpu", "--processes", "65")
    assert done.returncode == 2
    assert "65" in done.stderr


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[str]]:
    """Let so many devices be found; the reasons of the refused cases of two processes."""

    def reasons(count: int, *devices: str, **chosen: Any) -> list[str]:
        from torchgauge.devices.discover import DeviceReport, Presence

        report = DeviceReport("cuda", "CUDA", "cuda", Presence.PRESENT, count=count)
        monkeypatch.setattr(rank_devices, "known_devices", lambda *_args, **_named: [report])
        monkeypatch.setattr(rank_devices, "plugin_devices", lambda _there: None)
        planned = groups(*devices, models=("collectives-broadcast",), **chosen)
        there: Any = type("There", (), {"path": "python", "report": None})()
        found = rank_devices.refuse_too_many(there, planned, DEVICES)
        return [each.refusal.reason for group in found for each in group.cases if each.refusal]

    return reasons


def test_more_processes_than_devices_are_refused(counted: Any) -> None:
    """Each has its own, from the one that is named on; the host takes any number."""
    assert counted(1, "cuda") == ["2 processes need 2 devices 'cuda': there is 1"]
    assert counted(2, "cuda") == []
    assert counted(2, "cuda.1") == ["2 processes need 2 devices 'cuda', from cuda.1 on: there are 2"]
    assert counted(2, "cuda", processes=4) == ["4 processes need 4 devices 'cuda': there are 2"]
    assert counted(0, "cuda") == ["2 processes need 2 devices 'cuda': there is none"]
    assert counted(1, "cpu", processes=64) == []


def test_a_launcher_is_refused_where_processes_share_nothing(sandbox: Any, tmp_path: Path) -> None:
    """Each would run every case, and disturb the others: it says how to start them."""
    (tmp_path / "plan.json").write_text("{}", encoding="utf-8")
    variables = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    case = "toy/noop:inference:float32:b1:eager@fake"
    run = ("run", "toy", "--device", "fake"), ("run", "--resume", str(tmp_path))
    for words in (("check", "--device", "fake"), ("repro", case), *run):
        done = sandbox.run(*words, **variables)
        assert done.returncode == 2
        assert "launched as process 1 of 2" in done.stderr
        assert "omit the launcher: torchgauge starts" in done.stderr
    rank_devices.refuse_launched({**variables, "WORLD_SIZE": "1"})
    rank_devices.refuse_launched({"WORLD_SIZE": "2"})
