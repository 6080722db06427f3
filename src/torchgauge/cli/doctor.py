"""``torchgauge doctor``."""

from __future__ import annotations

import json
import sys

import click

from torchgauge.cli.options import PYTHON

MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


@click.command("doctor")
@click.option("--device", help="look at this device more closely")
@PYTHON
@click.option("--json", "as_json", is_flag=True, help="machine output on stdout")
def command(device: str | None, python: str | None, as_json: bool) -> None:
    """Say what is missing on this machine and what to type; exit 3 where something must be mended.

    Example: torchgauge doctor
    """
    from torchgauge.devices.health import diagnose
    from torchgauge.harness.foreign_plugins import plugin_devices
    from torchgauge.harness.interpreter import interpreter
    from torchgauge.harness.staging import environment_for
    from torchgauge.records import to_plain

    there = interpreter(python)
    plugins, environment = plugin_devices(there), environment_for(there.path)
    checks = diagnose(there.path, device, plugins=plugins, environment=environment)
    if as_json:
        click.echo(json.dumps([to_plain(check) for check in checks], indent=1))
    else:
        for check in checks:
            click.echo(f"{MARKS[check.state.value]}  {check.name}: {check.message}")
            if check.fix:
                click.echo(f"        try: {check.fix}")
    sys.exit(3 if any(check.state.value == "fail" for check in checks) else 0)
