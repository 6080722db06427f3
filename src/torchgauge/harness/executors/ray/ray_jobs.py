"""The jobs of one run on a Ray cluster, as :mod:`torchgauge.harness.executors.part_jobs` sees them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from torchgauge.devices.device import Device
from torchgauge.harness.executors.executor import Submission
from torchgauge.harness.executors.part_jobs import JobState, PartJob, PartOptions, Stage
from torchgauge.harness.executors.ray import parity
from torchgauge.harness.executors.ray.access import IMPORT_S, Access, ray_environment
from torchgauge.harness.executors.ray.broker_link import BrokerLink
from torchgauge.harness.executors.ray.order import DeviceOrder, Order
from torchgauge.processes.passed_variables import passed
from torchgauge.records import to_plain
from torchgauge.results.atomic_file import write_atomically
from torchgauge.results.journal import is_being_written
from torchgauge.suites.suite import HOST

END_S = 30.0
"""Seconds that jobs which are told to stop may take."""
GONE_S = 10.0
"""Seconds that what a killed command left may take to be gone."""
OF_A_MACHINE = (
    *(
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TERM",
        "TMP",
        "TEMP",
        "TMPDIR",
        "VIRTUAL_ENV",
        "CC",
        "CXX",
    ),
    *("LD_*", "DYLD_*", "PYTHON*", "CONDA_*", "XDG_*", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "CPATH"),
    *("*_HOME", "*_PATH", "*_DIR", "*_ROOT", "*_CACHE", "*_VISIBLE_*", "TORCHGAUGE_LEASES"),
)
"""Variables that say where things lie on a machine: those of the node stand."""


@dataclass(frozen=True)
class RayOptions(PartOptions):
    """What ``--executor-option`` may say beside what all executors of jobs take.

    ``address`` is HOST:PORT of the head (default: RAY_ADDRESS). ``resource`` is the custom resource of a
    device, in which ``{device}`` is its name. ``authentication`` is ``token`` or ``none``. The head must
    answer within ``answer_s`` seconds. A node measures ``per_node`` jobs at once: a neighbour would be in
    their times.
    """

    address: str = ""
    resource: str = "{device}"
    authentication: str = "token"
    answer_s: float = 20.0
    per_node: int = 1
    poll_s: float = 0.5


@dataclass
class RayJobs:
    """The engine; ``access`` is how the cluster is being asked."""

    submission: Submission
    options: RayOptions
    access: Access
    link: BrokerLink | None = None
    open: set[str] = field(default_factory=set)
    states: dict[str, JobState] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """Where what is fetched lies."""
        return self.submission.folder.absolute() / "work"

    def called(self, job: PartJob) -> str:
        """``ray job part-3``."""
        return f"ray job {job.name}"

    def log(self, job: PartJob) -> Path:
        """What `torchgauge worker` said there."""
        return self.folder / f"{job.name}.out"

    def clear(self) -> None:
        """Wait until the broker of a command that was killed is gone; its agents end by themselves."""
        deadline = self.submission.clock.steady() + GONE_S
        while is_being_written(self.folder / "broker.lock") and self.submission.clock.steady() < deadline:
            time.sleep(0.05)

    def start(self, jobs: Sequence[PartJob]) -> Mapping[str, str]:
        """Give ``jobs`` to the broker; all are refused where it cannot be started."""
        if self.link is None:
            try:
                self.link = BrokerLink.begin(
                    to_plain(self.order()), self.folder, ray_environment(self.access), self.submission.clock
                )
            except OSError as error:
                return {job.name: f"the cluster cannot be reached: {error}" for job in jobs}
        self.open |= {job.name for job in jobs}
        self.states |= {job.name: JobState(Stage.WAITING, "the cluster is being asked") for job in jobs}
        self.link.tell(
            start=[
                {
                    "name": job.name,
                    "device": job.groups[0].device.name,
                    "groups": [each.id for each in job.groups],
                }
                for job in jobs
            ]
        )
        return {}

    def look(self) -> Mapping[str, JobState]:
        """What the broker says of each job; where it is gone, so are they, and the next ones get another."""
        if self.link is None:
            return self.states
        words = self.link.trouble(self.patience_s)
        self._hear(self.link)
        if words:
            self.link.close(0.0)
            self.link = None
            open_still = [name for name in self.open if self.states[name].stage is not Stage.ENDED]
            self.states |= dict.fromkeys(open_still, JobState(Stage.ENDED, words, told=True))
        return self.states

    def _hear(self, link: BrokerLink) -> None:
        self.states |= {name: state for name, state in dict(link.states).items() if name in self.open}
        said = list(link.notes)
        del link.notes[: len(said)]
        self.told += said

    def notes(self) -> list[str]:
        """What the broker had to say since it was last asked."""
        found, self.told = self.told, []
        return found

    @property
    def patience_s(self) -> float:
        """Seconds within which the broker must say something; it imports Ray first."""
        begun = self.link is not None and self.link.spoken
        return 2 * self.options.answer_s + (0 if begun else IMPORT_S)

    def end(self, jobs: Sequence[PartJob]) -> None:
        """Stop ``jobs``; returns when all that they measured is here, or a deadline has passed."""
        names = {job.name for job in jobs} & self.open
        clock = self.submission.clock
        running = {name for name in names if self.states[name].stage is not Stage.ENDED}
        if running and self.link is not None:
            self.link.tell(stop=sorted(running))
            until = clock.steady() + END_S
            while running and clock.steady() < until and not self.link.trouble(self.patience_s):
                self.submission.cancelled()  # who asks is alive
                time.sleep(0.05)
                self._hear(self.link)
                running = {name for name in running if self.states[name].stage is not Stage.ENDED}
            if running:
                self.link.tell(drop=sorted(running))
        self.open -= names
        for name in names:
            self.states.pop(name)

    def close(self) -> None:
        """Let broker and agents go."""
        if self.link is not None:
            self.link.close()
            self.link = None

    def order(self) -> Order:
        """What the broker is told at its start, with the plan beside it."""
        plan, options = self.submission.plan, self.options
        file = self.folder / "plan.json"
        write_atomically(file, json.dumps(to_plain(plan), allow_nan=False).encode())
        names = dict.fromkeys(group.device.name for group in self.submission.groups)
        variables = {
            name: value
            for name, value in passed().items()
            if not any(fnmatchcase(name, each) for each in OF_A_MACHINE)
        }
        return Order(
            run_id=plan.run_id,
            address=self.access.address,
            folder=str(self.folder),
            plan_file=str(file),
            devices=tuple(device_order(self.submission.devices[name], options) for name in names),
            variables=variables,
            worker_python="" if plan.python in {"", sys.executable} else plan.python,
            facts={**parity.facts(), "plan": plan.digest},
            per_node=max(1, options.per_node),
            lost_s=options.lost_s,
            answer_s=options.answer_s,
        )


def resource_of(device: str, options: RayOptions) -> str:
    """The resource that a node has where it has ``device``."""
    return options.resource.replace("{device}", device)


def device_order(device: Device, options: RayOptions) -> DeviceOrder:
    """How agents of ``device`` are placed: several on a node only where each can be shown its own."""
    resource = resource_of(device.name, options)
    visible = next(iter(getattr(device, "visibility_variables", ())), "")
    one = device.torch_type == HOST or (device.torch_type is not None and not visible)
    by_ray = resource == "GPU"  # Ray itself shows each actor its own
    return DeviceOrder(
        device.name,
        resource,
        1 if one and not by_ray else 0,
        "" if by_ray else visible,
        tuple(getattr(device, "passed_variables", ())),
    )
