"""``torchgauge census``."""

from __future__ import annotations

from typing import Any

import click

from torchgauge.cli.options import PYTHON, CommaList


@click.command("census")
@click.option("--static", "static", is_flag=True, help="ask the dispatcher; nothing runs on the device")
@click.option("--device", type=CommaList(), default=(), help="devices, for example D or D1,D2")
@PYTHON
@click.option("--store", default="./torchgauge-results", show_default=True, help="where the census is kept")
@click.option("--csv", "as_csv", is_flag=True, help="every operator with its kind as CSV on stdout")
@click.option("--json", "as_json", is_flag=True, help="machine output on stdout")
def command(static: bool, device: tuple[str, ...], python: str | None, **options: Any) -> None:
    """Count the operators that a device has of its own, by composition, by a fallback, or not at all.

    Example: torchgauge census --static --device DEVICE
    """
    from torchgauge.errors import UsageError
    from torchgauge.harness.campaigns import expand_devices, find_devices
    from torchgauge.harness.interpreter import interpreter
    from torchgauge.harness.static_census import census_csv, census_json, census_lines, keep, static_census

    if not static:
        raise UsageError("no kind of census is named", hint="--static asks the dispatcher")
    if not device:
        raise UsageError("no device is named", hint="--device NAME; torchgauge devices lists them")
    there = interpreter(python)
    wanted = expand_devices(device, there)
    devices = find_devices(wanted, there)
    found = []
    for name, each in devices.items():
        if each.torch_type is None:
            raise UsageError(f"device {name!r} runs no torch", hint="name a device of torch")
        found.append(static_census(there.path, each.torch_type))
    for census in found:
        kept = keep(census, options["store"])
        for line in (*census_lines(census), f"  kept in {kept}"):
            click.echo(line, err=True)
        if options["as_csv"]:
            click.echo(census_csv(census), nl=False)
    if options["as_json"]:
        click.echo(f"[{','.join(map(census_json, found))}]")
