"""What the workers of one device import, and the jobs that they are given."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from torchgauge.devices import declared_variables
from torchgauge.devices.device import Device
from torchgauge.harness.backends.backend import compiler_of
from torchgauge.harness.executors.executor import Submission
from torchgauge.harness.interpreter.packages import suspects_in
from torchgauge.harness.interpreter.staging import tree_for
from torchgauge.harness.job import Job
from torchgauge.harness.pool.device_lease import leases
from torchgauge.harness.pool.host_process import HostOptions
from torchgauge.harness.scenarios.scenario import implementation_for
from torchgauge.records import PRETRAINED, DeviceTarget, Environment, Group, from_plain
from torchgauge.suites.lending import lender
from torchgauge.suites.suite import Suite

Variables = tuple[tuple[str, str], ...]
"""Environment variables by name, sorted: what tells the hosts of a device apart."""
TORCH_MODULES = ("torch", "torchgauge.suites.torchvision_schemas:define_missing_schemas")
COMPILER_MODULES = ("torch._dynamo", "torch._inductor.compile_fx")
"""Two seconds of imports: where something compiles, and where an optimiser asks the compiler."""
ONLY_CALLS = "inference"
WORKER_MODULES = (
    "torchgauge.harness.worker.group_run",
    "torchgauge.harness.worker.check_run",
    "torchgauge.harness.worker.fresh_process",
    "torchgauge.harness.worker.python_checks",
    "torchgauge.harness.scenarios.inference_steps",
    "torchgauge.harness.scenarios.training_steps",
    "torchgauge.devices.fingerprint",
    "torchgauge.devices.calibrate",
    "torchgauge.harness.worker.entry:warm_up_host",
    "torchgauge.registry:preload",
    "torchgauge.harness.worker.libraries:library_facts",
)
TORCH_WORKER_MODULES = ("torchgauge.harness.worker.torch_checks", "torch.utils.flop_counter")
"""What every worker of a device imports: imported once, in the host, where workers are forked."""


@dataclass(frozen=True)
class WorkerSetup:
    """One device in one interpreter, and the groups that are for it; scratch files lie in ``work``.

    ``brief`` ones need to know who the device is, and not how fast.
    """

    submission: Submission
    target: DeviceTarget
    groups: Sequence[Group]
    work: Path
    brief: bool = False

    @property
    def device(self) -> Device:
        """The descriptor of the device under test."""
        return self.submission.devices[self.target.name]

    @property
    def compiles(self) -> bool:
        """Whether any case is compiled."""
        return bool(self._compilers)

    @cached_property
    def _compilers(self) -> set[str]:
        """The back ends of ``torch.compile`` that the cases use."""
        cases = [planned.case for group in self.groups for planned in group.cases]
        return {compiler_of(case.configuration) for case in cases} - {""}

    @property
    def _may_compile(self) -> bool:
        """Whether a worker of any group would import the compiler by itself."""
        return self.compiles or any(each.checks or each.workload.mode != ONLY_CALLS for each in self.groups)

    def host_options(self, variables: Variables) -> HostOptions:
        """What a host with ``variables`` imports, and whether its workers may be forked.

        Raises :class:`InfrastructureError` where another run has the device.
        """
        suites = {name: suite for group in self.submission.groups for name, suite in [self._builds(group)]}
        environment = dict(self.device.environment(()))
        for name in sorted(suites):
            environment.update(suites[name].environment)
        if any(group.workload.weights == PRETRAINED for group in self.submission.groups):
            environment["HF_HUB_OFFLINE"] = os.environ.get("HF_HUB_OFFLINE", "0")
        environment.update(variables)
        return HostOptions(
            python=self.submission.python,
            environment=tuple(sorted(environment.items())),
            preload=self._preload([suites[name] for name in sorted(suites)]),
            warm=self.device.fork_safe,
            tree=tree_for(self.submission.python, self.work),
            passes=declared_variables.variables_of(self.device),
            leases=leases(
                self.device, self.target, max((g.workload.processes for g in self.groups), default=1)
            ),
        )

    def job(self, kind: str, **more: Any) -> Job:
        """A job of this device, with the paths still open."""
        base = Job(
            kind=kind,
            device=self.target,
            session=self.device.session,
            settings=self.submission.plan.settings,
            events="",
            cursor="",
            runs_torch=self.device.torch_type is not None,
        )
        return replace(base, **more)

    def group_job(self, kind: str, group: Group, cache: Path) -> Job:
        """A job that builds the model of ``group``."""
        _, suite = self._builds(group)
        checker = getattr(suite, "checker", "") if group.checks else ""
        return self.job(
            kind,
            group=group,
            cache=str(cache),
            builder=checker or suite.builder,
            scenario="" if group.checks else implementation_for(group.workload.mode, suite),
            install_hint=suite.install_hint,
            suspects=suspects_in(self.submission.python),
            preload=suite.preload,
        )

    def _builds(self, group: Group) -> tuple[str, Suite]:
        """The suite that builds the model of ``group``, by its name: its own, or the one that lends it."""
        lending, own = lender(group.recipe), group.workload.suite
        return (own, self.submission.suites[own]) if lending is None else (lending.name, lending)

    def _preload(self, suites: Sequence[Suite]) -> tuple[str, ...]:
        torch = self.device.torch_type is not None
        preload = [*TORCH_MODULES] if torch else []
        if torch and "inductor" in self._compilers:
            preload.append("torchgauge.harness.worker.compilation:prepare_machine")
        if torch:
            preload += COMPILER_MODULES if self._may_compile else ()
            preload += [module for suite in suites for module in suite.preload]
        preload += [*WORKER_MODULES, *(TORCH_WORKER_MODULES if torch else ())]
        preload.append(self.device.session.partition(":")[0])
        return (*preload, *sorted({suite.builder.partition(":")[0] for suite in suites}))


def variables_of(group: Group | None) -> Variables:
    """The environment variables that ``group``, whose cases share a process, asks for beside its suite's."""
    return () if group is None else group.cases[0].case.configuration.env


def environment_in(events: Sequence[dict[str, Any]]) -> Environment | None:
    """The environment that a calibrating worker has told, with what it noted; None where it has not."""
    for event in events:
        if event["ev"] == "environment":
            found = from_plain(Environment, event["environment"])
            return replace(found, notes=(*found.notes, *event["notes"]))
    return None
