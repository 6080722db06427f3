"""One case measured on two builds: what a confirmation and a bisection compare with.

The rule is that of every A/B run, and every comparison stays in the store as evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchgauge.errors import TorchgaugeError, UsageError
from torchgauge.harness.ab.confirmation import Measure
from torchgauge.harness.ab.reading import STATUS, Answer, Reading, reading_of
from torchgauge.harness.planning.selection import Selection, parse_case_id
from torchgauge.records import RunSettings
from torchgauge.records.comparison import SideSpec
from torchgauge.results.store import Store
from torchgauge.results.trends.trend import Suspicion
from torchgauge.suites.own.library import word_of_case

if TYPE_CHECKING:
    from torchgauge.harness.ab.progress import AbProgress


@dataclass(frozen=True)
class QuickCase:
    """The one case that two builds are compared on; ``model`` is SUITE/MODEL.

    ``word`` loads the suite: the path of a user's file; by default it follows from the name.
    """

    model: str
    device: str
    mode: str = "inference"
    config: str = "eager"
    dtype: str = "float32"
    size: str = "small"
    batch: int | None = None
    weights: str = Selection.weights
    word: str = ""

    @property
    def text(self) -> str:
        """The case in one line, for people and for digests."""
        batch = [] if self.batch is None else [f"b{self.batch}"]
        more = [*batch, *([] if self.weights == Selection.weights else [self.weights])]
        parts = [self.model, self.mode, self.dtype, self.config, self.size, *more]
        return f"{':'.join(parts)}@{self.device}"

    @property
    def selection(self) -> Selection:
        """The selection of this case alone."""
        return Selection(
            suites=(self.word or word_of_case(*self.model.split("/", 1)),),
            devices=(self.device,),
            models=(self.model,),
            modes=(self.mode,),
            configurations=(self.config,),
            dtypes=(self.dtype,),
            size=self.size,
            batch=self.batch,
            weights=self.weights,
        )


def measure_case(
    store: Store,
    case: QuickCase,
    metric: str,
    progress: Callable[[], AbProgress | None] = lambda: None,
) -> Callable[[SideSpec, SideSpec], Reading]:
    """Compare two builds on ``case``; a build that breaks is a reading, and a mistake is raised.

    Each comparison shows a ``progress`` of its own.
    """

    def measure(base: SideSpec, head: SideSpec) -> Reading:
        from torchgauge.harness.ab.comparison import Request
        from torchgauge.harness.ab.quick import compare
        from torchgauge.results.comparing.pair_evidence import MIN_LAUNCHES

        launches = {STATUS: MIN_LAUNCHES}.get(metric, Request.max_launches)
        request = Request(case.selection, RunSettings(), base, head, controls=0, max_launches=launches)
        try:
            ending = compare(request, str(store.path), progress=progress())
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
            return measure_case(store, case_of(series.case_id), series.metric)(base, head)
        except UsageError as error:
            return Reading(Answer.UNUSABLE, reason=error.message)

    return measure


def case_of(case_id: str) -> QuickCase:
    """Return the case that ``case_id`` names, as a selection writes it; raises :class:`UsageError`."""
    name = parse_case_id(case_id)
    return QuickCase(
        f"{name.suite}/{name.model}",
        name.device,
        name.mode,
        name.configuration,
        name.dtype,
        name.size,
        name.batch,
        name.weights,
    )
