"""``torchgauge devices``."""

from __future__ import annotations

import json
import sys

import click


@click.command("devices")
@click.option("--json", "as_json", is_flag=True, help="machine output on stdout")
def command(as_json: bool) -> None:
    """List each known device: present with its facts, or why it is not.

    Example: torchgauge devices
    """
    from torchgauge.devices.discover import known_devices
    from torchgauge.devices.listing import report_lines
    from torchgauge.records import to_plain

    reports = known_devices(sys.executable)
    if as_json:
        click.echo(json.dumps([to_plain(report) for report in reports], indent=1))
        return
    for report in reports:
        for line in report_lines(report):
            click.echo(line)
