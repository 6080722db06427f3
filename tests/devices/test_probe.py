"""The probe survives whatever an extension does to the interpreter, and says what it was."""

from __future__ import annotations

import sys
import venv
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from waiting import wait_until

from torchgauge.devices import probe_questions
from torchgauge.devices.discover import find_device
from torchgauge.devices.probe import ProbeReport, ProbeState, probe
from torchgauge.errors import UnknownNameError

Install = Callable[[str, str], Path]

FAULTS = {
    "raising": """
try:
    open('/no/such/libdriver.so')
except OSError as error:
    raise RuntimeError('init') from error
""",
    "exiting": "import os\nprint('no device found', flush=True)\nos._exit(1)",
    "crashing": "import ctypes\nctypes.string_at(0)",
}


@pytest.fixture(scope="module")
def reports(
    tmp_path_factory: pytest.TempPathFactory, make_extension: Callable[..., Path]
) -> dict[str, ProbeReport]:
    """One probe of the real torch for each fault, two at a time."""
    folders = {}
    for name, body in FAULTS.items():
        folders[name] = tmp_path_factory.mktemp(name)
        make_extension(folders[name], name, body)

    def run(name: str) -> ProbeReport:
        return probe(sys.executable, environment={"PYTHONPATH": str(folders[name])})

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(FAULTS, pool.map(run, FAULTS), strict=True))


@pytest.mark.torch
def test_extension_that_raises_shows_its_innermost_cause(reports: dict[str, ProbeReport]) -> None:
    """The missing library is named, not torch's wrapper around it."""
    trouble = reports["raising"].trouble
    assert trouble is not None
    assert trouble.cause.startswith("FileNotFoundError")
    assert "/no/such/libdriver.so" in trouble.cause
    assert len(trouble.chain) == 3
    assert "Failed to load the backend extension: raising" in trouble.chain[0]
    assert trouble.doing == "import torch"


@pytest.mark.torch
def test_extension_that_ends_the_interpreter_is_told_from_an_exception(
    reports: dict[str, ProbeReport],
) -> None:
    """Exit status 1 without a traceback is named, and the last output is kept."""
    trouble = reports["exiting"].trouble
    assert trouble is not None
    assert "status 1 without an exception" in trouble.cause
    assert "no device found" in trouble.detail


@pytest.mark.torch
def test_extension_that_crashes_names_the_signal(reports: dict[str, ProbeReport]) -> None:
    """A segmentation fault is called by its name."""
    trouble = reports["crashing"].trouble
    assert trouble is not None
    assert "SIGSEGV during: import torch" in trouble.cause


@pytest.mark.torch
@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_broken_extension_leaves_torch_usable_without_it(reports: dict[str, ProbeReport], fault: str) -> None:
    """Both outcomes are kept: broken with autoload, sound without, and what to type."""
    report = reports[fault]
    assert report.state is ProbeState.BROKEN
    assert report.without_autoload is not None
    assert report.usable is report.without_autoload
    assert report.usable.device("cpu") is not None
    assert report.trouble is not None
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in report.trouble.fix
    assert f"pip uninstall torch-{fault}" in report.trouble.fix


@pytest.mark.torch
def test_sound_torch_says_what_it_is(extension: Install) -> None:
    """Version, import time, packages and the CPU are reported; noise on stdout is ignored."""
    extension("loud", 'print(\'{"stage": "done"}\')')
    report = probe(sys.executable)
    assert report.ok, report.trouble
    assert report.trouble is None
    assert report.torch is not None
    assert report.torch.import_s > 0
    assert dict(report.packages)["torch"].split("+")[0] == report.torch.version.split("+")[0]
    assert "torch-loud" in [item.package for item in report.extensions]
    cpu = report.device("cpu")
    assert cpu is not None
    assert cpu.autocast_dtypes


def test_hanging_extension_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_extension: Callable[..., Path]
) -> None:
    """At the time limit the whole process group ends, and the limit is in the message."""
    pid_file = tmp_path / "pid"
    body = f"""
import pathlib, subprocess, time
child = subprocess.Popen(['sleep', '600'])
pathlib.Path({str(pid_file)!r}).write_text(str(child.pid))
time.sleep(600)
"""
    folder = make_extension(tmp_path / "site", "hanging", "pass")
    (folder / "torch.py").write_text(body, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    report = probe(sys.executable, timeout=6)
    assert report.state is ProbeState.BROKEN
    assert report.trouble is not None
    assert "did not end within 6 s during: import torch" in report.trouble.cause
    _wait_until_gone(int(pid_file.read_text()))


def test_a_misspelt_device_beside_a_hanging_extension_costs_the_limit_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_extension: Callable[..., Path]
) -> None:
    """A name that nothing answers to is looked for once, no longer than the limit allows."""
    folder = make_extension(tmp_path / "site", "hanging", "pass")
    (folder / "torch.py").write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    with pytest.raises(UnknownNameError, match=r"did not end within 6 s during: import torch"):
        find_device("npuu", sys.executable, timeout=6)


