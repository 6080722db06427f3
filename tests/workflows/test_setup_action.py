"""The script of the setup action installs what a lock file has the hashes of, and nothing else."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from small_wheels import wheel

SCRIPT = Path(__file__).parents[2] / ".github" / "actions" / "setup" / "install.sh"


@pytest.mark.parametrize("replaced", [False, True])
def test_a_package_that_was_replaced_is_not_installed(tmp_path: Path, replaced: bool) -> None:
    """Its hash is not the one in the file; without a file it would have been taken."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    found = hashlib.sha256(wheel(wheels, "dependency").read_bytes()).hexdigest()
    gauge = wheel(wheels, "gauge", "dependency")
    (tmp_path / "locked.txt").write_text(f"dependency==1.0 --hash=sha256:{'0' * 64 if replaced else found}\n")
    told = {name: str(tmp_path / name) for name in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_ENV")}
    names = {**told, "RUNNER_TEMP": str(tmp_path), "LOCKED": "locked.txt", "TORCHGAUGE": str(gauge)}
    done = subprocess.run(
        ["bash", str(SCRIPT)],
        cwd=tmp_path,
        env={**os.environ, **names, "PYTHON": "", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)},
        capture_output=True,
        text=True,
        check=False,
    )
    if replaced:
        assert done.returncode != 0
        assert "DO NOT MATCH THE HASHES" in done.stdout + done.stderr
        assert not (tmp_path / "GITHUB_PATH").exists()
        return
    assert done.returncode == 0, done.stdout + done.stderr
    python = (tmp_path / "GITHUB_OUTPUT").read_text().removeprefix("python=").strip()
    subprocess.run([python, "-c", "import dependency, gauge"], check=True)


def test_what_is_installed_finds_nothing_that_a_job_before_has_left(tmp_path: Path) -> None:
    """Caches are named, and the user's site is left out, before anything is installed."""
    told = {name: str(tmp_path / name) for name in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_ENV")}
    names = {**told, "RUNNER_TEMP": str(tmp_path), "TORCHGAUGE": str(wheel(tmp_path, "gauge"))}
    done = subprocess.run(
        ["bash", str(SCRIPT)],
        cwd=tmp_path,
        env={**os.environ, **names, "PYTHON": "", "PIP_NO_INDEX": "1", "INSTALL": "env >seen"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seen = (tmp_path / "seen").read_text().splitlines()
    later = (tmp_path / "GITHUB_ENV").read_text().splitlines()
    assert {f"PIP_CACHE_DIR={tmp_path}/cache/pip", "PYTHONNOUSERSITE=1"} <= set(later)
    assert set(later) <= set(seen)
