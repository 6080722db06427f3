"""``torchgauge results import``."""

from __future__ import annotations

from pathlib import Path

import click

from torchgauge.cli.option_values import CommaList
from torchgauge.cli.options import store_option
from torchgauge.counted import counted


@click.command("import")
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--format", "form",
    type=click.Choice(("dynamo-csv", "hud-v3", "torchbench-json")),
    help="format of the files (default: detected from name and content)",
)  # fmt: skip
@click.option("--suite", default="", help="suite, if missing in the files")
@click.option("--mode", default="", help="mode, if missing in the files")
@click.option("--dtype", default="", help="dtype, if missing in the files")
@click.option("--device", default="", help="device, instead of that in the files")
@click.option("--config", default="", help="configuration, if missing in the files")
@click.option("--ignore-columns", type=CommaList(), default=(), help="CSV columns to ignore")
@store_option("store of the new run")
def command(
    files: tuple[str, ...],
    form: str | None,
    suite: str,
    mode: str,
    dtype: str,
    device: str,
    config: str,
    ignore_columns: tuple[str, ...],
    store: str,
) -> None:
    """Import result FILES of PyTorch's dynamo runner, HUD or TorchBench as one run.

    Nothing is written unless every file can be read.

    Example: torchgauge results import inductor_no_cudagraphs_timm_models_amp_training_cuda_performance.csv
    """
    from torchgauge.harness.planning.configurations import bundled
    from torchgauge.processes.known_secrets import own_command
    from torchgauge.registry import metrics
    from torchgauge.results.interchange.formats import read_files
    from torchgauge.results.interchange.imported_run import Known, write_run
    from torchgauge.results.interchange.upstream_names import Context

    known = Known(metrics(), {name: each.configuration for name, each in bundled().items()})
    given = Context(suite, mode, dtype, device, config)
    cases = read_files([Path(name) for name in files], form, given, known, ignore_columns)
    run_id = write_run(store, cases, known, list(own_command()))
    click.echo(run_id)
    click.echo(f"{counted(len(cases), 'case')}; torchgauge results show {run_id} --store {store}", err=True)
