"""The records of a comparison of devices: columns, sections of features, and what is known of each.

A feature is a row of a table (a capability group, an operator, a model in a mode) and has parts: checks,
dtypes and variants, configurations. A part has one entry per column, or None where it was never measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from torchgauge.counted import counted
from torchgauge.records import ATTEMPTED, Status
from torchgauge.results import units
from torchgauge.results.latest import STALE_AFTER_S

NOT_MEASURED = "not measured"
OTHER_MODEL = "another model"
"""The word for a row of another model than its name, whatever its status."""
UNCHECKED = "unchecked"
"""The word for a pass whose result was not shown to be correct."""
NOT_APPLICABLE = "not applicable"
"""What the reason of an ``unsupported`` check begins with where the question makes no sense on the device."""


@dataclass(frozen=True)
class Fallback:
    """Operators that ran on the host instead; ``share`` is of the step's time, 0 to 1, None if unknown."""

    operators: int
    share: float | None
    names: str

    @property
    def percent(self) -> str:
        """The share as text; empty where it is not known."""
        if self.share is None:
            return ""
        return f"{self.share:.0%}" if self.share >= 0.01 else "under 1%"

    @property
    def sentence(self) -> str:
        """One sentence for a note."""
        how_many = "1 operator ran" if self.operators == 1 else f"{counted(self.operators, 'operator')} ran"
        share = f", {self.percent} of the step's time" if self.percent else ""
        names = f": {self.names}" if self.names else ""
        return f"{how_many} on the host through a fallback{share}{names}"


@dataclass(frozen=True)
class Entry:
    """The row that stands for one part in one column.

    ``age_s`` is in seconds before the newest row of the table. ``instead_of`` is the status of a newer row
    that says nothing of the part (``infra``, ``not_run``). ``degraded`` says by what other path than the
    requested one it ran, and ``other_model`` how what was built differs from the model of that name, of
    which the row then says nothing; nor does a pass that is ``unchecked``, for that reason. ``expectation``
    and ``link`` are those of the data file that knew of it.
    """

    status: Status
    run_id: str
    case_id: str
    age_s: float = 0.0
    reason: str = ""
    missing_op: str = ""
    fingerprint: str = ""
    expected: Status | None = None
    unexpected: bool = False
    expectation: str = ""
    link: str = ""
    modifiers: tuple[str, ...] = ()
    degraded: str = ""
    other_model: str = ""
    unchecked: str = ""
    instead_of: Status | None = None
    fallback: Fallback | None = None
    fallback_unknown: str = ""

    @property
    def applicable(self) -> bool:
        """Whether the question makes sense on the device at all."""
        return not (self.status is Status.UNSUPPORTED and self.reason.startswith(NOT_APPLICABLE))

    @property
    def has(self) -> bool:
        """Whether the device was seen to have it, with right results."""
        return self.status is Status.PASS and not self.tells_nothing

    @property
    def lacks(self) -> bool:
        """Whether the device was seen not to have it; a skip and a broken environment say neither."""
        said = self.status in ATTEMPTED or self.status is Status.UNSUPPORTED
        return said and self.applicable and not self.tells_nothing and not self.has

    @property
    def tells_nothing(self) -> str:
        """Why its status says nothing of the part: of another model, or a pass that nothing checked."""
        return self.other_model or (self.unchecked if self.status is Status.PASS else "")

    @property
    def helped(self) -> bool:
        """Whether it ran by another path than the requested one, such as with the host's help."""
        return bool(self.degraded) or self.fallback is not None

    @property
    def word(self) -> str:
        """The status as a reader sees it."""
        if self.other_model:
            return OTHER_MODEL
        if self.tells_nothing:
            return UNCHECKED
        return self.status.value if self.applicable else NOT_APPLICABLE


@dataclass(frozen=True)
class Part:
    """One check, one dtype of one variant, or one configuration; ``entries`` follow the columns."""

    name: str
    entries: tuple[Entry | None, ...]
    doc: str = ""
    api: str = ""


