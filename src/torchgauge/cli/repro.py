"""``torchgauge repro``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from torchgauge.cli.answer import JSON, aside, say, say_json
from torchgauge.cli.grouped_command import GroupedCommand
from torchgauge.cli.options import (
    ATTEMPTS,
    EXPECTATIONS,
    NO_FALLBACK_CHECK,
    PYTHON,
    QUIET_WAIT,
    measuring,
    settings_of,
    sources,
    store_option,
)
from torchgauge.cli.verbosity import run_progress, verbosity
from torchgauge.errors import InfrastructureError, UsageError


def _new_file(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    """Return the absolute path of a new file, "" for none; raises :class:`UsageError`."""
    if value is None:
        return ""
    path = Path(value).absolute()
    if path.exists():
        raise UsageError(f"--trace {value} exists already", hint="--trace OTHER_FILE")
    if not path.parent.is_dir():
        raise UsageError(f"--trace {value}: {path.parent} is not a folder", hint=f"mkdir -p {path.parent}")
    return str(path)


@click.command("repro", cls=GroupedCommand)
@click.argument("case")
@sources
@EXPECTATIONS
@PYTHON
@measuring
@QUIET_WAIT
@NO_FALLBACK_CHECK
@ATTEMPTS
@store_option("folder of results")
@click.option(
    "--trace",
    metavar="FILE",
    callback=_new_file,
    help="write a profiler trace of three more steps, for Perfetto; FILE.gz is compressed",
)
@verbosity
@JSON
def command(case: str, store: str, trace: str, as_json: bool, **options: Any) -> None:
    """Run one CASE again, with eager, and print its numbers or its traceback.

    Settings are those of the newest result of CASE, unless an option changes them.

    Example: torchgauge repro 'timm/resnet18:inference:float32:b2:eager@DEVICE'
    """
    from torchgauge.harness.run.campaigns import repro_campaign
    from torchgauge.harness.run.recorded_settings import recorded_settings
    from torchgauge.harness.run.run_report import report_plain
    from torchgauge.harness.run.summary import result_lines, summary_lines
    from torchgauge.results.journal import results

    recorded = recorded_settings(store, case)
    settings, _ = settings_of(options, recorded.settings if recorded else None)
    if recorded is not None and not options["quiet"]:
        aside([f"settings are those of run {recorded.run_id}: {recorded.command}"])
        paths = [option for name, option in recorded.paths.items() if not options.get(name)]
        aside([f"  paths of a run are not used unless you add them: {' '.join(paths)}"] if paths else [])
    progress = run_progress(options)
    with progress.during():
        campaign = repro_campaign(
            case, settings, store=store, progress=progress, python=options["python"], trace=trace
        )
    report = campaign.run()
    folder = campaign.store.run(report.run_id)
    found = list(results(folder.journal_path))
    named = [row for row in found if row.case_id == case or len(found) == 1]
    for row in named:
        (aside if as_json else say)(result_lines(row))
    aside(summary_lines(report, campaign.store.path))
    if as_json:
        say_json(report_plain(report))
    if trace and Path(trace).exists():
        aside([f"trace in {trace}"])
    elif trace:
        reasons = [dict(row.facts).get("trace_unknown") or f"status {row.status.value}" for row in named]
        show = shlex.join(["torchgauge", "results", "show", case, "--store", store])
        aside([f"no trace of {case}: {(*reasons, 'the case did not run')[0]}", f"  try: {show}"])
        sys.exit(report.exit_code or InfrastructureError.exit_code)
    sys.exit(report.exit_code)
