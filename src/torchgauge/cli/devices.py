"""``torchgauge devices``."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import click

from torchgauge.cli.options import PYTHON


@click.command("devices")
@PYTHON
@click.option("--json", "as_json", is_flag=True, help="machine output on stdout")
def command(python: str | None, as_json: bool) -> None:
    """List each known device: present with its facts, or why it is not.

    Example: torchgauge devices
    """
    from torchgauge.devices.discover import known_devices
    from torchgauge.devices.listing import listing
    from torchgauge.devices.probe import probe
    from torchgauge.harness.foreign_plugins import plugin_devices
    from torchgauge.harness.interpreter import hint_for, interpreter
    from torchgauge.harness.staging import environment_for
    from torchgauge.records import to_plain

    there = interpreter(python)
    report = probe(there.path, deep=True, environment=environment_for(there.path))
    found = known_devices(there.path, report=report, plugins=plugin_devices(there))
    reports = [replace(entry, fix=hint_for(there.path, entry.fix)) for entry in found]
    if as_json:
        click.echo(json.dumps([to_plain(report) for report in reports], indent=1))
        return
    for line in listing(reports, shutil.get_terminal_size((100, 24)).columns):
        click.echo(line)
