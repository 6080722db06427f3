"""Cases that are simulated: each sleeps as long as its dice say, and ends as they say.

Plan, rows, journals and the campaign of a part are the real ones. Dice and durations follow from the seed and
the case, whoever runs it.
"""

from __future__ import annotations

import math
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from folder_engine import Place, Taken

from torchgauge.harness.executors.executor import Submission, Yield
from torchgauge.harness.parts.part_run import PartCampaign, run_part
from torchgauge.harness.planning.configurations import bundled
from torchgauge.harness.run.progress import Progress
from torchgauge.harness.run.rows import RowContext, row
from torchgauge.records import (
    METRICS,
    Case,
    Cause,
    DeviceTarget,
    Environment,
    Group,
    Measurement,
    Outcome,
    Phase,
    Plan,
    PlannedCase,
    RunSettings,
    Status,
    Tolerance,
    Workload,
)
from torchgauge.results.store import Store, read_plan

RUN = "20260528T202640Z-00000000"
BEGIN = 1_780_000_000.0
WHERE = Environment("fake", (("cpu.model", "simulated"), ("torch.version", "2.13.0")))
SPREAD = 0.8
"""Deviation of the logarithm of a case's duration: one in twenty takes three times the mean."""
SLICE_S = 0.05
"""A case that sleeps looks so often whether its job is cancelled."""
ENDINGS = (
    (0.90, Status.PASS, None),
    (0.93, Status.ERROR, None),
    (0.95, Status.CRASH, Cause.SIGNAL),
    (0.97, Status.TIMEOUT, None),
    (0.98, Status.FAIL_ACCURACY, Cause.TOLERANCE),
    (0.99, Status.OOM, Cause.DEVICE),
    (1.00, Status.SKIPPED, Cause.MISSING_PACKAGE),
)
"""Endings of cases by the dice: nine in ten pass."""


@dataclass(frozen=True)
class Dice:
    """What happens to a case: the same whoever runs it."""

    seed: int
    mean_s: float

    def of(self, case: Case) -> random.Random:
        """The dice of ``case``, as they are before they were thrown."""
        return random.Random(f"{self.seed}/{case.key}")

    def seconds(self, case: Case) -> float:
        """How long ``case`` takes."""
        return self.of(case).lognormvariate(math.log(self.mean_s) - SPREAD**2 / 2, SPREAD)

    def outcome(self, case: Case) -> Outcome:
        """How ``case`` ends; one that passes has noisy samples."""
        dice = self.of(case)
        dice.random()
        thrown, usual = dice.random(), dice.uniform(1e-3, 1e-1)
        status, cause = next(each[1:] for each in ENDINGS if thrown < each[0])
        if status is not Status.PASS:
            return Outcome(case.key, status, Phase.COMPILE, cause, "by the dice")
        samples = tuple(usual * dice.lognormvariate(0.0, 0.02) for _ in range(30))
        latency = Measurement(
            "latency", METRICS["latency"].unit, samples, tuple(range(30)), "clock", "precision"
        )
        return Outcome(case.key, status, Phase.DONE, measurements=(latency,))


def plan_of(cases: int) -> Plan:
    """A plan of ``cases`` cases, two for each model."""
    chosen = [bundled()[name].configuration for name in ("eager", "inductor")]
    tolerance = Tolerance(1e-3, 1e-3, 2.0, "simulated")
    groups = []
    for number in range(-(-cases // 2)):
        workload = Workload("simulated", f"net_{number}")
        of_model = [Case(workload, each, DeviceTarget("fake")) for each in chosen]
        planned = tuple(PlannedCase(each, tolerance) for each in of_model[: cases - 2 * number])
        groups.append(Group(of_model[0].key, planned))
    return Plan(RUN, BEGIN, ("torchgauge", "run"), RunSettings(), tuple(groups))


@dataclass(frozen=True)
class Simulation:
    """What an agent is to do with its job: it notes in the file ``busy`` when its device was so."""

    dice: Dice
    cancelled: Path
    busy: Path


@dataclass(frozen=True)
class SimulatedExecutor:
    """Runs the groups of a part: each case sleeps and ends as the dice say."""

    name: str = "simulated"

    def submit(self, submission: Submission) -> Iterator[Yield]:
        """One row at a time, each with a log."""
        does: Simulation = submission.options
        yield WHERE
        logs = submission.folder / "logs"
        logs.mkdir(exist_ok=True)
        with does.busy.open("a", buffering=1) as notes:
            for group in submission.groups:
                log = logs / f"{group.id}.log"
                for planned in group.cases:
                    began, wall = time.monotonic(), submission.clock.now()
                    notes.write(f'["{planned.case.key}", {began}, null]\n')
                    with log.open("a") as text:
                        text.write(f"{planned.case.id}\n" * 20)
                    if not slept(submission, does, began + does.dice.seconds(planned.case)):
                        return
                    ended = time.monotonic()
                    notes.write(f'["{planned.case.key}", {began}, {ended}]\n')
                    context = RowContext(WHERE.id, wall, ended - began, log=f"logs/{log.name}")
                    yield [row(submission.plan, planned, does.dice.outcome(planned.case), context)]


def slept(submission: Submission, does: Simulation, until: float) -> bool:
    """Whether ``until`` came before somebody cancelled the job."""
    while (left := until - time.monotonic()) > 0:
        if does.cancelled.exists():
            os.kill(os.getpid(), signal.SIGTERM)
        if submission.cancelled():
            return False
        time.sleep(min(SLICE_S, left))
    return True


SIMULATED = SimulatedExecutor()


def measure(job: Taken, place: Place, dice: Dice) -> str:
    """Measure the part ``job`` in this process, as ``torchgauge worker`` does in one of its own."""
    plan = read_plan(job.folder / f"{job.name}.json")
    with Path(os.devnull).open("w") as nowhere:
        campaign = PartCampaign(
            *(plan, Store(job.folder), {}, {}, Progress(nowhere), sys.executable),
            executor="simulated",
            options=Simulation(dice, job.cancelled, place.folder("busy") / job.agent),
            node=job.agent,
        )
        report = run_part(campaign, plan, job.folder / job.name)
    return f"ended with {report.exit_code} on {job.agent}"
