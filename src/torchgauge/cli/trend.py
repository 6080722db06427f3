"""``torchgauge results trend``."""

from __future__ import annotations

import sys
from typing import Any

import click

from torchgauge.cli.answer import JSON, asides, say_json
from torchgauge.cli.option_values import since
from torchgauge.cli.options import store_option
from torchgauge.errors import UsageError


@click.command("trend")
@store_option("the store to read")
@click.option("--metric", default="latency", show_default=True, help="name of the metric")
@click.option("--suite", default="", help="glob over suites")
@click.option("--model", default="", help="glob over models")
@click.option("--device", default="", help="glob over devices")
@click.option("--config", default="", help="glob over configurations")
@click.option("--since", callback=since, help="exclude older runs: 2026-08-01, or 90d")
@click.option("--reference", default="", help="interpreter or torch version of a fixed reference build")
@click.option("--confirm", is_flag=True, help="measure suspected changes again")
@click.option("--build", "builds", multiple=True, help="interpreter of a build, TORCH_VERSION=PYTHON")
@click.option("--most", default=5, show_default=True, help="maximum number of suspected changes to confirm")
@click.option("--no-keep", is_flag=True, help="do not store the findings")
@click.option("--all", "every", is_flag=True, help="show every series")
@JSON
def command(**options: Any) -> None:
    """Find changes in nightly history, and confirm them.

    Exit codes: 0, or 1 if a regression was confirmed.

    Example: torchgauge results trend --since 90d --confirm --build 2.12.0=old/bin/python
    """
    from torchgauge.harness.bisect.builds import named_build
    from torchgauge.registry import metrics
    from torchgauge.results.dataset import around_damage, gaps_of
    from torchgauge.results.store import Store
    from torchgauge.results.trends.trend import trend
    from torchgauge.results.trends.trend_findings import TrendFilter
    from torchgauge.results.trends.trend_text import trend_plain, trend_text

    known = metrics()
    if options["metric"] not in known:
        from torchgauge.errors import UnknownNameError

        raise UnknownNameError("metric", options["metric"], known)
    if options["builds"] and not options["confirm"]:
        raise UsageError("--build requires --confirm", hint="add --confirm")
    builds = dict(map(named_build, options["builds"]))  # by the version of torch that is built there
    store = Store.open(options["store"])
    wanted = TrendFilter(
        metric=options["metric"],
        suite=options["suite"],
        model=options["model"],
        device=options["device"],
        configuration=options["config"],
        since=options["since"],
        reference=_reference(options["reference"]),
    )

    def look() -> Any:
        return around_damage(store, lambda: trend(store, wanted))

    found = look()
    asides((), gaps_of(store))
    if options["confirm"] and found.suspicions:
        _confirm(store, found, builds, options["most"])
        found = look()
    if options["as_json"]:
        say_json(trend_plain(found))
    else:
        click.echo(trend_text(found, every_series=options["every"]), nl=False)
    if not options["no_keep"]:
        _keep(store, found, wanted, quiet=options["as_json"])
    confirmed = any(each.state.value == "confirmed" and each.worse for each in found.suspicions)
    sys.exit(1 if confirmed else 0)


def _keep(store: Any, found: Any, wanted: Any, *, quiet: bool) -> None:
    """Keep what was found; a store that cannot be written to is said, and is no reason to fail."""
    from torchgauge.clock import SYSTEM_CLOCK
    from torchgauge.errors import InfrastructureError
    from torchgauge.results.trends.trend_findings import keep

    try:
        path = keep(store, found, wanted, SYSTEM_CLOCK.now())
    except InfrastructureError as error:
        click.echo(f"findings were not stored for the dashboard: {error.message}", err=True)
        return
    if not quiet:
        click.echo(f"findings for the dashboard are in {path}", err=True)


def _reference(text: str) -> str:
    """An interpreter as plans name it; anything that is no file is a version of torch."""
    from pathlib import Path

    from torchgauge.harness.interpreter.interpreter import locate

    return locate(text) if text and Path(text).expanduser().exists() else text


def _confirm(store: Any, found: Any, builds: dict[str, str], most: int) -> None:
    from torchgauge.harness.ab.confirmation import Confirmer, open_suspicions
    from torchgauge.harness.ab.quick_measure import measure_suspicion
    from torchgauge.results.trends.trend_outcomes import append_outcome

    confirmer = Confirmer(
        measure_suspicion(store),
        builds=builds,
        reference=found.reference_of,
    )
    for suspicion in open_suspicions(found.suspicions, most):
        click.echo(f"confirming {suspicion.series.case_id} {suspicion.moved}", err=True)
        outcome = confirmer.confirm(suspicion)
        append_outcome(store, outcome)
        click.echo(f"  {outcome.state.name}: {outcome.reason}", err=True)
