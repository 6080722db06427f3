"""``import torchgauge`` is cheap, and its public names are there."""

from __future__ import annotations

import subprocess
import sys

import torchgauge

HEAVY = ("torch", "pandas", "plotly", "numpy", "scipy", "pyarrow", "click", "rich", "yaml")


def test_importing_loads_nothing_heavy() -> None:
    """Torch, pandas and plotly are imported when a name needs them."""
    program = f"import sys, torchgauge; dir(torchgauge); print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there_and_documented() -> None:
    """``__all__``, ``dir`` and the attributes agree."""
    assert len(torchgauge.__all__) == len(set(torchgauge.__all__))
    for name in torchgauge.__all__:
        assert name in dir(torchgauge)
        assert getattr(torchgauge, name).__doc__, name


def test_another_name_is_an_attribute_error() -> None:
    """``hasattr`` works as for any module."""
    assert not hasattr(torchgauge, "nonsense")
