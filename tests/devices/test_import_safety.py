"""`import torch` is tried with and without the extension and its stack, and what broke it is unwrapped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from torchgauge.devices import probe as probe_module
from torchgauge.devices import probe_questions
from torchgauge.devices.device import DeviceDescriptor
from torchgauge.devices.import_safety import ImportSafety, Way, import_safety
from torchgauge.devices.listing import import_lines

pytestmark = pytest.mark.torch
NEEDS_STACK = """
import os
if os.environ.get("XYZ_VISIBLE") == "" or not os.environ.get("LD_LIBRARY_PATH"):
    try:
        raise OSError("libxyz.so: cannot open shared object file")
    except OSError as error:
        raise RuntimeError("initialisation failed") from error
"""
XYZ = DeviceDescriptor("xyz", "XYZ", "xyz:Session", "xyz", visibility_variables=("XYZ_VISIBLE", "XYZ_TOO"))


@pytest.fixture(scope="module")
def needy(tmp_path_factory: pytest.TempPathFactory, make_extension: Callable[..., Path]) -> ImportSafety:
    """An extension that works with its stack and raises without."""
    folder = make_extension(tmp_path_factory.mktemp("needy") / "site", "xyz", NEEDS_STACK)
    environment = {"PYTHONPATH": str(folder), "LD_LIBRARY_PATH": "/opt/xyz/lib"}
    return import_safety(sys.executable, "xyz", [XYZ], environment=environment)


def test_each_way_has_its_answer_and_its_time(needy: ImportSafety) -> None:
    """It survives as it is, without autoload and without the package, and not without the stack."""
    survived = {trial.way: trial.survived for trial in needy.trials}
    assert survived == {
        Way.AS_IT_IS: True,
        Way.NO_AUTOLOAD: True,
        Way.NO_PACKAGE: True,
        Way.NO_STACK: False,
    }
    assert not needy.safe
    assert all((trial.import_s or 0) > 0 for trial in needy.trials if trial.survived)
    assert [item.package for item in needy.extensions] == ["torch-xyz"]


def test_the_root_cause_comes_first(needy: ImportSafety) -> None:
    """The missing library, then what it was wrapped in, then what to do."""
    trouble = needy.trials[-1].trouble
    assert trouble is not None
    assert trouble.cause == "OSError: libxyz.so: cannot open shared object file"
    lines = import_lines(needy, 100)
    (root,) = [number for number, line in enumerate(lines) if "root cause: OSError: libxyz.so" in line]
    assert "raised as: RuntimeError: initialisation failed" in lines[root + 1]
    assert any("Failed to load the backend extension: xyz" in line for line in lines[root + 2 :])
    assert any("set TORCH_DEVICE_BACKEND_AUTOLOAD=0 to use torch" in line for line in lines)
    assert max(map(len, lines)) <= 100


def test_an_extension_that_ends_the_process_is_survived_without_it(
    tmp_path: Path, make_extension: Callable[..., Path]
) -> None:
    """A segmentation fault is a trial that failed; where no stack is known that way is not tried."""
    folder = make_extension(tmp_path / "site", "xyz", "import ctypes\nctypes.string_at(0)")
    environment = {"PYTHONPATH": str(folder), "LD_LIBRARY_PATH": ""}
    found = import_safety(sys.executable, "xyz", [], environment=environment)
    survived = {trial.way: trial.survived for trial in found.trials}
    assert survived == {
        Way.AS_IT_IS: False,
        Way.NO_AUTOLOAD: True,
        Way.NO_PACKAGE: True,
        Way.NO_STACK: None,
    }
    assert found.trials[0].trouble is not None
    assert "SIGSEGV" in found.trials[0].trouble.cause
    assert "not tried: the device has no visibility variable" in found.trials[-1].how


def test_the_command_ends_with_1_where_torch_does_not_survive(npusim_path: str, tmp_path: Path) -> None:
    """A device whose package needs its driver: found by the command, with the cause."""
    (tmp_path / "libnpusim_driver.so").touch()
    words = ("devices", "--import-safety", "--device", "npusim", "--json")
    done = subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", *words],
        env={
            **os.environ,
            "PYTHONPATH": npusim_path,
            "LD_LIBRARY_PATH": str(tmp_path),
            "TORCHGAUGE_NPUSIM_FAULT": "raise_without_driver",
        },
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    data = json.loads(done.stdout)
    assert data["safe"] is False
    assert [trial["survived"] for trial in data["trials"]] == [True, True, True, False]
    assert data["trials"][-1]["trouble"]["cause"].startswith("OSError: libnpusim_driver.so")


def test_device_without_import_safety_is_a_usage_error() -> None:
    """The option belongs to the report, and the hint names the verb for one device."""
    done = subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", "devices", "--device", "cpu"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert "torchgauge doctor --device cpu" in done.stderr


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("import atexit, time\natexit.register(time.sleep, 600)", "did not exit within 15 s"),
        (
            "import atexit, os, signal\natexit.register(os.kill, os.getpid(), signal.SIGSEGV)",
            "printed its result and was killed by SIGSEGV",
        ),
    ],
)
def test_an_exit_that_hangs_or_crashes_is_no_safe_import(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make_extension: Callable[..., Path],
    body: str,
    words: str,
) -> None:
    """Torch imports and computes, and the process does not end well; the entry point is named otherwise."""
    monkeypatch.setattr(probe_questions, "EXIT_S", 15.0)
    monkeypatch.setattr(probe_module, "EXIT_S", 15.0)
    folder = make_extension(tmp_path / "site", "otherwise", body)
    found = import_safety(sys.executable, "xyz", [], environment={"PYTHONPATH": str(folder)})
    trials = {trial.way: trial for trial in found.trials}
    assert not trials[Way.AS_IT_IS].survived
    assert trials[Way.NO_AUTOLOAD].survived
    trouble = trials[Way.AS_IT_IS].trouble
    assert trouble is not None
    assert words in trouble.cause
    assert trouble.doing == "end the process"


def test_an_entry_point_of_another_name_is_hidden_all_the_same(
    tmp_path: Path, make_extension: Callable[..., Path]
) -> None:
    """Where no entry point is called after the device and the import fails, all of them are looked at."""
    folder = make_extension(tmp_path / "site", "otherwise", "raise RuntimeError('no driver')")
    found = import_safety(sys.executable, "xyz", [], environment={"PYTHONPATH": str(folder)})
    assert [item.package for item in found.extensions if item.name == "otherwise"] == ["torch-otherwise"]
    survived = {trial.way: trial.survived for trial in found.trials}
    assert (survived[Way.AS_IT_IS], survived[Way.NO_PACKAGE]) == (False, True)
