"""Write ``.github/workflows/nightly.yml`` from the template of ``torchgauge ci init``."""

from __future__ import annotations

from pathlib import Path

from torchgauge.workflows.config import read_config
from torchgauge.workflows.init import render

ROOT = Path(__file__).resolve().parents[1]
NIGHTLY = ROOT / ".github" / "workflows" / "nightly.yml"
HEAD = "# Written by scripts/write_nightly.py from src/torchgauge/workflows/templates/nightly.yml.\n"


def nightly() -> str:
    """Return the workflow of this repository, which others call."""
    return HEAD + render("nightly", read_config(ROOT / "torchgauge.yml"), here=True)


if __name__ == "__main__":
    NIGHTLY.write_text(nightly(), encoding="utf-8")
