"""Temporary files of a host and of what it runs go with it, however it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import PATIENCE_S, left_after_patience

from torchgauge.harness.pool.host_process import HostOptions, HostProcess

PREPARED = "torchgauge.records"
TORCH = "torch"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files of this process, for the length of a test."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield tmp_path
    tempfile.tempdir = None


def _host(log: Path, *preload: str) -> HostProcess:
    return HostProcess(HostOptions(sys.executable, (), preload, warm=True), log)


def _scratch_of(host: HostProcess) -> Path:
    variables = Path(f"/proc/{host.pid}/environ").read_bytes().split(b"\0")
    return Path(next(v for v in variables if v.startswith(b"TMPDIR=")).decode().partition("=")[2])


def test_a_host_that_is_closed_takes_its_temporary_files_with_it(temporary: Path) -> None:
    """Also those of what was killed before it could remove them."""
    host = _host(temporary / "host.log", PREPARED)
    try:
        assert host.receive(PATIENCE_S)
        scratch = _scratch_of(host)
        assert scratch.parent == temporary
        (scratch / "tmpabc").mkdir()
        (scratch / "tmpabc" / "cc1.s").write_text("left by a compiler")
    finally:
        host.close()
    assert [path.name for path in temporary.iterdir()] == ["host.log"]


def test_a_host_whose_parent_was_killed_removes_them_itself(temporary: Path) -> None:
    """Nobody else could."""
    parent = """
import os, sys, time
from pathlib import Path
from torchgauge.harness.pool.host_process import HostOptions, HostProcess
host = HostProcess(HostOptions(sys.executable, (), ("torchgauge.records",), warm=True), Path(sys.argv[1]))
assert host.receive(240.0)
print("ready", flush=True)
time.sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", parent, str(temporary / "host.log")], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        assert len(list(temporary.glob("torchgauge-host-*"))) == 1
        child.kill()
    left_after_patience(lambda: list(temporary.glob("torchgauge-host-*")))
    assert [path.name for path in temporary.iterdir()] == ["host.log"]


def test_what_inductor_keeps_among_temporary_files_outlives_the_host(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Precompiled headers would cost every run ten seconds."""
    pytest.importorskip("torch")
    monkeypatch.setenv("XDG_CACHE_HOME", str(temporary / "cache"))
    host = _host(temporary / "host.log", TORCH)
    try:
        assert host.receive(PATIENCE_S)
        scratch = _scratch_of(host)
        asked = "from torch._inductor.runtime import cache_dir_utils as c; print(c.default_cache_dir())"
        folder = subprocess.run(
            [sys.executable, "-c", asked],
            env={**os.environ, "TMPDIR": str(scratch)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        assert Path(folder).parent == scratch
        Path(folder, "header.gch").write_text("kept")
    finally:
        host.close()
    kept = temporary / "cache" / "torchgauge" / "headers"
    assert (kept / "header.gch").read_text() == "kept"
    assert kept.stat().st_mode & 0o777 == 0o700
    assert not scratch.exists()
