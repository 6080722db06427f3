"""What a run will do: settings, groups and the plan that is written before anything runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from torchgauge.records.case import Case, DeviceTarget, Workload
from torchgauge.records.codec import LATER, SCHEMA_VERSION, Scalar, digest, to_plain
from torchgauge.records.metrics import Metric
from torchgauge.records.status import Cause, Phase, Status


@dataclass(frozen=True)
class Expectation:
    """What the data file says of a case on a device: an expected status, or a declared skip.

    ``cause`` is a pattern on the cause of the row, as triage names it; empty where none is recorded.
    """

    status: Status
    reason: str
    link: str = ""
    date: str = ""
    cause: str = field(default="", metadata={LATER: True})


@dataclass(frozen=True)
class Tolerance:
    """Accuracy tolerance of one case: absolute = relative, and the RMSE multiplier of ``method.md``."""

    absolute: float
    relative: float
    rmse_multiplier: float
    source: str


@dataclass(frozen=True)
class Refusal:
    """Why a case is not even tried, known before any process starts."""

    status: Status
    reason: str
    cause: Cause | None = None


@dataclass(frozen=True)
class Schedule:
    """The order in which a run takes its groups, and what was known when it was planned; times in seconds.

    ``order`` is ``longest`` (first), or ``value`` where a budget was given. ``expected_s`` maps group ids to
    their expected wall time; the durations of ``known`` of them were recorded in ``source``. Beside them
    ``startup_s`` passes before the first group of a device and ``closing_s`` after its last. ``left`` are
    groups that are not expected to fit into the budget, in the order in which they would come.

    ``whole`` is a digest of all groups that were shared out and ``sharding`` one of who got which: shards of
    one plan have both in common, or they do not fit together. Both are empty where the plan is no shard.
    """

    order: str
    expected_s: tuple[tuple[str, float], ...]
    known: int = 0
    source: str = ""
    startup_s: float = 0.0
    closing_s: float = 0.0
    left: tuple[str, ...] = ()
    whole: str = ""
    sharding: str = ""


@dataclass(frozen=True)
class PlannedCase:
    """A case with the data that the parent attached to it before anything ran.

    ``parameters`` is how many the suite declares for the model; None where it says nothing of this size.
    ``trace`` is the file for a profiler's trace of its steps, "" for none.
    """

    case: Case
    tolerance: Tolerance
    expectation: Expectation | None = None
    refusal: Refusal | None = None
    expected_duration_s: float | None = None
    parameters: int | None = None
    trace: str = field(default="", metadata={LATER: True})

    @property
    def declined(self) -> Refusal | None:
        """Why the case is not even tried: it is refused, or data declares a skip; None where it is tried."""
        expected = self.expectation
        if self.refusal is None and expected is not None and expected.status is Status.SKIPPED:
            return Refusal(Status.SKIPPED, f"{expected.reason} {expected.link}".strip(), Cause.DECLARED)
        return self.refusal


@dataclass(frozen=True)
class Group:
    """The cases of one workload on one device: the unit of process, sharding and retry.

    ``recipe`` is the suite's own declaration of how to build the model (plain JSON values from its
    YAML, checked by the suite), passed to the worker as it is. A group of ``checks`` holds cases of many
    workloads of one suite, and has no workload of its own. A ``cold`` one asks how long compiling takes: it
    compiles cold in every run but those that time no compilation at all.
    """

    id: str
    cases: tuple[PlannedCase, ...]
    recipe: dict[str, object] = field(default_factory=dict)
    checks: bool = False
    cold: bool = False

    @property
    def workload(self) -> Workload:
        """The one workload that all cases of the group share; the first of a group of ``checks``."""
        return self.cases[0].case.workload

    @property
    def device(self) -> DeviceTarget:
        """The one device that all cases of the group share."""
        return self.cases[0].case.device

    def only(self, keys: Collection[str]) -> Group:
        """Return the group with those of its cases alone whose keys are in ``keys``."""
        return replace(self, cases=tuple(each for each in self.cases if each.case.key in keys))


@dataclass(frozen=True)
class Deadlines:
    """Seconds that a case may spend in each phase before it is a ``timeout``."""

    start_s: float = 60.0
    import_s: float = 180.0
    build_s: float = 300.0
    eager_s: float = 600.0
    accuracy_s: float = 900.0
    compile_s: float = 1200.0
    warmup_s: float = 600.0
    measure_s: float = 600.0
    check_s: float = 90.0
    exit_s: float = 30.0

    def of(self, phase: Phase) -> float:
        """The deadline of ``phase`` in seconds; ``done`` waits for the process to exit."""
        if phase is Phase.DONE:
            return self.exit_s
        return float(getattr(self, f"{phase.value}_s"))


@dataclass(frozen=True)
class RunSettings:
    """Everything about a run that is not a case; every field is recorded with where it came from.

    ``prefetch`` groups of a device are built, checked and compiled at once; one of them is timed at a time,
    and the others stand still meanwhile. ``cold_compile`` says which groups compile into an empty cache while
    nothing else runs: ``all``, ``none`` or ``1/n``, an n-th of them each day in turn. ``compile_cache`` is
    the folder of caches that outlive the run; None keeps none. ``quiet_wait_s`` is how much longer a group is
    sampled where others have its cores; all groups of a run together wait no more than that and a quarter of
    their budgets. Each case that is tried is attempted ``attempts`` times.
    """

    threads: int | None = None
    precision_target: float = 0.01
    confidence: float = 0.95
    measure_budget_s: float = 3.0
    warmup_budget_s: float = 2.0
    quiet_wait_s: float = 10.0
    min_blocks: int = 12
    max_blocks: int = 2000
    min_block_s: float = 0.002
    eager_runs: int = 2
    accuracy: bool = True
    memory_probe: bool = True
    warm_compile: bool = True
    fallback_check: bool = True
    calibrate: bool = True
    memory_limit_bytes: int | None = None
    log_limit_bytes: int = 1 << 20
    deadlines: Deadlines = field(default_factory=Deadlines)
    order_seed: int = 0
    budget_s: float | None = None
    configuration_file: str | None = None
    torchbench: str | None = None
    prefetch: int = 1
    cold_compile: str = "all"
    compile_cache: str | None = None
    attempts: int = 1


@dataclass(frozen=True)
class Provenance:
    """Where a setting or a value came from: ``default``, a file or a flag."""

    name: str
    value: Scalar
    source: str


@dataclass(frozen=True)
class Plan:
    """What a run will do, written to disk before anything runs.

    ``metrics`` are those that packages of its interpreter declare beside the table; ``torchgauge`` is the
    version that made it, empty where none is recorded.
    """

    run_id: str
    created_at: float
    command: tuple[str, ...]
    settings: RunSettings
    groups: tuple[Group, ...]
    suite_digests: tuple[tuple[str, str], ...] = ()
    shard: str = "1/1"
    python: str = ""
    provenance: tuple[Provenance, ...] = ()
    schedule: Schedule | None = None
    metrics: tuple[Metric, ...] = ()
    torchgauge: str = field(default="", metadata={LATER: True})
    schema_version: int = SCHEMA_VERSION

    @property
    def cases(self) -> tuple[PlannedCase, ...]:
        """All planned cases in execution order."""
        return tuple(case for group in self.groups for case in group.cases)

    @property
    def digest(self) -> str:
        """Sixteen hex digits over the groups: equal plans measure the same things."""
        return digest(to_plain(self)["groups"])
