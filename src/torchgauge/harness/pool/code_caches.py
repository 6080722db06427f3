"""Where the compiled cases of one device's part of a run get their code from: kept caches and empty ones.

The parent's half. One object may serve several runners of a device, also from several threads.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torchgauge.harness.backends.backend import compiler_of
from torchgauge.harness.cold_sampling import is_cold_sampled
from torchgauge.harness.compile_cache import (
    EMPTY,
    FACT,
    KEPT,
    CacheUnusableError,
    KeptCache,
    came_from_kept,
    of_parts,
    open_kept,
)
from torchgauge.harness.pool.derived_status import DerivedStatuses
from torchgauge.records import Environment, Group, Outcome, Plan, PlannedCase, Status


@dataclass
class CodeCaches:
    """The caches of the run of ``plan`` on one device; ``shared_budget`` is a file of all its groups."""

    plan: Plan
    shared_budget: Path
    kept: KeptCache | None = None
    distrusted: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def open(self, environment: Environment, now: float) -> str:
        """Open what was kept of the build that ``environment`` describes; a note, "" for none.

        A folder that cannot be used costs time and nothing else: the run goes on without.
        """
        root = self.plan.settings.compile_cache
        with self._lock:
            if root is None or self.kept is not None:
                return ""
            try:
                self.kept = open_kept(Path(root), environment, now)
            except CacheUnusableError as error:
                return f"the compile cache is not kept for later runs: {error}"
        return ""

    def close(self) -> None:
        """Let other runs prune what this one used; a second call does nothing."""
        with self._lock:
            if self.kept is not None:
                self.kept.close()
                self.kept = None

    def of_group(self, group: Group) -> dict[str, Any]:
        """The fields of the job that measures ``group``."""
        trusted = not any(planned.case.key in self.distrusted for planned in group.cases)
        kept = str(self.kept.folder) if self.kept is not None and trusted else ""
        return {
            "kept": kept,
            "cold": is_cold_sampled(group, self.plan),
            "shared_budget": str(self.shared_budget),
        }

    def of_fresh(self, outcome: Outcome) -> dict[str, Any]:
        """The fields of the job that starts the case of ``outcome`` afresh, with its code in the cache."""
        folder = str(self.kept.folder) if self.kept is not None and came_from_kept(outcome) else ""
        return {"kept": of_parts(folder, dict(outcome.facts))}

    def take_back(self, cases: Sequence[PlannedCase], derived: DerivedStatuses, group: Group) -> None:
        """Let a case whose process crashed with code of the kept cache run again, with an empty one.

        A truncated library can kill the process that loads it. What crashes again is believed.
        """
        if self.kept is None or is_cold_sampled(group, self.plan):
            return
        for planned in cases:
            key, outcome = planned.case.key, derived.outcomes.get(planned.case.key)
            if outcome is None or outcome.status is not Status.CRASH or key in self.distrusted:
                continue
            if compiler_of(planned.case.configuration):
                self.distrusted[key] = outcome.reason
                del derived.outcomes[key]
                derived.again.insert(0, planned)
                derived.charged = "" if derived.charged == key else derived.charged

    def said(self, outcome: Outcome) -> Outcome:
        """``outcome`` with what this side knows of the origin of its code."""
        why = self.distrusted.get(outcome.case_key)
        if why is None:
            return outcome
        told = dict(outcome.facts) | {FACT: f"{EMPTY}, after the kept cache failed: {why}"[:300]}
        return replace(outcome, facts=tuple(sorted(told.items())))

    def keep(self, found: Sequence[tuple[PlannedCase, Outcome]], fresh: Path) -> None:
        """Take over from ``fresh``, the group's own cache, what passing cases compiled into it."""
        if self.kept is None:
            return
        for planned, outcome in found:
            configuration = planned.case.configuration
            into = of_parts(str(self.kept.folder), dict(outcome.facts))
            new = compiler_of(configuration) and outcome.status is Status.PASS and not came_from_kept(outcome)
            if new and into:
                # the fact of :meth:`said`: that in the kept cache failed
                heal = str(dict(outcome.facts).get(FACT, "")).startswith(f"{EMPTY}, ")
                self.kept.adopt(fresh, [configuration], heal=heal, into=into)

    def describe(self) -> str:
        """Which kept cache is used, for the journal; "" without one."""
        return f"compile cache {KEPT}: {self.kept.folder}" if self.kept is not None else ""
