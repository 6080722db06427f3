"""One job that answers suspicions: both builds are made and compared, and each answer is kept at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.counted import counted
from torchgauge.errors import TorchgaugeError
from torchgauge.harness.ab.confirmation import Confirmer
from torchgauge.harness.ab.quick_measure import measure_suspicion
from torchgauge.results.store import Store
from torchgauge.results.trends.trend import Suspicion
from torchgauge.results.trends.trend_outcomes import TrendOutcome, append_outcome
from torchgauge.workflows.confirm_set import ConfirmSet, keep_evidence, write_set
from torchgauge.workflows.open_suspicions import pair_of
from torchgauge.workflows.side_environment import make_by_command


@dataclass(frozen=True)
class SideOf:
    """How the build of one night is made: in ``checkout``, with ``torch`` as ``$TORCH`` of the command."""

    run: str
    checkout: Path
    torch: str


@dataclass(frozen=True)
class ConfirmJob:
    """Which answers a job owes, and with what: ``budget_s`` in seconds, None without a limit.

    ``install`` makes the builds of ``sides`` in folders of ``work``; without it ``builds`` (runs or versions
    of torch to interpreters) and what the machine still has from those nights must do.
    """

    campaign_id: str
    pool: str
    out: Path
    work: Path
    install: str = ""
    sides: tuple[SideOf, ...] = ()
    builds: Mapping[str, str] = field(default_factory=dict)
    budget_s: float | None = None


def confirm(
    job: ConfirmJob, store: Store, suspicions: list[Suspicion], tell: Callable[[str], None]
) -> tuple[TrendOutcome, ...]:
    """Measure ``suspicions``, which share their two builds, until the time is over; the answers.

    Each answer is in ``store`` and in ``job.out`` before the next comparison begins. What was not reached
    stays open. Raises ``KeyboardInterrupt`` where the job is ended.
    """
    begin = SYSTEM_CLOCK.steady()
    found: tuple[TrendOutcome, ...] = ()
    write_set(job.out, ConfirmSet(job.campaign_id, job.pool))
    if not suspicions:
        return found
    builds, missing = _made(job, tell)
    confirmer = Confirmer(measure_suspicion(store), builds, missing)
    for place, each in enumerate(suspicions):
        if job.budget_s is not None and place and SYSTEM_CLOCK.steady() - begin > job.budget_s:
            tell(
                "the --budget is used up; not measured: "
                f"{counted(len(suspicions) - place, 'suspected change')}"
            )
            break
        tell(f"confirming {each.series.case_id} {each.moved}")
        outcome = confirmer.confirm(each)
        tell(f"  {outcome.state.name}: {outcome.reason}")
        append_outcome(store, outcome)
        keep_evidence(job.out, store, outcome.comparison)
        found = (*found, outcome)
        write_set(job.out, ConfirmSet(job.campaign_id, job.pool, found))
    return found


def only_pair(suspicions: list[Suspicion], good: str, suspect: str) -> list[Suspicion]:
    """Those of ``suspicions`` whose builds are those of the runs ``good`` and ``suspect``."""
    return [each for each in suspicions if pair_of(each) == (good, suspect)]


def _made(job: ConfirmJob, tell: Callable[[str], None]) -> tuple[dict[str, str], dict[str, str]]:
    """Interpreters by run, and the reasons of those that could not be made."""
    builds, missing = dict(job.builds), {}
    for side in job.sides if job.install else ():
        if side.run in builds:
            continue
        tell(f"installing the build of run {side.run} from {side.checkout}")
        folder = job.work / side.run
        try:
            builds[side.run] = str(make_by_command(folder, job.install, side.checkout, side.torch))
        except TorchgaugeError as error:
            missing[side.run] = error.message
    return builds, missing
