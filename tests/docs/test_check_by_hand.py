"""A number of the demo can be checked by hand in the environment that it makes, as the tutorial says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from doc_pages import ROOT, blocks_of


@pytest.mark.torch
def test_the_lines_of_the_tutorial_print_a_time() -> None:
    """Where torchvision cannot load its operators, too."""
    (block,) = (
        each for each in blocks_of(ROOT / "docs" / "tutorial.md", "python") if "import timm" in each.text
    )
    done = subprocess.run(
        [sys.executable, "-c", block.text], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\d+\.\d ms\n", done.stdout)
