"""A suite of models whose mistakes lie outside of a plain output tensor, or in the time after the check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchgauge.suites.catalog import YamlSuite

if TYPE_CHECKING:
    from torchgauge.records import Workload
    from torchgauge.suites.suite import BuiltWorkload

SUITE = YamlSuite(
    name="observed",
    doc="Models that return, change and become odd things; for tests only.",
    data=Path(__file__).parent / "observed.yaml",
    builder="torchgauge_faults.observed:build",
)


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    """The module of the workload's name."""
    from torchgauge_faults import observed_models

    return observed_models.build(workload)


class Box:
    """An object that no library knows, as a cache of keys and values is one."""

    def __init__(self, held: Any) -> None:
        self.held = {"layers": [held]}


def handle() -> Iterator[int]:
    """Something that nobody can look into."""
    yield 1
