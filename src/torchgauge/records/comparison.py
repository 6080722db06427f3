"""What an A/B run keeps: sides, pairs, the launches of a pair with every step, and verdicts.

``docs/comparison.md`` defines the words. Times are in seconds, memory in bytes; a ratio is head over base.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from torchgauge.records.case import Case
from torchgauge.records.codec import LATER, SCHEMA_VERSION, Scalar, digest
from torchgauge.records.plan import Group, Provenance, RunSettings
from torchgauge.records.result import Outcome


class Side(str, Enum):
    """The two sides of a comparison."""

    BASE = "base"
    HEAD = "head"


class Verdict(str, Enum):
    """What a comparison says of one metric of one pair."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    UNCHANGED = "unchanged"
    UNDECIDED = "undecided"
    NOT_COMPARABLE = "not_comparable"
    BROKEN = "broken"
    OUTPUTS_DIFFER = "outputs_differ"
    FIXED = "fixed"


class Action(str, Enum):
    """What the policy does with a verdict."""

    GATE = "gate"
    REPORT = "report"
    IGNORE = "ignore"

    @property
    def softened(self) -> Action:
        """The action for what may block nobody: what gates is reported."""
        return Action.REPORT if self is Action.GATE else self


START = "start_sum"
"""The fact of a side with a number that its model's first weights and inputs make."""
UNSEEN = "outputs_unseen"
"""The fact of a side that says why its outputs are not compared with those of the other build."""


@dataclass(frozen=True)
class CodeSource:
    """The code of a side: its commit, the branch that was named, and its repository's address on a Git host.

    ``branch`` and ``repository`` are empty where they are unknown.
    """

    commit: str
    branch: str = ""
    repository: str = ""


@dataclass(frozen=True)
class SideSpec:
    """What executes one side: interpreter, variables of its own and, if it asks for one, a configuration.

    ``revision`` is the commit that it takes a user's files from; empty for files as they are. ``source`` is
    the code that reports name; None where it is unknown.
    """

    label: str
    python: str
    variables: tuple[tuple[str, str], ...] = ()
    configuration: str = ""
    revision: str = field(default="", metadata={LATER: True})
    source: CodeSource | None = field(default=None, metadata={LATER: True})


@dataclass(frozen=True)
class Pair:
    """One workload, executed by base and by head; ``control`` marks head against head (A/A)."""

    base: Case
    head: Case
    control: bool = False

    def __post_init__(self) -> None:
        if self.base.workload != self.head.workload:
            raise ValueError(f"{self.base.id} and {self.head.id} have different computations")

    @cached_property
    def id(self) -> str:
        """The name of the pair: the head's case id, and the base's configuration where it is another."""
        ours, theirs = self.head.configuration.name, self.base.configuration.name
        against = f" against {theirs}" if ours != theirs else ""
        return f"{self.head.id}{against}{' (A/A)' if self.control else ''}"

    @cached_property
    def key(self) -> str:
        """Sixteen hex digits that identify the pair within a run and across runs."""
        return digest([self.base.key, self.head.key, self.control])


@dataclass(frozen=True)
class Block:
    """Steps of one side that ran without a pause: ``abba_block`` counts from 0, ``position`` is 0 to 3 in it.

    One value per step. ``delay`` is the time its threads waited for a core and ``switches`` how often one
    was taken from them, both empty where the system does not tell; ``device`` is event time, empty where
    the device has no events.
    """

    side: Side
    abba_block: int
    position: int
    wall: tuple[float, ...]
    cpu: tuple[float, ...]
    delay: tuple[float, ...] = ()
    switches: tuple[int, ...] = ()
    device: tuple[float, ...] = ()


@dataclass(frozen=True)
class Launch:
    """One launch of a pair: every block in the order in which it ran, and how either side ended.

    ``number`` counts launches of the run from 1; ``confirms`` marks the fresh ones that re-measure a
    suspicion. ``cpus`` are those that both sides were bound to, ``first`` the side that started first.
    ``setup_s`` is this pair's share of starting, building and warming up, ``measure_s`` its ABBA blocks'
    time.
    """

    pair_key: str
    pair_id: str
    number: int
    first: Side
    base: Outcome
    head: Outcome
    blocks: tuple[Block, ...] = ()
    confirms: bool = False
    control: bool = False
    cpus: tuple[int, ...] = ()
    started_at: float = 0.0
    setup_s: float = 0.0
    measure_s: float = 0.0
    conditions: tuple[tuple[str, Scalar], ...] = ()


@dataclass(frozen=True, slots=True)
class MetricVerdict:
    """The verdict on one metric of one pair, with all that it rests on.

    ``base`` and ``head`` are medians in ``unit``; ``ratio`` is head / base, its interval at ``confidence``.
    ``p`` is two-sided; ``p_adjusted`` is Benjamini and Hochberg's over all hypotheses of the run.
    ``detectable`` is the smallest relative change that this comparison could have seen in four of five
    cases. ``needed`` is the number of launches that would probably decide it. ``spread`` is the standard
    deviation of the log ratio between launches, with the prior that entered it. None is "there is none".
    """

    pair_key: str
    pair_id: str
    base_case: str
    head_case: str
    metric: str
    unit: str
    estimator: str
    verdict: Verdict
    reason: str = ""
    base: float | None = None
    head: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float = 0.95
    p: float | None = None
    p_adjusted: float | None = None
    tolerance: float = 0.03
    launches: int = 0
    needed: int | None = None
    detectable: float | None = None
    spread: float | None = None
    prior_spread: float | None = None
    prior_df: float = 0.0
    confirmed: bool | None = None
    quarantined: bool = False
    control: bool = False
    action: Action = Action.GATE
    time_s: float = 0.0


@dataclass(frozen=True)
class ComparisonPlan:
    """What an A/B run will do, written to disk before anything runs."""

    run_id: str
    created_at: float
    command: tuple[str, ...]
    settings: RunSettings
    base: SideSpec
    head: SideSpec
    pairs: tuple[Pair, ...]
    groups: tuple[Group, ...]
    seed: int
    policy: str = ""
    max_launches: int = 12
    suite_digests: tuple[tuple[str, str], ...] = ()
    provenance: tuple[Provenance, ...] = field(default=())
    schema_version: int = SCHEMA_VERSION

    @property
    def digest(self) -> str:
        """Sixteen hex digits over the pairs: equal plans compare the same things."""
        return digest([pair.key for pair in self.pairs])