@dataclass(frozen=True)
class Cell:
    """A feature in one column: of the ``said`` parts that say something ``passed`` pass.

    ``others`` counts all that did not pass, by word, ``missing`` parts that only other columns measured, and
    ``degraded`` passes by another path than the requested one, such as with the host's help.
    ``worst`` is None where no row says anything of the named model.
    """

    passed: int
    said: int
    others: tuple[tuple[str, int], ...]
    missing: int
    worst: Status | None
    degraded: int = 0
    marks: tuple[str, ...] = ()

    @property
    def measured(self) -> bool:
        """Whether there is any row."""
        return bool(self.passed or self.others)

    @property
    def complete(self) -> bool:
        """Whether everything that says something passes, by the path that was asked for."""
        return self.said > 0 and self.passed == self.said and not self.degraded


@dataclass(frozen=True)
class Feature:
    """One row: its name and its parts; ``left_out`` are parts that count in the cells and are not listed."""

    name: str
    parts: tuple[Part, ...]
    left_out: tuple[Part, ...] = ()

    @property
    def size(self) -> int:
        """Number of all parts."""
        return len(self.parts) + len(self.left_out)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """One cell per column."""
        parts = (*self.parts, *self.left_out)
        width = len(parts[0].entries)
        return tuple(cell_of(part.entries[index] for part in parts) for index in range(width))


@dataclass(frozen=True)
class Section:
    """One table: ``key`` as on the command line, what a feature and a part are called, and the rows."""

    key: str
    title: str
    feature: str
    part: str
    features: tuple[Feature, ...]


@dataclass(frozen=True)
class Column:
    """One device with one torch; everything else lists what its rows were measured with, newest first.

    ``rows`` counts the newest row of each case, and ``runs`` those that they are of. ``newest_at`` is the
    start of its newest row in seconds since the epoch, None where it has none.
    """

    name: str
    device: str
    torch: str = ""
    packages: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    runs: int = 0
    rows: int = 0
    newest_at: float | None = None


@dataclass(frozen=True)
class Table:
    """All of it; ``newest_at`` is the newest row of any column, and ages are told from there.

    ``notes`` say what a reader must know of the columns; ``gaps`` what could not be read.
    """

    columns: tuple[Column, ...]
    sections: tuple[Section, ...]
    newest_at: float
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()


SEVERITY = (
    Status.CRASH,
    Status.ERROR,
    Status.FAIL_ACCURACY,
    Status.OOM,
    Status.TIMEOUT,
    Status.UNSUPPORTED,
    Status.INFRA,
    Status.NOT_RUN,
    Status.SKIPPED,
    Status.PASS,
)
"""Statuses from the one that weighs most in a cell of many parts."""


def cell_of(entries: Iterable[Entry | None]) -> Cell:
    """The cell of one column over the parts of a feature."""
    found = list(entries)
    known = [entry for entry in found if entry is not None]
    words = Counter(entry.word for entry in known if not entry.has)
    telling = [entry.status for entry in known if entry.has or entry.lacks]
    failing = [entry.status for entry in known if entry.lacks]
    silent = [entry.status for entry in known if not (entry.has or entry.lacks or entry.tells_nothing)]
    order = failing or telling or silent
    return Cell(
        passed=sum(entry.has for entry in known),
        said=len(telling),
        others=tuple(words.items()),
        missing=len(found) - len(known),
        worst=min(order, key=SEVERITY.index) if order else None,
        degraded=sum(entry.has and entry.helped for entry in known),
        marks=marks_of(known),
    )


def marks_of(entries: Iterable[Entry]) -> tuple[str, ...]:
    """What is told beside a status: by another path, unsteady, old, or with the host's help."""
    found = list(entries)
    marks = ["flaky" for entry in found if "flaky" in entry.modifiers]
    marks += ["degraded" for entry in found if entry.degraded and entry.fallback is None]
    marks += [
        f"older row ({entry.instead_of.value} since)" for entry in found if entry.instead_of is not None
    ]
    age = max((entry.age_s for entry in found), default=0.0)
    if age > STALE_AFTER_S:
        marks.append(f"{units.age(age)} old")
    fallbacks = [entry.fallback for entry in found if entry.fallback is not None]
    if fallbacks:
        largest = max(fallbacks, key=lambda each: each.share or 0.0)
        marks.append(f"fallback {largest.percent}".rstrip())
    return tuple(dict.fromkeys(marks))
