"""``torchgauge fleet``: the machines that an executor has, and a Job for Kubernetes."""

from __future__ import annotations

import sys
from typing import Any

import click

from torchgauge.cli.answer import JSON, say, say_json
from torchgauge.cli.option_values import pairs
from torchgauge.cli.options import EXECUTOR_OPTION
from torchgauge.counted import counted


@click.group("fleet")
def command() -> None:
    """Devices of several machines: who has them, and how a scheduler starts workers on them."""


@command.command("status")
@click.option("--executor", default="local", show_default=True, help="where workers would run")
@EXECUTOR_OPTION
@JSON
def status(executor: str, executor_words: dict[str, str], as_json: bool) -> None:
    """Show devices of an executor, whether they are free, and the runs of torchgauge that have them.

    Example: torchgauge fleet status --executor slurm
    """
    from torchgauge.harness.executors.executor import executor_options
    from torchgauge.harness.executors.fleet import fleet_lines, fleet_of
    from torchgauge.records import to_plain

    found = fleet_of(executor, executor_options(executor, executor_words))
    if as_json:
        say_json([to_plain(each) for each in found])
    else:
        say(fleet_lines(found))


@command.command("kubernetes")
@click.argument("plan", type=click.Path(dir_okay=False))
@click.option("--image", required=True, help="container image with torchgauge and torch")
@click.option("--claim", required=True, help="volume claim that holds the plan's file and gets the parts")
@click.option("--plan-path", default="plan.json", show_default=True, help="the plan's file in the claim")
@click.option("--device", help="device of the plan, where it has several")
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="NAME=N",
    callback=pairs,
    help="what a pod needs, such as nvidia.com/gpu=1; may be given several times",
)
@click.option("--groups-per-job", default=10, show_default=True, help="groups that one pod measures")
@click.option("--parallel", default=1, show_default=True, help="pods that run at once")
@click.option("--attempts", default=2, show_default=True, help="pods that a part may cost")
def kubernetes(plan: str, device: str | None, **options: Any) -> None:
    """Print an indexed Job whose pods each measure a part of a PLAN file, for `kubectl apply -f -`.

    Example: torchgauge fleet kubernetes plan.json --image IMAGE --claim CLAIM --resource nvidia.com/gpu=1
    """
    from pathlib import Path

    import yaml

    from torchgauge.errors import UsageError
    from torchgauge.harness.fleet.kubernetes_job import KubernetesOptions, kubernetes_job
    from torchgauge.results.plan_file import PLANNED_BY, read_plan

    found = read_plan(Path(plan), PLANNED_BY)
    devices = sorted({str(group.device) for group in found.groups})
    if device is None and len(devices) != 1:
        raise UsageError(
            f"the plan has {counted(len(devices), 'device')}",
            hint=f"--device, one of: {', '.join(devices) or '(none)'}",
        )
    job = kubernetes_job(found, device or devices[0], KubernetesOptions(**options))
    yaml.safe_dump(job, sys.stdout, sort_keys=False, width=110)
