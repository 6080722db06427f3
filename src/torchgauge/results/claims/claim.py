"""What a claim is: a published sentence, and the question to a store that supports or refutes it."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

from torchgauge import registry
from torchgauge.records import Compared, View
from torchgauge.suites.schema import Link

Text = Annotated[str, msgspec.Meta(min_length=1)]
Texts = Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
Day = Annotated[str, msgspec.Meta(pattern=r"^\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?$")]
Count = Annotated[int, msgspec.Meta(ge=1)]
Positive = Annotated[float, msgspec.Meta(gt=0)]


class Aggregation(str, Enum):
    """How the models of a claim become one number."""

    SHARE = "share"
    PASS_RATE = "pass_rate"
    GEOMEAN = "geomean"
    MEAN = "mean"
    MEDIAN = "median"
    RATIO = "ratio"


PER_CENT = frozenset({Aggregation.SHARE, Aggregation.PASS_RATE})
"""Aggregations whose number is a share of models."""


class Expect(str, Enum):
    """On which side of its threshold the number has to lie for the claim to hold."""

    AT_LEAST = "at_least"
    AT_MOST = "at_most"


class Over(str, Enum):
    """What a pass rate divides by: cases that say something of the model, or everything that is counted."""

    ATTEMPTED = "attempted"
    PLANNED = "planned"


@dataclass(frozen=True)
class Measure:
    """A number of one model: its base unit, and the metrics that it takes.

    ``exact`` says that it repeats without noise, so that one sample decides. ``against_eager`` says that
    it is eager's ``metric`` divided by this configuration's, from the same run.
    """

    metric: str
    unit: str
    exact: bool = False
    against_eager: bool = False


MEASURES = MappingProxyType(
    {
        name: Measure(name, metric.unit, exact=metric.compared is Compared.EXACT or metric.unit == "count")
        for name, metric in registry.metrics().items()
        if View.CLAIM in metric.views
    }
    | {"memory_compression": Measure("peak_memory", "ratio", against_eager=True)}
)
"""What a claim may be about, by the name that its file uses."""


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who said it, where and when; ``number`` and ``models`` are None where they were not given.

    ``date`` may be a year or a month where no day is known. ``number`` is a share between 0 and 1, or in the
    base unit of the measure. ``settings`` are theirs, in our words.
    """

    by: Text
    link: Link
    date: Day
    number: Positive | None = None
    models: Count | None = None
    settings: str = ""


_COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


@dataclass(frozen=True)
class Condition:
    """What one model has to fulfil to count, such as ``speedup > 1``."""

    measure: str
    operator: str
    value: float

    def __str__(self) -> str:
        return f"{self.measure} {self.operator} {self.value:g}"

    def holds(self, value: float) -> bool:
        """Whether ``value`` fulfils it."""
        return bool(_COMPARISONS[self.operator](value, self.value))


class Side(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of two sides, by globs; empty selects everything.

    ``torch`` may also be ``newest`` or ``previous``: the version that was measured last, and the one
    before it.
    """

    torch: str = ""
    system: str = ""
    machine: str = ""
    environment: str = ""
    device: str = ""
    configuration: str = ""

    @property
    def given(self) -> dict[str, str]:
        """What is asked for, by name."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value}

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.given.items()) or "everything"


_KEY_OF = MappingProxyType(
    {name: "configuration" if name == "configuration" else "environment" for name in Side.__struct_fields__}
)
"""Which of the keys of a number each field of a side selects by."""


def fault_of_sides(sides: tuple[Side, Side] | None) -> tuple[str, str] | None:
    """Why two sides cannot be set against each other, and what to do; None where nothing is wrong."""
    if sides is None:
        return None
    base, head = sides
    if base == head:
        return "`base` and `head` are equal", "give a field in which `base` and `head` differ"
    for name in ("device", "configuration"):
        if bool(base.given.get(name)) != bool(head.given.get(name)):
            return f"only one side has `{name}`", "give the field for both sides, or in `select`"
    keys = {_KEY_OF[name] for name in Side.__struct_fields__ if base.given.get(name) != head.given.get(name)}
    if len(keys) > 1:
        hint = "vary either the environment (torch, system, machine, device) or the configuration"
        return f"the sides differ in {' and '.join(sorted(keys))}", hint
    return None


@dataclass(frozen=True)
class Question:
    """What is computed, and which number makes the claim true.

    ``measure`` is empty for a pass rate. ``minimum`` is the number of models below which nothing is
    decided.
    """

    aggregation: Aggregation
    threshold: float
    expect: Expect = Expect.AT_LEAST
    measure: str = ""
    condition: Condition | None = None
    minimum: int = 10
    confidence: float = 0.95
    over: Over = Over.ATTEMPTED
    base: Side | None = None
    head: Side | None = None

    @property
    def unit(self) -> str:
        """The base unit of the number: ``share`` where it is one."""
        if self.aggregation in PER_CENT:
            return "share"
        return "ratio" if self.sides else MEASURES[self.measure].unit

    @property
    def sides(self) -> tuple[Side, Side] | None:
        """Base and head of a claim on two sides; None where it is about one."""
        return None if self.base is None or self.head is None else (self.base, self.head)


class SelectFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which rows are asked; globs but for suites, tier, mode, dtype and size, and empty selects everything.

    ``suites`` may hold ``all``: every suite of models. ``models`` are names, globs or ``/regex/`` instead
    of a tier. ``size`` is empty for the one that most models were measured in.
    """

    suites: Texts = ("all",)
    models: tuple[Text, ...] = ()
    tier: Literal["smoke", "standard", "full"] = "full"
    mode: Text = "inference"
    dtype: Text = "float32"
    size: Literal["", "small", "full"] = ""
    configurations: Texts = ("inductor",)
    devices: tuple[Text, ...] = ()
    torch: str = ""
    system: str = ""
    machine: str = ""


class Select(SelectFields, frozen=True):
    """What a file selects, and since when, in seconds since the epoch: only a person asks for that."""

    since: float = 0.0


@dataclass(frozen=True)
class Claim:
    """A named question over the store, and the sentence that it checks.

    ``counts`` says in words what is counted here; ``file`` and ``line`` say where it is declared.
    """

    name: str
    title: str
    statement: str
    published: Published
    question: Question
    select: Select = field(default_factory=Select)
    counts: str = ""
    file: str = ""
    line: int | None = None
