"""Names of what the site shows: columns and cases, and the ids that stand for them in paths.

A raw name reaches no path: ids are a slug and eight hex digits of a hash.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from torchgauge.records import Workload
from torchgauge.results.hostile_text import slug


@dataclass(frozen=True)
class Column:
    """A column of every matrix: a device with its index, and a configuration."""

    device: str
    configuration: str
    compiled: bool = field(compare=False)

    def __hash__(self) -> int:
        """The hash, found once, as that of a workload."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.device, self.configuration))

    @cached_property
    def name(self) -> str:
        """One line that names the column."""
        return f"{self.device} · {self.configuration}"

    @property
    def order(self) -> tuple[str, bool, str]:
        """By device, the plain configuration first."""
        return self.device, self.compiled, self.configuration


@dataclass(frozen=True)
class CaseName:
    """One case of the store; ``number`` is its place among the cases of its device, from 0."""

    key: str
    workload: Workload
    column: Column
    number: int

    @property
    def device(self) -> str:
        """The device with its index."""
        return self.column.device


def device_id(device: str) -> str:
    """The id of a device in paths."""
    return slug(device)


def model_id(group: tuple[str, str]) -> str:
    """The id of a suite's model in paths."""
    return slug("/".join(group))
