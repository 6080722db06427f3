"""One case measured on two builds: what a confirmation and a bisection compare with.

The rule is that of every A/B run, and every comparison stays in the store as evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torchgauge.errors import TorchgaugeError, UsageError
from torchgauge.harness.ab.confirmation import Measure
from torchgauge.harness.ab.reading import Answer, Reading, reading_of
from torchgauge.harness.planning.plan import load_suites
from torchgauge.harness.planning.selection import CaseName, Selection, parse_case_id, select_models
from torchgauge.records import RunSettings
from torchgauge.records.comparison import SideSpec
from torchgauge.results.store import Store
from torchgauge.results.trends.trend import Suspicion
from torchgauge.suites.capabilities import offered_as
from torchgauge.suites.catalog import BATCH_PROFILES, workload_for


@dataclass(frozen=True)
class QuickCase:
    """The one case that two builds are compared on; ``model`` is SUITE/MODEL."""

    model: str
    device: str
    mode: str = "inference"
    config: str = "eager"
    dtype: str = "float32"
    size: str = "small"
    batch_profile: str | None = None
    weights: str = Selection.weights

    @property
    def text(self) -> str:
        """The case in one line, for people and for digests."""
        more = [each for each in (self.batch_profile, self.weights) if each not in (None, Selection.weights)]
        return ":".join([self.model, self.mode, self.dtype, self.config, self.size, *map(str, more)]) + (
            f"@{self.device}"
        )

    @property
    def selection(self) -> Selection:
        """The selection of this case alone."""
        return Selection(
            suites=(self.model.partition("/")[0],),
            devices=(self.device,),
            models=(self.model,),
            modes=(self.mode,),
            configurations=(self.config,),
            dtypes=(self.dtype,),
            size=self.size,
            batch_profile=self.batch_profile,
            weights=self.weights,
        )


def measure_case(store: Store, case: QuickCase, metric: str) -> Callable[[SideSpec, SideSpec], Reading]:
    """A comparison of two builds on ``case``; a build that breaks is a reading, and a mistake is raised."""

    def measure(base: SideSpec, head: SideSpec) -> Reading:
        from torchgauge.harness.ab.comparison import Request
        from torchgauge.harness.ab.quick import compare

        request = Request(case.selection, RunSettings(), base, head, controls=0)
        try:
            ending = compare(request, str(store.path))
        except UsageError:
            raise
        except TorchgaugeError as error:
            return Reading(Answer.UNUSABLE, reason=error.message)
        return reading_of(ending.verdicts, metric, ending.run_id)

    return measure


def measure_suspicion(store: Store) -> Measure:
    """The comparison that a confirmation makes: the case of the suspicion, exactly."""

    def measure(base: SideSpec, head: SideSpec, suspicion: Suspicion) -> Reading:
        series = suspicion.series
        try:
            case = case_of(series.case_id)
        except UsageError as error:
            return Reading(Answer.UNUSABLE, reason=error.message)
        return measure_case(store, case, series.metric)(base, head)

    return measure


def case_of(case_id: str) -> QuickCase:
    """The case that ``case_id`` names, as a selection can say it.

    Raises :class:`UsageError` for a batch or a shape that no profile of the suite has any more.
    """
    name = parse_case_id(case_id)
    case = QuickCase(
        f"{name.suite}/{name.model}",
        name.device,
        name.mode,
        name.configuration,
        name.dtype,
        name.size,
        weights=name.weights,
    )
    for profile in (None, *BATCH_PROFILES):
        if _batch(name, profile) == name.batch:
            return replace(case, batch_profile=profile)
    raise UsageError(f"{case_id}: no batch profile has batch {name.batch}", hint="measure it by hand")


def _batch(name: CaseName, profile: str | None) -> int | None:
    suites = load_suites([name.suite])
    entries = select_models(name.suite, suites[name.suite].models(), [f"{name.suite}/{name.model}"], "full")
    for entry in entries:
        if entry.name == name.model and offered_as(entry, name.mode) and name.size in entry.sizes:
            return workload_for(
                name.suite, entry, name.mode, size=name.size, dtype=name.dtype, batch_profile=profile
            ).batch
    return None
