"""Benchmarks are scripts beside each other, not a package: tests import them by their file names."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
