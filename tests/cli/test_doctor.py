"""``torchgauge doctor --device``: the numbers, the history, the verdict and what a person may get wrong."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchgauge.harness.doctor.doctor_run import calibration_campaign, run_calibration
from torchgauge.harness.run.progress import Progress
from torchgauge.records import Calibration, Status
from torchgauge.results.journal import End, Kind, RunState
from torchgauge.results.store import Store
from torchgauge.suites.calibration import PARTS

torch_here = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
npusim_here = pytest.mark.skipif(
    importlib.util.find_spec("torchgauge_npusim") is None, reason="the simulated device is not installed"
)
CASES = sum(map(len, PARTS.values()))
SILENT = """
import time
from torchgauge.devices.cpu import DEVICE as HOST, CpuSession
from torchgauge.devices.device import DeviceDescriptor

class Silent(CpuSession):
    def synchronize(self):
        time.sleep(3600)

DEVICE = DeviceDescriptor("silent", "Silent", "silent_device:Silent", HOST.torch_type)
"""


def doctor(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ``torchgauge doctor`` with a store in ``folder``."""
    command = [sys.executable, "-m", "torchgauge.cli.main", "doctor", *arguments]
    if "--store" not in arguments:
        command += ["--store", str(folder / "store")]
    return subprocess.run(
        [*command, "--threads", "1"],
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
        cwd=folder,
    )


def calibrate(folder: Path, device: str, **more: Any) -> Any:
    """A quick calibration of ``device`` in this process's name, its progress thrown away."""
    options = {"device": device, "store": str(folder / "store"), "threads": 1, "quick": True}
    options |= {"python": None, "timeout": None, **more}
    return run_calibration(calibration_campaign(options, Progress(io.StringIO())))


def words(calibrated: Any) -> dict[tuple[str, str], str]:
    """What is said of each number, by dtype and metric."""
    return {(r.series.dtype, r.series.metric): r.comparison.word.value for r in calibrated.readings}


def test_a_store_of_a_newer_schema_is_refused_at_once(tmp_path) -> None:
    """Before anything is probed, with what to do."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "store.json").write_text('{"schema_version": 9999}')
    done = doctor(tmp_path, "--device", "cpu")
    assert (done.returncode, done.stdout) == (2, "")
    assert "newer torchgauge" in done.stderr


def test_a_conflicting_package_is_told_with_what_to_type(tmp_path) -> None:
    """A torchaudio that was built for another torch warns, is not imported, and is no reason for exit 3."""
    info = tmp_path / "site" / "torchaudio-2.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torchaudio\nVersion: 2.1.0\n")
    (tmp_path / "site" / "torch-2.13.0.dist-info").mkdir()
    (tmp_path / "site" / "torch-2.13.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n"
    )
    done = doctor_of_packages(tmp_path, str(tmp_path / "site"))
    assert "warn  torchaudio: torchaudio 2.1.0 is built for torch 2.1, but torch 2.13.0 is installed" in done
    assert "-m pip uninstall -y torchaudio" in done


def doctor_of_packages(folder: Path, path: str) -> str:
    """What a plain ``torchgauge doctor`` prints with ``path`` on the interpreter's path."""
    done = subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", "doctor"],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
        cwd=folder,
    )
    assert done.returncode in (0, 3), done.stderr  # 3 where this machine lacks a torch
    return done.stdout


def test_a_store_that_cannot_be_made_is_refused_at_once(tmp_path) -> None:
    """A file is in the way: exit 3, and what to type."""
    (tmp_path / "file").write_text("")
    done = doctor(tmp_path, "--device", "cpu", "--store", str(tmp_path / "file" / "store"))
    assert (done.returncode, done.stdout) == (3, "")
    assert f"{tmp_path / 'file'} is not a folder" in done.stderr
    assert "--store DIR" in done.stderr


def test_words_that_are_no_device_are_refused(tmp_path) -> None:
    """Exit 2, and nothing is written."""
    done = doctor(tmp_path, "--device", "a b:c")
    assert done.returncode == 2, done.stderr
    assert not (tmp_path / "store").exists()


@torch_here
@pytest.mark.torch
def test_a_misspelt_device_is_named_with_its_neighbour(tmp_path) -> None:
    """The name is unknown, a close one is offered, and no store is made."""
    done = doctor(tmp_path, "--device", "cpuu")
    assert done.returncode == 3, done.stderr
    assert "unknown device 'cpuu'; did you mean" in done.stdout
    assert not (tmp_path / "store").exists()


