"""``torchgauge bisect``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from torchgauge.cli.answer import JSON, say_json
from torchgauge.cli.options import store_option
from torchgauge.errors import UsageError


@click.command("bisect")
@click.argument("model", metavar="SUITE/MODEL")
@click.option("--device", required=True, help="one device: NAME or NAME.INDEX")
@click.option("--builds", "file", metavar="FILE", help="YAML with the builds, oldest first")
@click.option("--build", "named", multiple=True, metavar="LABEL=PYTHON", help="a build; repeat, oldest first")
@click.option("--mode", default="inference", show_default=True, help="inference or training")
@click.option("--config", default="eager", show_default=True, help="one named configuration")
@click.option("--dtype", default="float32", show_default=True, help="one dtype")
@click.option("--size", default="small", show_default=True, help="model size: small or full")
@click.option("--metric", default="latency", show_default=True, help="metric")
@store_option("store of comparisons and of the search")
@click.option("--fresh", is_flag=True, help="restart instead of continuing an interrupted search")
@JSON
def command(model: str, **options: Any) -> None:
    """Find the build at which SUITE/MODEL became slower or faster.

    To continue an interrupted search, repeat the command. Exit codes: 0 found, 1 not reproduced, 3
    incomplete.

    Example: torchgauge bisect timm/resnet18 --device DEVICE --builds builds.yaml
    """
    from torchgauge.harness.ab.progress import AbProgress
    from torchgauge.harness.ab.quick_measure import QuickCase, measure_case
    from torchgauge.harness.bisect.bisection import EXIT_CODES, Bisection
    from torchgauge.harness.bisect.builds import load_builds, named_builds
    from torchgauge.harness.planning.selection import suites_and_models
    from torchgauge.records import to_plain
    from torchgauge.results.store import Store

    if bool(options["file"]) == bool(options["named"]):
        raise UsageError("no builds given" if not options["file"] else "--builds and --build given",
                         hint="--builds FILE, or --build LABEL=PYTHON twice")  # fmt: skip
    suites, models = suites_and_models((model,))
    if len(models) != 1 or models[0].count("/") != 1 or not all(models[0].split("/")):
        hint = "torchgauge suites show SUITE lists models; for your own file: mine.py::model"
        raise UsageError(f"{model!r} is not of the form SUITE/MODEL", hint=hint)
    builds = load_builds(Path(options["file"])) if options["file"] else named_builds(options["named"])
    names = ("device", "mode", "config", "dtype", "size")
    case = QuickCase(models[0], **{name: options[name] for name in names}, word=suites[0])
    store = Store.open(options["store"], create=True)
    bisection = Bisection(
        store,
        builds,
        case.text,
        options["metric"],
        measure_case(store, case, options["metric"], AbProgress),
        say=lambda line: click.echo(line, err=True),
        shown=AbProgress().during,
    )
    ended = bisection.run(fresh=options["fresh"])
    if options["as_json"]:
        plain = {"ending": ended.ending.value, "explanation": ended.explanation(), "search": to_plain(ended)}
        say_json(plain)
    else:
        _show(ended, bisection)
    sys.exit(EXIT_CODES[ended.ending])


def _show(ended: Any, bisection: Any) -> None:
    from torchgauge.harness.bisect.bisection import step_line

    click.echo(f"{ended.ending.value}: {ended.explanation()}")
    for number in range(len(ended.steps)):
        click.echo(f"  {step_line(ended, number)}")
        if ended.steps[number].reading.comparison:
            click.echo(f"    evidence: comparison {ended.steps[number].reading.comparison}")
    click.echo(f"  state: {bisection.path}")
