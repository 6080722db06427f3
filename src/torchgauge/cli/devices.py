"""``torchgauge devices``."""

from __future__ import annotations

import contextlib
import shutil
import sys
from dataclasses import replace

import click

from torchgauge.cli.answer import JSON, say, say_json
from torchgauge.cli.options import EXECUTOR_OPTION, PYTHON


@click.command("devices")
@click.option(
    "--import-safety",
    is_flag=True,
    help="import torch with and without device packages; exit 1 on failure",
)
@click.option("--device", default="", help="with --import-safety: only the packages of this device")
@click.option("--release", metavar="DEVICE", default="", help="take this device out of quarantine")
@click.option("--executor", default="", help="list devices of this executor (local, slurm) and their runs")
@EXECUTOR_OPTION
@PYTHON
@JSON
def command(
    import_safety: bool,
    device: str,
    release: str,
    executor: str,
    executor_words: dict[str, str],
    python: str | None,
    as_json: bool,
) -> None:
    """List known devices: present with facts, absent with a reason, or in quarantine.

    Example: torchgauge devices
    """
    from torchgauge.errors import UsageError
    from torchgauge.harness.interpreter.interpreter import interpreter

    if release:
        _release(release, as_json)
        return
    if executor:
        _of_executor(executor, executor_words, as_json)
        return
    if device and not import_safety:
        raise UsageError(
            "--device requires --import-safety", hint=f"torchgauge doctor --device {device} prints details"
        )
    if import_safety:
        sys.exit(_import_safety(interpreter(python).path, device, as_json))
    _list(python, as_json)


def _of_executor(executor: str, words: dict[str, str], as_json: bool) -> None:
    """Print the devices of an executor, whether they are free, and the runs of torchgauge that have them."""
    from torchgauge.harness.executors.executor import executor_options
    from torchgauge.harness.executors.fleet import fleet_lines, fleet_of
    from torchgauge.records import to_plain

    devices = fleet_of(executor, executor_options(executor, words))
    if as_json:
        say_json([to_plain(row) for row in devices])
    else:
        say(fleet_lines(devices))


def _import_safety(python: str, name: str, as_json: bool) -> int:
    """Report and exit code: 1 where torch does not survive one of the ways to import it."""
    from torchgauge import registry
    from torchgauge.devices.device import Device
    from torchgauge.devices.discover import GROUP, find_device
    from torchgauge.devices.import_safety import import_safety
    from torchgauge.devices.listing import import_lines
    from torchgauge.errors import InfrastructureError
    from torchgauge.harness.interpreter.staging import environment_for
    from torchgauge.records import to_plain

    devices: list[Device] = []
    for each in registry.names(GROUP):
        try:
            device: Device = registry.load(GROUP, each)
        except InfrastructureError:
            continue  # a broken plugin is what the plain listing shows
        if name in ("", each) and device.torch_type is not None:
            devices.append(device)
    if name and not devices:
        with contextlib.suppress(InfrastructureError):  # its package is broken: that is what is asked here
            devices = [find_device(name, python)]
    found = import_safety(python, name, devices, environment=environment_for(python))
    if as_json:
        say_json({**to_plain(found), "safe": found.safe})
    else:
        click.echo("\n".join(import_lines(found, shutil.get_terminal_size((100, 24)).columns)))
    return 0 if found.safe else 1


def _release(name: str, as_json: bool) -> None:
    from torchgauge.harness.pool.quarantine import release
    from torchgauge.records import to_plain

    found = release(name)
    if as_json:
        say_json(to_plain(found))
    else:
        click.echo(f"device '{found.device}' is out of quarantine; it was {found.words}")


def _list(python: str | None, as_json: bool) -> None:
    from torchgauge.devices.discover import known_devices
    from torchgauge.devices.listing import listing
    from torchgauge.devices.probe import probe
    from torchgauge.harness.interpreter.foreign_plugins import plugin_devices
    from torchgauge.harness.interpreter.interpreter import hint_for, interpreter
    from torchgauge.harness.interpreter.staging import environment_for
    from torchgauge.harness.pool.quarantine import everything
    from torchgauge.harness.run.live_lines import ASKING, LiveLines
    from torchgauge.records import to_plain

    with LiveLines().during(ASKING):
        there = interpreter(python)
        report = probe(there.path, deep=True, environment=environment_for(there.path))
        found = known_devices(there.path, report=report, plugins=plugin_devices(there))
    reports = [replace(entry, fix=hint_for(there.path, entry.fix)) for entry in found]
    if as_json:
        say_json([to_plain(report) for report in reports])
        return
    say(listing(reports, shutil.get_terminal_size((100, 24)).columns))
    say([f"'{each.device}' is {each.words}; {each.lift}" for each in everything()])
