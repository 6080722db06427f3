"""``torchgauge bringup``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from torchgauge.cli.answer import JSON, say_json
from torchgauge.cli.option_values import THREADS, CommaList, Seconds
from torchgauge.cli.options import PYTHON


@click.command("bringup")
@click.option("--device", required=True, metavar="D", help="the device")
@click.option("--out", required=True, metavar="FOLDER", help="new folder, or one to continue")
@click.option("--budget", type=Seconds(), default="30m", show_default=True, help="time budget")
@click.option("--parts", type=CommaList(), default=(), help="only these parts (default: all)")
@click.option("--checks", type=CommaList(), default=(), help="only these checks: names, globs or /regex/")
@click.option("--ops", type=CommaList(), default=(), help="only these operators")
@click.option("--suites", type=CommaList(), default=(), help="suites (default: toy,timm,huggingface)")
@click.option("--models", type=CommaList(), default=(), help="only these models")
@click.option("--threads", type=THREADS, help="CPU threads of each measuring process (default: torch's)")
@PYTHON
@JSON
def command(
    device: str,
    out: str,
    budget: float,
    parts: tuple[str, ...],
    checks: tuple[str, ...],
    ops: tuple[str, ...],
    suites: tuple[str, ...],
    models: tuple[str, ...],
    threads: int | None,
    python: str | None,
    as_json: bool,
) -> None:
    """Answer ten questions about a device, and write a report.

    Parts: identity, import, doctor, check, ops, models, collectives, all_ops.

    To continue an interrupted bring-up, repeat the command. FOLDER contains report.html, report.md and
    the results.

    Exit codes: 0 all answers are yes, 1 a fault was found, 2 usage, 3 no device or an unknown answer,
    130 interrupted.

    Example: torchgauge bringup --device DEVICE --out bringup
    """
    from torchgauge.harness.bringup.bringup_run import bringup_run
    from torchgauge.harness.bringup.page import terminal_of, write_bundle, write_pages
    from torchgauge.harness.bringup.report import report_of
    from torchgauge.harness.bringup.state import Asked, Bringup
    from torchgauge.records import to_plain

    folder = Path(out)

    def after(state: Bringup) -> None:
        write_pages(folder, report_of(folder, state))

    asked = Asked(device, python or "", parts, checks, ops, suites, models, threads)
    with bringup_run(folder, asked, budget, after) as run:
        state = run.run()
        report = report_of(folder, state)
        write_pages(folder, report)
        write_bundle(folder, state)
    if as_json:
        say_json({**to_plain(report), "exit_code": report.exit_code})
    else:
        click.echo(terminal_of(report), nl=False)
    click.echo(
        f"{folder / 'report.html'}, {folder / 'report.md'}; for a maintainer: {folder / 'bundle'}", err=True
    )
    sys.exit(130 if run.interrupted else report.exit_code)
