"""What is measured: workload x configuration x device, the three keys of every number."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cached_property
from operator import itemgetter
from typing import Any

from torchgauge.records.codec import LATER, Scalar, digest, to_plain

RANDOM_WEIGHTS = "random"
PRETRAINED = "pretrained"
AUTOCAST = "amp_"
"""Prefix of the dtypes that mean float32 weights under autocast."""
_LATER = (
    "weights", "interop_threads", "compile_mode", "dynamic", "fullgraph", "cpus", "numa", "memory_format",
)  # fmt: skip
"""Fields that came after the first results: at their defaults they leave an identity as it was."""


OPERATOR_SUITES = frozenset({"ops"})
"""Suites whose models are entries of PyTorch's database of operators."""

CHECK_SUITES = frozenset({"conformance", "calibration"})
"""Suites whose cases are checks even where they have a mode of their own."""

CHECK_MODE = "check"
"""The mode of checks that have only one, in anybody's suite."""

PROCESSES = "processes"
"""The size of a workload that says how many processes compute it together."""

MOST_PROCESSES = 64
"""That many are started on one machine: each holds the libraries in memory."""


class Subject(str, Enum):
    """What a case asks about; they are counted apart."""

    MODELS = "models"
    CHECKS = "checks"
    OPERATORS = "operators"


Shape = tuple[tuple[str, int | str], ...]
"""Sizes of a workload beside its batch, and words that choose among variants, sorted by name."""


@dataclass(frozen=True)
class Workload:
    """The mathematics: what is computed, whatever executes it.

    ``batch`` is in items; ``shape`` holds further sizes and words: ``(("mask", "causal"), ("seq", 128))``.
    ``dtype`` is a dtype, or ``amp_`` and a dtype for float32 weights under autocast. ``weights`` is
    ``"random"`` (from the seed) or ``"pretrained"`` (as the library publishes them).
    """

    suite: str
    model: str
    mode: str = "inference"
    dtype: str = "float32"
    batch: int = 1
    size: str = "small"
    shape: Shape = ()
    seed: int = 1234
    weights: str = RANDOM_WEIGHTS

    @property
    def point(self) -> str:
        """Its shape as case ids and progress write it: ``mask=causal,seq=128``."""
        return ",".join(f"{name}={value}" for name, value in sorted(self.shape, key=itemgetter(0)))

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of ``shape``, without its words."""
        return {name: value for name, value in self.shape if isinstance(value, int)}

    @property
    def processes(self) -> int:
        """How many processes compute it together: its size :data:`PROCESSES`, 1 where it has none."""
        return max(1, self.sizes.get(PROCESSES, 1))

    def __hash__(self) -> int:
        """The hash, found once: matrices look workloads up by the hundred thousand."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self._all_fields())

    def __lt__(self, other: Workload) -> bool:
        """By all fields, sizes as numbers and words as text."""
        return self._order < other._order

    @cached_property
    def _order(self) -> tuple[object, ...]:
        return self._all_fields()

    def _all_fields(self) -> tuple[object, ...]:
        *before, seed, weights = (getattr(self, item.name) for item in fields(self) if item.name != "shape")
        shape = tuple((name, isinstance(value, str), value) for name, value in self.shape)
        return (*before, shape, seed, weights)

    @property
    def subject(self) -> Subject:
        """What it asks about: a model, a property of the device, or an operator."""
        if self.suite in OPERATOR_SUITES:
            return Subject.OPERATORS
        if self.suite in CHECK_SUITES or self.mode == CHECK_MODE:
            return Subject.CHECKS
        return Subject.MODELS

    @property
    def group(self) -> tuple[str, str]:
        """Suite and model: what one page is about."""
        return self.suite, self.model

    @cached_property
    def name(self) -> str:
        """One line that names the workload."""
        return f"{self.suite}/{self.model} {self.variant}"

    @cached_property
    def variant(self) -> str:
        """What tells the workloads of one model apart, for a reader; a check computes nothing in batches."""
        extras = [f"{name} {value}" for name, value in self.shape]
        if self.size != Workload.size:
            extras.insert(0, self.size)
        if self.seed != Workload.seed:
            extras.append(f"seed {self.seed}")
        if self.weights != RANDOM_WEIGHTS:
            extras.append(self.weights)
        if self.subject is not Subject.CHECKS:
            extras = [self.dtype, f"b{self.batch}", *extras]
        return " · ".join([self.mode, *extras])

    @cached_property
    def declared_hash(self) -> str:
        """Sixteen hex digits over every field: the part of the identity known at plan time."""
        return digest(_identity(to_plain(self), Workload))


@dataclass(frozen=True)
class Configuration:
    """How a workload is executed; ``backend`` is the name of a backend, or of one of ``torch.compile``'s.

    ``compile_mode``, ``dynamic`` and ``fullgraph`` are those of ``torch.compile``; ``options`` are the
    backend's. ``env`` is set before the worker imports anything. ``cpus`` pins the worker: a list such as
    ``"0-3,8"``, or ``"physical"`` for one hardware thread of each core; ``numa`` is the node that its CPUs
    and memory come from. ``memory_format`` is PyTorch's name of a layout of tensors with four dimensions, ""
    for the layout that the suite gives them.
    """

    name: str
    backend: str
    options: tuple[tuple[str, Scalar], ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    threads: int | None = None
    interop_threads: int | None = None
    compile_mode: str = ""
    dynamic: bool | None = None
    fullgraph: bool = False
    cpus: str = ""
    numa: int | None = None
    memory_format: str = field(default="", metadata={LATER: True})

    @property
    def compiled(self) -> bool:
        """Whether anything but eager runs it: what is judged against eager, and has a speed-up over it."""
        return self.backend != "eager"


@dataclass(frozen=True)
class DeviceTarget:
    """A device as a case names it: the plugin's name and the index on this machine."""

    name: str
    index: int = 0

    def __str__(self) -> str:
        return self.name if self.index == 0 else f"{self.name}.{self.index}"


@dataclass(frozen=True)
class Case:
    """Workload x configuration x device: the thing that ends in exactly one result."""

    workload: Workload
    configuration: Configuration
    device: DeviceTarget

    @cached_property
    def id(self) -> str:
        """The one name of this case in logs, files and on the command line."""
        w = self.workload
        fields = w.point.split(",") if w.shape else []
        if w.size != "small":
            fields.insert(0, f"size={w.size}")
        if w.seed != Workload.seed:
            fields.append(f"seed={w.seed}")
        if w.weights != RANDOM_WEIGHTS:
            fields.append(f"weights={w.weights}")
        suffix = f"[{','.join(fields)}]" if fields else ""
        return (
            f"{w.suite}/{w.model}:{w.mode}:{w.dtype}:b{w.batch}"
            f":{self.configuration.name}@{self.device}{suffix}"
        )

    @cached_property
    def key(self) -> str:
        """Sixteen hex digits that identify the case across runs."""
        return key_of_plain(to_plain(self))


def key_of_plain(case: dict[str, Any]) -> str:
    """The key of a case given as plain JSON values, written by this or an older version."""
    parts = {"workload": _identity(case["workload"], Workload), "device": case["device"]}
    return digest({**parts, "configuration": _identity(case["configuration"], Configuration)})


def _identity(plain: dict[str, Any], kind: type) -> dict[str, Any]:
    """``plain`` without later fields that stand at their defaults."""
    return {key: value for key, value in plain.items() if key not in _LATER or value != getattr(kind, key)}
