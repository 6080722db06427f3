"""What a check of a store finds: a file that is not as it should be, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Fault(str, Enum):
    """What can be wrong with a file of a store."""

    DAMAGED = "damaged"
    MISSING = "missing"
    FOREIGN = "foreign"
    TORN = "torn"


@dataclass(frozen=True)
class Finding:
    """A file that is not as it should be: its path in the store, what is wrong, and what to do."""

    fault: Fault
    path: str
    problem: str
    remedy: str
