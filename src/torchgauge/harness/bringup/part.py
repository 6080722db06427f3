"""The parts of a bringup in their order, what each may take, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from torchgauge.harness.bringup.finding import Finding

TEN_ANSWERS_S = 600.0
"""Seconds within which the first ten questions were put: the parts take no more than their shares."""


class Part(str, Enum):
    """One part; the value is what a person calls it."""

    IDENTITY = "identity"
    IMPORT = "import"
    DOCTOR = "doctor"
    CHECK = "check"
    OPS = "ops"
    MODELS = "models"
    COLLECTIVES = "collectives"
    ALL_OPS = "all_ops"


SHARES_S: dict[Part, float] = {
    Part.IDENTITY: 30.0,
    Part.IMPORT: 60.0,
    Part.DOCTOR: 60.0,
    Part.CHECK: 150.0,
    Part.OPS: 90.0,
    Part.MODELS: 180.0,
}
"""Seconds of each of the first parts before the ten answers; what one leaves is for those after it."""
assert sum(SHARES_S.values()) < TEN_ANSWERS_S
LATER = (Part.COLLECTIVES, Part.ALL_OPS)
"""What follows them, after what they had to leave."""
DOES: dict[Part, str] = {
    Part.IDENTITY: "name, driver and package of the device",
    Part.IMPORT: "whether import torch works with the device's package",
    Part.DOCTOR: "missing software, and the speed and clocks of the device",
    Part.CHECK: "checks of PyTorch's requirements for a device",
    Part.OPS: "fifty operators in four dtypes, compared with the host",
    Part.MODELS: "small models in inference and training, profiled for fallbacks",
    Part.COLLECTIVES: "several processes, if there are two devices",
    Part.ALL_OPS: "every operator in float32, forward and backward",
}


class PartState(str, Enum):
    """What became of a part."""

    NOT_BEGUN = "not begun"
    BEGUN = "begun"
    DONE = "done"
    OUT_OF_BUDGET = "out of budget"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    NOT_TRIED = "not tried"
    NOT_ASKED = "not asked"


ENDED = frozenset({PartState.DONE, PartState.NOT_ASKED})
"""States that the same command does not go on from."""


@dataclass(frozen=True)
class PartRecord:
    """What became of one part: its run in the store where it has one, and what it found where it has none.

    ``seconds`` are those of all its tries together; ``reason`` says why it is not done.
    """

    part: Part
    state: PartState = PartState.NOT_BEGUN
    reason: str = ""
    run_id: str = ""
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()

    @property
    def said(self) -> str:
        """Its name and state in words, with the reason."""
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.part.value}: {self.state.value}{why}"
