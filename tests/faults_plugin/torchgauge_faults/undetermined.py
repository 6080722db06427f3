"""Suite ``undetermined``: programs whose results chance decides in part, and wrong ones beside them."""

from __future__ import annotations

from pathlib import Path

from torchgauge.records import Workload
from torchgauge.suites.catalog import YamlSuite
from torchgauge.suites.suite import BuiltWorkload

SUITE = YamlSuite(
    name="undetermined",
    doc="Programs whose results chance decides in part; for tests only.",
    data=Path(__file__).parent / "undetermined.yaml",
    builder="torchgauge_faults.undetermined:build",
)


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    """Build the program that ``workload`` names."""
    from torchgauge_faults import undetermined_models

    return undetermined_models.build(workload)
