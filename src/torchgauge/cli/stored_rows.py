"""``torchgauge results query`` and ``results export``: rows of a store, on a screen or in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from torchgauge.cli.answer import JSON, asides, say, say_json
from torchgauge.cli.options import store_option
from torchgauge.counted import counted
from torchgauge.errors import UsageError

STORE = store_option("the store")
RUN = click.option("--run", "run", metavar="RUN", help="only this run: an id, `latest`, `latest~1`")
DIGITS = 5
"""Significant digits of a number on a screen; --json, --csv and --parquet have all of them."""
DEFAULT_COLUMNS = {
    "results": ("run_id", "case_id", "status", "phase", "cause", "reason"),
    "summaries": ("run_id", "case_id", "metric", "median", "low", "high", "unit", "n", "modifiers"),
}


@click.command("query")
@click.argument("conditions", nargs=-1)
@click.option("--table", default="results", show_default=True, help="table: results, summaries or samples")
@RUN
@click.option("--columns", help="columns to show, separated by commas")
@STORE
@JSON
def query_rows(conditions: tuple[str, ...], **options: Any) -> None:
    """Print rows that match all CONDITIONS (field=value, field!=value, field>number; globs).

    Example: torchgauge results query status!=pass suite=timm
    """
    from torchgauge.results.dataset import around_damage, gaps_of
    from torchgauge.results.lookup import resolve_run
    from torchgauge.results.query import query
    from torchgauge.results.store import Store

    opened, table = Store.open(options["store"]), options["table"]
    run = resolve_run(opened, options["run"]) if options["run"] else None
    columns = options["columns"]
    wanted = [name.strip() for name in columns.split(",")] if columns else None
    if wanted is None and not options["as_json"]:
        wanted = list(DEFAULT_COLUMNS.get(table, ())) or None

    def asked() -> Any:
        return query(opened, conditions, table, run, wanted)

    frame = asked() if run else around_damage(opened, asked)
    asides((), gaps_of(opened))
    if options["as_json"]:
        click.echo(frame.to_json(orient="records", date_format="iso", indent=1))
    elif frame.empty:
        click.echo("no row matches the conditions", err=True)
    else:
        click.echo(frame.astype(object).map(_shown).to_string(index=False, max_colwidth=80))


def _shown(value: Any) -> object:
    """A number with :data:`DIGITS` significant digits, however small; ``-`` for none."""
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and value < 1e15 else f"{value:.{DIGITS}g}"
    return "-" if value is None or type(value).__name__ == "NAType" else value


@click.command("export")
@click.argument("conditions", nargs=-1)
@click.option("--csv", metavar="PATH", help="a .csv file, or a folder with one file per table")
@click.option("--parquet", metavar="PATH", help="a .parquet file, or a folder with one file per table")
@click.option(
    "--table", "tables", multiple=True, help="results, summaries, samples, environments or calibrations"
)
@RUN
@click.option(
    "--format", "form", type=click.Choice(("dynamo-csv", "dynamo-expected", "hud-v3")),
    help="format of PyTorch's tools: dynamo's CSV or expected-accuracy files, or HUD's JSON",
)  # fmt: skip
@click.option("--out", metavar="PATH", help="with --format: output folder of CSV files, or output JSON file")
@click.option(
    "--benchmark", default="torchgauge", show_default=True, help="with --format hud-v3: benchmark.name"
)
@STORE
@JSON
def export_rows(
    conditions: tuple[str, ...], form: str | None, out: str | None, benchmark: str, **options: Any
) -> None:
    """Write results that match all CONDITIONS as CSV or Parquet, in base units.

    With --format, write one run for PyTorch's tools.

    Example: torchgauge results export --csv rows.csv --run latest
    """
    if form is None:
        _export_tables(conditions, **options)
        return
    runs = [*conditions, *filter(None, [options["run"]])]
    if len(runs) != 1 or out is None or options["csv"] or options["parquet"]:
        raise UsageError("--format writes one run", hint=f"RUN --format {form} --out PATH")
    from torchgauge.results.interchange.formats import export_run
    from torchgauge.results.lookup import resolve_run
    from torchgauge.results.store import Store

    opened = Store.open(options["store"])
    written = export_run(opened, resolve_run(opened, runs[0]), form, Path(out), benchmark)
    say(written.files)
    for case, reason in written.left_out:
        click.echo(f"left out: {case}: {reason}", err=True)


def _export_tables(conditions: tuple[str, ...], as_json: bool, **options: Any) -> None:
    from torchgauge.results.dataset import around_damage, gaps_of
    from torchgauge.results.lookup import resolve_run
    from torchgauge.results.store import Store
    from torchgauge.results.table_export import CSV, PARQUET, Wanted, export_table, places

    given = [(form, options[form]) for form in (CSV, PARQUET) if options[form]]
    if len(given) != 1:
        what = "no output was given" if not given else "two outputs were given"
        raise UsageError(what, hint="--csv PATH, --parquet PATH, or RUN --format hud-v3 --out PATH")
    form, out = given[0]
    opened = Store.open(options["store"])
    run = resolve_run(opened, options["run"]) if options["run"] else None
    wanted = Wanted(tuple(dict.fromkeys(options["tables"])), conditions, run)
    written = {}
    for table, path in places(Path(out), form, wanted).items():

        def ask(table: str = table, path: Path = path) -> int:
            return export_table(opened, table, path, form, wanted)

        written[str(path)] = ask() if run else around_damage(opened, ask)
    asides((), gaps_of(opened))
    if as_json:
        say_json(written)
        return
    for name, rows in written.items():
        click.echo(f"{name}: {counted(rows, 'row')}")
