"""Real runs on the simulated device: under a vendor's name, and when it goes away on the way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from torchgauge.records import Cause, Modifier, Status
from torchgauge.results import journal
from torchgauge.results.store import Store

QUICK = ("--measure-seconds", "0.05", "--no-calibration", "--no-memory-probe", "--threads", "1")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs cases in eager mode and gives the command's end and its rows by case."""
    for name in ("TORCHGAUGE_NPUSIM_NAME", "TORCHGAUGE_NPUSIM_FAULT", "TORCH_DEVICE_BACKEND_AUTOLOAD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TORCHGAUGE_LEASES", str(tmp_path / "leases"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def measure(*arguments, **variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        store = tmp_path / "store"
        command = [
            sys.executable,
            "-m",
            "torchgauge.cli.main",
            "run",
            *arguments,
            "--config",
            "eager",
            *QUICK,
        ]
        done = subprocess.run(
            [*command, "--store", str(store)], capture_output=True, text=True, timeout=280, check=False
        )
        opened = Store.open(store)
        (run_id,) = opened.run_ids()
        rows = journal.results(opened.run(run_id).journal_path)
        return done, {f"{row.case.workload.model}@{row.case.device}": row for row in rows}

    return measure


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """Another command, with the devices that there are now."""
    return subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", *words],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.torch
def test_run_under_a_vendors_name_passes_through_its_adapter(run):
    """The device called npu is served by the npu adapter, from plan to row."""
    done, rows = run("toy/mlp", "--device", "npu", TORCHGAUGE_NPUSIM_NAME="npu")
    assert done.returncode == 0, done.stderr
    assert {name: row.status for name, row in rows.items()} == {"mlp@npu": Status.PASS}


@pytest.mark.torch
def test_device_that_vanishes_costs_its_group_an_attempt_and_no_other(run, tmp_path: Path):
    """It is asked, and its cases are tried once more; those of an index that does not exist are infra."""
    fault = f"vanish_after_calls=300,vanish_once={tmp_path / 'token'}"
    expected = tmp_path / "expected.yaml"
    expected.write_text(
        "device: cpu\nexpectations:\n"
        "  - {suite: toy, status: pass, reason: its rows are wanted,"
        " link: https://example.org, date: 2026-01-01}\n"
    )
    words = ("toy/mlp", "toy/embedding", "--device", "npusim,cpu.3", "--expectations", str(expected))
    done, rows = run(*words, TORCHGAUGE_NPUSIM_FAULT=fault)
    found = {name: (row.status, row.cause) for name, row in rows.items()}
    on_npusim = {name: found.pop(name) for name in ("mlp@npusim", "embedding@npusim")}
    assert set(on_npusim.values()) == {(Status.PASS, None)}, done.stderr
    (lost,) = [name for name in on_npusim if rows[name].attempts]  # either may be first
    first, second = rows[lost].attempts
    assert (first.status, first.cause, second.status) == (Status.INFRA, Cause.NO_DEVICE, Status.PASS)
    assert first.reason.startswith("the device was lost: RuntimeError: npusim runtime error")
    assert {each.device for each in (first, second)} == {"npusim"}
    assert found == {
        "mlp@cpu.3": (Status.INFRA, Cause.NO_DEVICE),
        "embedding@cpu.3": (Status.INFRA, Cause.NO_DEVICE),
    }, done.stderr
    assert "there is no index 3" in rows["mlp@cpu.3"].reason
    assert done.returncode == 3
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.torch
def test_a_device_that_is_lost_twice_leaves_and_another_takes_over(run, tmp_path: Path) -> None:
    """Its cases are measured in its place; the next run is refused until somebody has released it."""
    fault = "vanish_after_calls=100,on_index=0"
    words = ("toy/mlp", "toy/embedding", "toy/sum", "--device", "npusim,npusim.1", "--prefetch", "1")
    done, rows = run(*words, TORCHGAUGE_NPUSIM_DEVICES="2", TORCHGAUGE_NPUSIM_FAULT=fault)
    assert done.returncode == 0, done.stderr
    assert len(rows) == 6
    assert {row.status for row in rows.values()} == {Status.PASS}
    moved = [row for row in rows.values() if row.case.device.index == 0]
    assert {dict(row.facts)["measured_on"] for row in moved} == {"npusim.1"}
    assert all("measured on npusim.1 instead of its own device" in row.unsteady for row in moved)
    ends = sorted([each.status.value for each in row.attempts] for row in moved)
    assert ends == [[], ["infra", "pass"], ["infra", "pass"]]  # the third was not begun
    assert "device 'npusim' has left the pool: lost 2 times" in done.stderr
    store = ("--store", str(tmp_path / "other"))
    refused = command("run", "toy/mlp", "--device", "npusim", "--config", "eager", *store)
    assert refused.returncode == 3, refused.stderr
    assert "device 'npusim' is in quarantine since" in refused.stderr
    assert "torchgauge devices --release npusim.0, once the device works" in refused.stderr
    assert not (tmp_path / "other").exists()
    listed = command("devices")
    assert "'npusim.0' is in quarantine since" in listed.stdout, listed.stdout
    released = command("devices", "--release", "npusim")
    assert released.returncode == 0, released.stderr
    assert released.stdout.startswith("device 'npusim.0' is out of quarantine")
    assert not list((tmp_path / "leases").glob("*.quarantine"))


@pytest.mark.torch
def test_operator_missing_in_backward_is_named_where_nothing_checks_the_numbers(run):
    """Counting operations comes after a plain step: under a mode the same failure ends the process."""
    done, rows = run(
        "toy/transformer",
        "--device",
        "npusim",
        "--mode",
        "training",
        "--no-accuracy",
        TORCHGAUGE_NPUSIM_MISSING_OPS="aten::native_layer_norm_backward",
    )
    row = rows["transformer@npusim"]
    assert row.status is Status.ERROR, done.stderr
    assert row.failure.missing_op == "aten::native_layer_norm_backward"


@pytest.mark.torch
def test_more_processes_than_devices_are_refused_before_anything_starts(run) -> None:
    """The device that registered itself is counted; every case says how many there are."""
    done, rows = run("distributed", "--models", "collectives-*", "--device", "npusim", "--processes", "3")
    assert done.returncode == 3, done.stderr
    assert len(rows) > 5
    assert {row.status for row in rows.values()} == {Status.UNSUPPORTED}
    assert {row.reason for row in rows.values()} == {"3 processes need 3 devices 'npusim': there is 1"}


@pytest.mark.torch
def test_a_device_that_has_lowered_its_clock_makes_its_rows_unsteady(run):
    """Sampling goes on for a while, which is capped; then the row says in how many blocks, and for what."""
    words = ("toy/mlp", "--device", "npusim", "--quiet-wait", "0.2")
    done, rows = run(*words, TORCHGAUGE_NPUSIM_FAULT="throttles_for=thermal")
    assert done.returncode == 0, done.stderr
    row = rows["mlp@npusim"]
    facts = dict(row.facts)
    assert Modifier.UNSTEADY in row.modifiers
    assert f"the device had lowered its clock (thermal) in {facts['blocks']} of" in facts["unsteady"]
    assert facts["throttled_counted"] == facts["throttled_blocks"] == facts["blocks"] > 0


@pytest.mark.torch
def test_blocks_with_a_lower_clock_are_left_out_where_there_are_others(run):
    """The row says how many there were and how long a step took; on a busy machine even they must count."""
    fault = "throttles_for=power cap,throttled_answers=3"
    done, rows = run("toy/mlp", "--device", "npusim", TORCHGAUGE_NPUSIM_FAULT=fault)
    assert done.returncode == 0, done.stderr
    facts = dict(rows["mlp@npusim"].facts)
    assert facts["throttled_blocks"] == 3
    assert facts["throttled_for"] == "power cap"
    assert facts["throttled_step_s"] > 0
    assert ("lowered its clock" in str(facts.get("unsteady", ""))) is (facts["throttled_counted"] > 0)
    (latency,) = [each for each in rows["mlp@npusim"].measurements if each.metric == "latency"]
    assert len(latency.samples) == facts["blocks"] > 0
