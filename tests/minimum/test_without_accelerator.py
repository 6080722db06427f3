"""A torch that raises where no accelerator is there, as 2.6 does, is whole: it has its CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import torchgauge

SOURCE = Path(torchgauge.__file__).resolve().parent.parent
LIKE_2_6 = """
import importlib.abc, sys

def raising(*_):
    raise RuntimeError("Cannot access accelerator device when none is available.")

class Patch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torch.accelerator":
            sys.modules["torch._C"]._accelerator_getAccelerator = raising
        mtia = sys.modules.get("torch.mtia")
        if hasattr(mtia, "device_count"):
            mtia.device_count = lambda: -1

sys.meta_path.insert(0, Patch())
"""


@pytest.fixture
def like_2_6(tmp_path: Path) -> dict[str, str]:
    """The variables under which each process has a torch that raises so."""
    (tmp_path / "sitecustomize.py").write_text(LIKE_2_6)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(SOURCE)])}


@pytest.mark.parametrize("words", [("devices",), ("doctor",)])
def test_host_is_usable_where_torch_raises_for_an_absent_accelerator(
    like_2_6: dict[str, str], words: tuple[str, ...]
) -> None:
    """An exception is the answer to a question, and less than no device is none."""
    done = subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", *words],
        env=like_2_6,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "broken" not in done.stdout
    assert "Cannot access accelerator" not in done.stdout + done.stderr
