"""``torchgauge ops``, with its verb ``judge``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from torchgauge.cli.answer import JSON, aside, say_json
from torchgauge.cli.grouped_command import GroupedCommand
from torchgauge.cli.lazy_group import LazyGroup
from torchgauge.cli.option_values import THREADS, CommaList, FiniteRange
from torchgauge.cli.options import EXPECTATIONS, PYTHON, store_option
from torchgauge.cli.verbosity import run_progress, verbosity

VERBS = {
    "judge": ("torchgauge.cli.ops:judge", "test operators on a device against the host CPU"),
    "census": ("torchgauge.cli.census", "count operators that models use or a device implements"),
    "blockers": ("torchgauge.cli.blockers", "rank missing operators by the models that each unblocks"),
}


@click.group("ops", cls=LazyGroup, sections={"Commands": VERBS})
def command() -> None:
    """Test PyTorch's operators on a device, count those that models use, and rank the missing ones."""


@click.command("judge", cls=GroupedCommand)
@click.option("--device", type=CommaList(), default=(), help="device names, as NAME or NAME.INDEX")
@click.option("--tier", default="smoke", show_default=True, help="smoke (fifty operators) or full (all)")
@click.option(
    "--ops", "patterns", type=CommaList(), default=(), help="names, globs or /regex/; overrides --tier"
)
@click.option("--dtype", type=CommaList(), default=(), help="dtypes (default: all that OpInfo lists)")
@click.option(
    "--variant",
    type=CommaList(),
    default=("forward",),
    help="forward, backward, out, inplace, noncontiguous, empty, expanded, large, or all (default: forward)",
)
@click.option(
    "--samples",
    type=click.IntRange(0),
    default=8,
    show_default=True,
    help="OpInfo samples per case (0: all)",
)
@click.option("--shard", default="1/1", help="i/n: only the i-th of n parts")
@click.option("--timeout", type=FiniteRange(0.1), help="timeout of one case in seconds (default: 60)")
@click.option("--threads", type=THREADS, help="CPU threads of each measuring process (default: torch's)")
@EXPECTATIONS
@PYTHON
@store_option("folder of results")
@click.option("--resume", metavar="RUN", help="continue this run: STORE/runs/ID, an id or `latest`")
@click.option("--script", metavar="CASE", help="print a Python script that reproduces this case; run nothing")
@verbosity
@JSON
def judge(**options: Any) -> None:
    """Test PyTorch's operators on devices against the host CPU, with PyTorch's samples and tolerances.

    Example: torchgauge ops judge --device DEVICE --tier full --dtype float32,bfloat16
    """
    from torchgauge.harness.checks.ops_matrix import causes, matrix, matrix_lines
    from torchgauge.harness.checks.ops_run import case_script, ops_campaign
    from torchgauge.harness.run.run_report import report_plain
    from torchgauge.harness.run.summary import summary_lines
    from torchgauge.results.lookup import results_of, resumed_folder

    if options["script"]:
        click.echo(case_script(options["script"]), nl=False)
        return
    if options["resume"]:
        options["resume"] = resumed_folder(options["store"], options["resume"], "runs")
    progress = run_progress(options)
    with progress.during():
        campaign, folder = ops_campaign(options, progress)
    report = campaign.run(folder)
    results = results_of(campaign.store, report.run_id)
    aside((*matrix_lines(results), *summary_lines(report, Path(campaign.store.path))))
    if options["as_json"]:
        data = report_plain(report)
        data["matrix"] = [
            {**asdict(row), "planned": row.planned, "passed": row.passed} for row in matrix(results)
        ]
        data["failures"] = [asdict(cause) for cause in causes(results)]
        say_json(data)
    sys.exit(report.exit_code)
