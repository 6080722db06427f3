"""``import torchgauge`` is cheap, and its public names are there."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("torch", "pandas", "plotly", "numpy", "scipy", "pyarrow", "click", "rich", "yaml")


def test_importing_loads_nothing_heavy() -> None:
    """Torch, pandas and plotly are imported when a name needs them."""
    program = f"import sys, torchgauge; dir(torchgauge); print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
