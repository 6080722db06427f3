"""A host that never says that it is ready: whether it died or is late is not the same news."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from torchgauge.harness.pool.host_process import HostOptions, HostProcess


@pytest.mark.parametrize(
    ("line", "fate"),
    [
        ("import os; os._exit(3)", "crashed while importing its modules (exit code 3)"),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "crashed while importing its modules (exit code -9)",
        ),
    ],
)
def test_a_host_that_dies_says_with_which_code(tmp_path: Path, line: str, fate: str) -> None:
    """Its replies end, and the code tells a killed one from one that left."""
    host = _host_that_imports(tmp_path, line)
    try:
        assert host.receive(PATIENCE_S) is None
        assert host.fate() == fate
    finally:
        host.close()


def test_a_host_that_is_late_is_not_called_dead(tmp_path: Path) -> None:
    """A busy machine is no broken package."""
    host = _host_that_imports(tmp_path, "import time; time.sleep(600)")
    try:
        assert host.receive(0.2) == {}
        assert host.fate() == "was not ready in time"
    finally:
        host.close()


def test_a_host_that_reads_nothing_holds_nobody_up(tmp_path: Path) -> None:
    """A model may stop its host and fill the pipe of commands: writing one more returns all the same."""
    host = _host_that_imports(tmp_path, "import time; time.sleep(600)")
    try:
        for _ in range(100):
            host.send(cmd="kill", filler="x" * 3000)
        assert host.receive(0.2) == {}
    finally:
        host.close(0.0)


POOL = """
import sys
import torch.utils._triton
pool = "torch._inductor.async_compile"
torch.utils._triton.has_triton_package = lambda: sys._getframe(1).f_globals["__name__"] == pool
__import__(pool)
sys.modules[pool].maybe_warm_pool()
"""
"""What the import of inductor does in torch 2.5 to 2.7 where Triton is installed, as with CUDA builds."""


@pytest.mark.torch
def test_a_host_forks_where_triton_is_installed(tmp_path: Path) -> None:
    """Otherwise inductor starts threads, and compile times of fresh workers include imports."""
    host = _host_that_imports(tmp_path, POOL)
    try:
        ready = host.receive(PATIENCE_S)
        assert ready is not None
        assert (ready["ev"], ready["warm"], ready["notes"]) == ("ready", True, [])
    finally:
        host.close()


def _host_that_imports(folder: Path, line: str) -> HostProcess:
    (folder / "trouble.py").write_text(f"{line}\n", encoding="utf-8")
    path = (("PYTHONPATH", f"{folder}:{Path(__file__).parents[3] / 'src'}"),)
    return HostProcess(HostOptions(sys.executable, path, ("trouble",), warm=True), folder / "host.log")
