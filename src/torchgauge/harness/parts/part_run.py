"""Groups of a plan file, measured here: nothing of the process that made the plan is needed, but its file."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, TypeVar

from torchgauge import registry
from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.harness.executors.executor import Attempted, Yield
from torchgauge.harness.interpreter.interpreter import Interpreter, interpreter
from torchgauge.harness.parts.part_folder import PartFolder
from torchgauge.harness.run.campaigns import planned_parts
from torchgauge.harness.run.progress import Progress
from torchgauge.harness.run.run_report import RunReport
from torchgauge.harness.run.runner import Campaign
from torchgauge.harness.run.versions import refuse_other_torchgauge
from torchgauge.records import Calibration, Environment, Plan, Result
from torchgauge.results.journal import Journal, Kind, Part
from torchgauge.results.plan_file import PLANNED_BY, read_plan
from torchgauge.results.store import Store

NODE = "node"
"""The fact of a result, and the condition of an environment, that names the machine."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
Told = TypeVar("Told", bound=Yield)


@dataclass(frozen=True)
class PartCampaign(Campaign):
    """A campaign of some groups of a plan, whose rows say on which ``node`` they were measured.

    ``plan`` holds those groups alone. It publishes nothing: other machines measure the rest.
    """

    node: str = ""
    instead: ClassVar[str] = "pass another folder for other groups: --into DIR"

    def _publish(self) -> None:
        """A part has no tables."""

    def _begin(self, journal: Journal) -> None:
        journal.append(Kind.PART, [Part(self.node, tuple(group.id for group in self.plan.groups))])

    def _execute(self, *arguments: object) -> Iterator[Yield]:
        items = super()._execute(*arguments)  # type: ignore[arg-type]
        return (on_node(item, self.node) for item in items)


def part_campaign(
    plan_file: Path,
    groups: Sequence[str],
    *,
    node: str,
    progress: Progress,
    python: str | None = None,
    mixed: bool = False,
) -> tuple[PartCampaign, Plan]:
    """The campaign of the ``groups`` (ids) of the plan in ``plan_file``, and that whole plan.

    ``python`` names this machine's interpreter of the workers, where it is not that of the plan. Raises
    :class:`UsageError` for a plan of another version, unless versions may be ``mixed``, for what is not there
    and for an unknown group, and :class:`DataFileError` for a damaged file.
    """
    plan = read_plan(plan_file, PLANNED_BY)
    refuse_other_torchgauge(plan, mixed)
    known = {group.id: group for group in plan.groups}
    keys = {planned.case.key for group in plan.groups for planned in group.cases}
    if len(keys) < len(plan.cases) or len(known) < len(plan.groups):
        raise UsageError(f"{plan_file} contains a case or a group twice", hint="plan it again")
    for name in groups:
        if name not in known:
            raise UnknownNameError(f"group of {plan_file}", name, known)
    chosen = tuple(known[name] for name in dict.fromkeys(groups))
    registry.load("torchgauge.executors", "local")
    there = _interpreter_here(plan, python)
    part = replace(plan, groups=chosen, python=there.path)
    suites, devices = planned_parts(part, there)
    store = Store(plan_file.parent)
    return PartCampaign(part, store, devices, suites, progress, there.path, node=node, mixed=mixed), plan


def _interpreter_here(plan: Plan, python: str | None) -> Interpreter:
    try:
        return interpreter(python or plan.python or None)
    except UsageError as error:
        message = f"run {plan.run_id} was planned for an interpreter that is missing here. {error.message}"
        raise UsageError(message, hint="--python PATH with an interpreter of this machine") from error


def run_part(campaign: PartCampaign, plan: Plan, into: Path) -> RunReport:
    """Measure, or go on with what is left, in the folder ``into``, which gets ``plan``, rows and logs.

    Raises :class:`UsageError` where the folder holds something else, or is complete.
    """
    return campaign.run(PartFolder.begin(into, plan))


def node_name(text: str | None) -> str:
    """``text`` as the name of a node, this machine's own where it is None; raises :class:`UsageError`."""
    name = socket.gethostname().partition(".")[0] if text is None else text
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid node name: the node's log folder gets this name",
            hint="--node NAME with only letters, digits, dots, dashes and underscores",
        )
    return name


def on_node(item: Told, node: str) -> Told:
    """``item``, saying that it is of ``node``."""
    if isinstance(item, Environment):
        conditions = {**dict(item.conditions), NODE: node}
        return replace(item, conditions=tuple(sorted(conditions.items())))
    if isinstance(item, Calibration):
        return replace(item, node=node)
    if isinstance(item, Attempted):
        return replace(item, rows=tuple(_result_on(each, node) for each in item.rows))
    if isinstance(item, list):
        return [_result_on(each, node) for each in item]  # type: ignore[return-value]
    return item


def _result_on(result: Result, node: str) -> Result:
    return replace(result, facts=tuple(sorted({**dict(result.facts), NODE: node}.items())))