@torch_here
@pytest.mark.torch
def test_the_host_has_a_table_and_a_verdict(tmp_path) -> None:
    """Numbers in base units, reasons for what the host has not, an exit code that goes with the verdict."""
    done = doctor(tmp_path, "--device", "cpu", "--quick", "--json")
    assert done.returncode in (0, 3), done.stderr
    data = json.loads(done.stdout)
    verdict = data["fitness"]["verdict"]
    assert done.returncode == (3 if verdict == "unfit" else 0)
    assert verdict in ("unfit", "unknown")  # never fit: there is no history
    found = data["calibration"]
    numbers = {(r["series"]["dtype"], r["series"]["metric"]): r["summary"] for r in found["readings"]}
    assert {dtype for dtype, metric in numbers if metric == "gemm_flops"} >= {"float32", "float64"}
    assert all(n["median"] > 0 and n["low"] <= n["median"] <= n["high"] for n in numbers.values())
    assert {"copy_bytes_per_s", "launch_s", "launch_return_s", "launch_complete_s", "clock_resolution_s"} <= {
        metric for _, metric in numbers
    }
    assert {gap["status"] for gap in found["gaps"]} == {"unsupported"}
    assert all(gap["reason"] for gap in found["gaps"])
    assert {r["comparison"]["word"] for r in found["readings"]} == {"no history"}
    counts = Store.open(tmp_path / "store").info(found["run_id"]).counts
    assert sum(counts.values()) == CASES


@torch_here
@pytest.mark.torch
def test_numbers_are_judged_by_what_the_store_holds_of_the_machine(tmp_path, build_past) -> None:
    """Runs of this machine that were a hundred times faster make it slower."""
    first = calibrate(tmp_path, "cpu")
    assert set(words(first).values()) == {"no history"}
    usual = {r.series.metric: r.summary.median for r in first.readings if r.series.dtype == "float32"}
    for number in range(7):
        build_past(first, f"past-{number}", usual["gemm_flops"] * 100, usual["copy_bytes_per_s"] / 100)
    second = calibrate(tmp_path, "cpu")
    said = words(second)
    assert said["float32", "gemm_flops"] == "slower"
    assert said["float32", "copy_bytes_per_s"] in ("faster", "too noisy to tell")
    assert said["float64", "gemm_flops"] == "no history"  # the runs before have none of this dtype
    assert second.earlier == 8


@pytest.fixture
def build_past(tmp_path):
    """Write a past run of the machine of a calibration, with a run's own three numbers."""

    def write(calibrated: Any, run_id: str, gemm: float, copy: float) -> None:
        store = Store.open(tmp_path / "store")
        folder = store.run(calibrated.run_id)
        with folder.open_journal() as journal:
            results = list(journal.results())
        kept = store.begin(replace(folder.plan(), run_id=run_id))
        with kept.open_journal() as journal:
            journal.append(Kind.ENVIRONMENT, [calibrated.environment])
            journal.append(Kind.CALIBRATION, [Calibration("cpu", "start", gemm, copy, None, "not asked")])
            bare = [replace(row, run_id=run_id, measurements=(), summaries=()) for row in results]
            journal.append(Kind.RESULT, bare)
            journal.append(Kind.END, [End(RunState.COMPLETE, 0.0)])
        store.finish(run_id)

    return write


@torch_here
@pytest.mark.torch
def test_a_device_that_never_answers_is_asked_once(tmp_path, monkeypatch) -> None:
    """The wait for the device ends at the deadline, is named, and the other parts are not tried."""
    (tmp_path / "silent_device.py").write_text(SILENT)
    information = tmp_path / "silent_device-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: silent-device\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[torchgauge.devices]\nsilent = silent_device:DEVICE\n")
    program = (
        "import json, sys\n"
        "from torchgauge.harness.doctor.doctor_run import *\n"
        "from torchgauge.harness.doctor.fitness import fitness\n"
        "from torchgauge.harness.run.progress import Progress\n"
        "from torchgauge.records import to_plain\n"
        "options = {'device': 'silent', 'store': sys.argv[1], 'threads': 1, 'timeout': 3.0, 'quick': True}\n"
        "options['python'] = None\n"
        "found = run_calibration(calibration_campaign(options, Progress()))\n"
        "print(json.dumps(to_plain([found, fitness(found)])))\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "store")],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, fitness = json.loads(done.stdout.splitlines()[-1])
    assert (found["gaps"][0]["part"], found["gaps"][0]["status"]) == ("answer", "timeout")
    assert {g["status"] for g in found["gaps"][1:]} == {Status.NOT_RUN.value}
    assert all("did not respond" in g["reason"] for g in found["gaps"][1:])
    assert len(found["gaps"]) == CASES
    assert fitness["verdict"] == "unfit"
    assert "the device answers: timeout" in fitness["summary"]


@torch_here
@npusim_here
@pytest.mark.torch
@pytest.mark.full
@pytest.mark.parametrize(
    ("device", "fault", "said"),
    [
        ("npusim", "hang_in_synchronize", "hangs at: torch.npusim.synchronize()"),
        ("npusim", "raise_on_import", "libnpusim_driver.so: cannot open shared object file"),
        ("npusim.5", "", "there is no index 5"),
        ("npusim", "vanish_after_calls=250", "device lost"),
    ],
)
def test_a_broken_device_is_named_with_its_cause(tmp_path, device, fault, said) -> None:
    """A hang, an import that raises, a missing index and a device that goes away: exit 3, and the cause."""
    faults = {"TORCHGAUGE_NPUSIM_FAULT": fault} if fault else {}
    done = doctor(tmp_path, "--device", device, "--quick", "--timeout", "30", **faults)
    assert done.returncode == 3, done.stderr
    assert said in done.stdout
