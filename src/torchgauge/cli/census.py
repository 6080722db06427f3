"""``torchgauge ops census``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from torchgauge.cli.answer import JSON, aside
from torchgauge.cli.option_values import CommaList, Seconds
from torchgauge.cli.options import PYTHON, store_option
from torchgauge.counted import counted


@click.command("census")
@click.option("--static", "static", is_flag=True, help="read the dispatcher; run nothing on the device")
@click.option(
    "--record", is_flag=True, help="run models on a device and record the operators that they dispatch"
)
@click.option(
    "--device",
    type=CommaList(),
    default=(),
    help="with --static and --record: device names",
)
@click.option("--suite", type=CommaList(), default=(), help="suites (default: all)")
@click.option("--models", "--model", "models", type=CommaList(), default=(), help="names, globs or /regex/")
@click.option("--mode", type=CommaList(), default=(), help="inference,training (default: both)")
@click.option("--dtype", type=CommaList(), default=(), help="dtypes (default: all; with --record: float32)")
@click.option("--path", "paths", type=CommaList(), default=(), help="eager,compiled (default: both)")
@click.option("--received", is_flag=True, help="count operators after decomposition of composites")
@click.option("--top", type=click.IntRange(0), default=30, show_default=True, help="operators shown; 0: all")
@click.option("--data", metavar="FILE", help="file of --record (default: the shipped one)")
@click.option("--out", metavar="FILE", help="with --record: output file; an existing file is extended")
@click.option("--timeout", type=Seconds(), help="with --record: timeout of one recording (default: 600 s)")
@PYTHON
@store_option("store for results of --static")
@click.option("--csv", "as_csv", is_flag=True, help="print every operator as CSV on stdout")
@JSON
def command(static: bool, record: bool, **options: Any) -> None:
    """Count operators: those that models dispatch, or (--static) that a device has.

    Without --static and --record, shows the operators of models that torchgauge knows.

    Example: torchgauge ops census --suite timm --mode training --path eager
    """
    from torchgauge.errors import UsageError

    if static and record:
        raise UsageError("--static and --record were both given", hint="pass one of them")
    if (static or record) and not options["device"]:
        raise UsageError("no device was given", hint="--device NAME; torchgauge devices lists them")
    if static:
        _static(options)
    elif record:
        _record(options)
    else:
        _show(options)


def _static(options: dict[str, Any]) -> None:
    from torchgauge.errors import UsageError
    from torchgauge.harness.census.static import census_csv, census_json, census_lines, keep, static_census
    from torchgauge.harness.interpreter.interpreter import interpreter
    from torchgauge.harness.run.campaigns import expand_devices, find_devices

    there = interpreter(options["python"])
    wanted = expand_devices(options["device"], there)
    devices = find_devices(wanted, there)
    found = []
    for name, each in devices.items():
        if each.torch_type is None:
            raise UsageError(
                f"device {name!r} has no torch device type",
                hint="pass a device of torch; torchgauge devices lists them",
            )
        found.append(static_census(there.path, each.torch_type))
    for census in found:
        kept = keep(census, options["store"])
        aside((*census_lines(census), f"  kept in {kept}"))
        if options["as_csv"]:
            click.echo(census_csv(census), nl=False)
    if options["as_json"]:
        click.echo(f"[{','.join(map(census_json, found))}]")


def _record(options: dict[str, Any]) -> None:
    from torchgauge.errors import UsageError
    from torchgauge.harness.census.record import DEADLINE_S, Wanted, record

    if len(options["device"]) != 1:
        raise UsageError("--record requires exactly one device", hint="--device NAME")
    if not options["out"]:
        raise UsageError("--record requires an output file", hint="--out FILE.json.gz")
    chosen = {"modes": options["mode"], "dtypes": options["dtype"], "paths": options["paths"]}
    wanted = Wanted(
        device=options["device"][0],
        suites=options["suite"],
        models=options["models"],
        python=options["python"],
        deadline_s=options["timeout"] or DEADLINE_S,
        **{name: value for name, value in chosen.items() if value},
    )
    out = Path(options["out"])
    data = record(wanted, out, lambda line: click.echo(line, err=True))
    problems = sum(bool(each.problem) for each in data.models)
    click.echo(
        f"{out}: {counted(len(data.models), 'model entry', 'model entries')}, {problems} not recorded; "
        f"{counted(len(data.opinfo), 'operator has', 'operators have')} OpInfo samples",
        err=True,
    )


def _show(options: dict[str, Any]) -> None:
    from torchgauge.harness.census.versions import versions_in
    from torchgauge.harness.census.view import (
        View,
        looked_at,
        stale_lines,
        view_csv,
        view_json,
        view_text,
    )
    from torchgauge.harness.interpreter.interpreter import interpreter
    from torchgauge.suites.census.data import kept_packages, load

    there = interpreter(options["python"])
    path = Path(options["data"]) if options["data"] else None
    data = load(path, versions_in(there, kept_packages()))
    installed = versions_in(there, data.versions)
    view = View(options["suite"], options["models"], options["mode"], options["dtype"], options["paths"])
    entries = looked_at(data, view)
    aside(stale_lines(data, installed))
    received = options["received"]
    if options["as_csv"]:
        click.echo(view_csv(entries), nl=False)
    if options["as_json"]:
        click.echo(view_json(data, entries, installed, received=received))
    if not (options["as_csv"] or options["as_json"]):
        click.echo(view_text(data, entries, options["top"], received=received), nl=False)
