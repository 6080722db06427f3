"""What one job leaves behind is not what the next one executes: caches of code, and the user's site."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import pytest

TOY = ("toy", "--device", "cpu", "--config", "eager", "--models", "mlp")


def unwrapped(text: str) -> str:
    """``text`` in one line."""
    return " ".join(text.split())


def variables_of_the_model(sandbox, **variables: str) -> dict[str, str]:
    """The variables that a measured model was given, by its log."""
    words = ("forgers", "--tier", "full", "--models", "tells", "--device", "fake", "--config", "eager")
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
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "HF_MODULES_CACHE"):
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
    [(0o777, None, "can be written to by other users"), (0o700, 12345, "belongs to another user")],
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
