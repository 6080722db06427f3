"""The notebook of the documentation runs, and has the outputs that a reader sees."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "notebooks" / "measure-and-compare.ipynb"


@pytest.mark.torch
def test_the_cells_run() -> None:
    """From the first to the last, in a new process."""
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "run_notebook.py", NOTEBOOK, "--check"],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_its_outputs_are_kept() -> None:
    """A page that shows the file shows a table and a verdict."""
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    shown = "".join("".join(each["data"]["text/plain"]) for cell in cells for each in cell["outputs"])
    assert "inductor" in shown
    assert "new against old: " in shown