def test_system_exit_during_import_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_extension: Callable[..., Path]
) -> None:
    """An extension that calls sys.exit does not pass for an interpreter that ended by itself."""
    folder = make_extension(tmp_path / "site", "quitting", "pass")
    (folder / "torch.py").write_text("import sys\nsys.exit('no licence')\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    report = probe(sys.executable)
    assert report.trouble is not None
    assert report.trouble.cause == "SystemExit: no licence"
    assert "fails even with" in report.trouble.fix


def test_interpreter_that_is_missing() -> None:
    """A path that names nothing says so."""
    report = probe("/no/such/python")
    assert report.state is ProbeState.NO_INTERPRETER
    assert report.trouble is not None
    assert report.trouble.cause == "/no/such/python: No such file or directory"


def test_program_that_is_no_python() -> None:
    """A program that runs no probe is no interpreter, whatever its exit status."""
    report = probe("/bin/true")
    assert report.state is ProbeState.NO_INTERPRETER
    assert report.trouble is not None
    assert "could not run the device probe" in report.trouble.cause


def test_interpreter_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No torch is a state of its own, with what to type; the interpreter is known all the same."""
    venv.create(tmp_path / "bare", symlinks=True)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    report = probe(str(tmp_path / "bare" / "bin" / "python"))
    assert report.state is ProbeState.NO_TORCH
    assert report.version
    assert report.trouble is not None
    assert report.trouble.fix.endswith("-m pip install torch")
    assert report.without_autoload is None


def test_broken_torch_is_not_blamed_on_extensions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any extension there is nothing to switch off, so nothing is tried twice."""
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch.so: not found')\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    venv.create(tmp_path / "bare", symlinks=True)
    report = probe(str(tmp_path / "bare" / "bin" / "python"))
    assert report.extensions == ()
    assert report.state is ProbeState.BROKEN
    assert report.trouble is not None
    assert report.trouble.cause == "ImportError: libtorch.so: not found"
    assert report.without_autoload is None


@pytest.mark.torch
def test_simulated_accelerator_is_found_and_degraded_hooks_are_named(npusim_report: ProbeReport) -> None:
    """A device without events is present, with the reason of the absence; its counters are its module's."""
    facts = npusim_report.accelerator
    assert facts is not None
    assert (facts.torch_type, facts.count, facts.fork_safe) == ("npusim", 1, True)
    hooks = {hook.name: hook for hook in facts.hooks}
    assert hooks["synchronize"].source == "torch.npusim.synchronize"
    assert hooks["peak memory"].source == "torch.npusim.max_memory_allocated"
    assert hooks["events"].source == ""


def _wait_until_gone(pid: int) -> None:
    """Wait until the process has ended (a zombie has): a kill is sent at once, but takes effect later."""
    wait_until(lambda: _gone(pid), f"the end of process {pid}, whose group was killed")


def _gone(pid: int) -> bool:
    """Whether the process has ended (a zombie has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before it was opened, or between that and reading
        return True


def test_a_question_without_an_answer_costs_that_answer(
    monkeypatch: pytest.MonkeyPatch, npusim_path: str
) -> None:
    """The device is found by its name with all other answers, also where the process does not end."""
    monkeypatch.setattr(probe_questions, "QUESTION_S", 10.0)
    monkeypatch.setattr(probe_questions, "EXIT_S", 2.0)
    variables = {"PYTHONPATH": npusim_path, "TORCHGAUGE_NPUSIM_FAULT": "hang_in=mem_get_info,hang_at_exit"}
    report = probe(sys.executable, environment=variables)
    assert report.ok
    assert "did not exit within" in report.exit_problem
    facts = report.device("npusim")
    assert facts is not None
    assert [hook.name for hook in facts.hooks if hook.problem == "it timed out"] == ["memory"]
    assert facts.units[0].model == "npusim (simulated)"
    assert facts.autocast_dtypes
    assert find_device("npusim", sys.executable, report=report).torch_type == "npusim"
