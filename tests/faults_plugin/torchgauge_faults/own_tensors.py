"""Suite ``own_tensors``: programs that refuse tensors other than those their author made."""

from __future__ import annotations

from pathlib import Path

from torchgauge.records import Workload
from torchgauge.suites.catalog import YamlSuite
from torchgauge.suites.suite import BuiltWorkload

SUITE = YamlSuite(
    name="own_tensors",
    doc="Programs that refuse other tensors; for tests only.",
    data=Path(__file__).parent / "own_tensors.yaml",
    builder="torchgauge_faults.own_tensors:build",
)


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    """Build the program that ``workload`` names."""
    from torchgauge_faults import own_tensors_models

    return own_tensors_models.build(workload)
