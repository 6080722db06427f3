"""What one job leaves behind is not what the next one executes: caches of code, and the user's site."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from pathlib import Path

import pytest

TOY = ("toy", "--device", "cpu", "--config", "eager", "--models", "mlp")


def unwrapped(text: str) -> str:
    """``text`` in one line."""
    return " ".join(text.split())


CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "HF_MODULES_CACHE")


def variables_of_the_model(sandbox, **variables: str) -> dict[str, str]:
    """The variables that a measured model was given, by its log."""
    words = ("forgers", "--tier", "full", "--models", "tells", "--device", "fake", "--config", "eager")
    for name in CACHES:  # torch, once imported by pytest, may have set them
        sandbox.environment.pop(name, None)
    done = sandbox.measure(*words, **variables)
    assert done.returncode == 0, done.stderr
    (log,) = (sandbox.folder().path / "logs").glob("*tells*-1.log")
    return dict(line.partition("=")[::2] for line in log.read_text().splitlines() if "=" in line)


def test_no_process_reads_the_users_site(sandbox) -> None:
    """A file that ends in .pth there would be executed by every interpreter of that user."""
    assert variables_of_the_model(sandbox)["PYTHONNOUSERSITE"] == "1"


def test_a_job_has_its_caches_of_code_to_itself(sandbox, tmp_path: Path) -> None:
    """In GitHub Actions they lie in the folder that goes with the job, and those of compiled models too."""
    job = {"GITHUB_ACTIONS": "true", "RUNNER_TEMP": str(tmp_path / "job"), "TORCHGAUGE_COMPILE_CACHE": ""}
    given = variables_of_the_model(sandbox, **job)
    for name in CACHES:
        assert given[name].startswith(job["RUNNER_TEMP"]), name
    shown = sandbox.run("cache", "list", **job)
    assert job["RUNNER_TEMP"] in shown.stdout + shown.stderr


@pytest.mark.torch
def test_headers_of_a_job_before_are_not_used(sandbox, tmp_path: Path) -> None:
    """Neither those among temporary files, where anybody may have put them, nor those of the user."""
    planted = sandbox.temporary / f"torchinductor_{getpass.getuser()}"
    planted.mkdir(exist_ok=True)
    job = {"GITHUB_ACTIONS": "true", "RUNNER_TEMP": str(tmp_path / "job")}
    done = sandbox.measure(*TOY, **job)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "job" / "cache" / "torchgauge" / "headers").stat().st_mode & 0o777 == 0o700
    assert list(planted.iterdir()) == []


@pytest.mark.torch
@pytest.mark.parametrize(
    ("mode", "owner", "words"),
    [(0o777, None, "is writable by other users"), (0o700, 12345, "belongs to another user")],
)
def test_headers_that_others_may_write_are_refused_by_name(
    sandbox, tmp_path: Path, mode: int, owner: int | None, words: str
) -> None:
    """What is in the folder would be executed; the run goes on without it."""
    if owner is not None and os.geteuid() != 0:
        pytest.skip("only root gives a folder away")
    headers = tmp_path / "cache" / "torchgauge" / "headers"
    headers.mkdir(parents=True)
    headers.chmod(mode)
    if owner is not None:
        os.chown(headers, owner, owner)
    done = sandbox.measure(*TOY, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    assert f"{headers} {words}" in unwrapped(done.stderr)
    assert list(headers.iterdir()) == []


def test_what_looks_for_orphans_of_a_job_finds_workers(sandbox) -> None:
    """A runner ends what has its variable, whoever it has become a child of."""
    assert variables_of_the_model(sandbox, RUNNER_TRACKING_ID="job-7")["RUNNER_TRACKING_ID"] == "job-7"


def test_a_daemon_that_killed_what_would_end_it_ends_with_the_command(sandbox) -> None:
    """It lost its keeper and its host, and torchgauge has adopted it."""
    words = ("--tier", "full", "--models", "outlives", "--device", "fake", "--config", "eager")
    done = sandbox.measure("forgers", *words)
    assert done.returncode == 3, done.stderr
    assert sandbox.survivors() == []


def test_shared_memory_that_was_left_is_told(sandbox) -> None:
    """No end of a process removes it, and it takes memory from everything that follows."""
    words = ("--tier", "full", "--models", "shares", "--device", "fake", "--config", "eager")
    file = Path("/dev/shm", f"forged-{sandbox.marker}")
    try:
        done = sandbox.measure("forgers", *words, TORCHGAUGE_FAULTS_SHARED=sandbox.marker)
        assert done.returncode == 0, done.stderr
        left = f"files left in shared memory, which torchgauge does not remove: {file} (67,108,864 bytes)"
        assert left in unwrapped(done.stderr)
    finally:
        file.unlink(missing_ok=True)


def test_many_files_left_in_shared_memory_are_one_line(sandbox) -> None:
    """It names twenty of them, and nothing in a name begins a line or colours it."""
    words = ("--tier", "full", "--models", "litters", "--device", "fake", "--config", "eager")
    try:
        done = sandbox.measure("forgers", *words, TORCHGAUGE_FAULTS_SHARED=sandbox.marker)
        assert done.returncode == 0, done.stderr
        assert f"forged-{sandbox.marker}-" in done.stderr
        assert "\\n::error:: (0 bytes) and 5 more" in done.stderr
    finally:
        for file in Path("/dev/shm").glob(f"forged-{sandbox.marker}-*"):
            file.unlink()


def test_a_model_writes_no_command_into_the_log_of_torchgauge(sandbox) -> None:
    """In a step of GitHub Actions: only who may trace every process can, which here nobody may."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root cannot give up what lets it trace every process")
    untraced = ("setpriv", "--bounding-set=-sys_ptrace") if os.geteuid() == 0 else ()
    words = ("--tier", "full", "--models", "orders", "--device", "fake", "--config", "eager", "--store")
    command = sandbox.command("run", "forgers", *words, str(sandbox.store_path), *sandbox.quick)
    done = subprocess.run(
        [*untraced, *command],
        env=sandbox.environment | {"GITHUB_ACTIONS": "true", "RUNNER_TEMP": str(sandbox.temporary)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "::stop-commands::" not in done.stdout + done.stderr
    (log,) = (sandbox.folder().path / "logs").glob("*orders*-1.log")
    assert "Permission denied" in log.read_text()
