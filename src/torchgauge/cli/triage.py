"""``torchgauge results triage``."""

from __future__ import annotations

import sys

import click

from torchgauge.cli.answer import asides, forms, say_json
from torchgauge.cli.option_values import CommaList, moment_of
from torchgauge.cli.options import STORES


@click.command("triage")
@STORES
@click.option("--device", type=CommaList(), default=(), help="device names, as NAME or NAME.INDEX")
@click.option("--suite", "suites", type=CommaList(), default=(), help="only models of these suites")
@click.option(
    "--status",
    "statuses",
    type=CommaList(),
    default=(),
    help="statuses to group (default: all failures)",
)
@click.option(
    "--since",
    metavar="RUN|DATE",
    help="compare with the state after RUN or before a date (default: before the newest run)",
)
@click.option("--unexpected", is_flag=True, help="exclude expected failures")
@click.option(
    "--top",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="groups to show (0: all)",
)
@forms(csv="CSV on stdout", markdown="Markdown on stdout")
def command(
    stores: tuple[str, ...],
    device: tuple[str, ...],
    suites: tuple[str, ...],
    statuses: tuple[str, ...],
    since: str | None,
    unexpected: bool,
    top: int,
    form: str,
) -> None:
    """Group failures by root cause, largest first, with a command for each.

    Measures nothing. Exit codes: 0; 3 if part of a store could not be read; 5 if nothing was published.

    Example: torchgauge results triage --store here --store there --since 7d
    """
    from torchgauge.results.triage.findings import triage
    from torchgauge.results.triage.reading import Wanted
    from torchgauge.results.triage.text import as_plain, csv_of, markdown_of, terminal_of

    wanted = Wanted(device, suites, _statuses(statuses))
    found = triage(stores, wanted, _since(since, stores), unexpected=unexpected)
    if form == "json":
        say_json(as_plain(found))
    elif form == "csv":
        click.echo(csv_of(found), nl=False)
    else:
        click.echo((markdown_of if form == "markdown" else terminal_of)(found, top), nl=False)
    if form in ("json", "csv"):
        asides(found.notes, found.gaps)
    sys.exit(3 if found.gaps else 0)


def _statuses(words: tuple[str, ...]):  # type: ignore[no-untyped-def]
    from torchgauge.errors import UnknownNameError
    from torchgauge.records import INCOMPLETE, Status
    from torchgauge.results.triage.findings import FAILING

    known = {status.value: status for status in Status if status not in INCOMPLETE}
    del known[Status.PASS.value]
    for word in words:
        if word not in known:
            raise UnknownNameError("failure status", word, known)
    return tuple(dict.fromkeys(known[word] for word in words)) or FAILING


def _since(text: str | None, stores: tuple[str, ...]) -> str | float | None:
    """A run as it is, a date or a number of days back as seconds since the epoch."""
    from torchgauge.errors import UnknownNameError
    from torchgauge.results.lookup import resolve
    from torchgauge.results.store import Store

    if not text:
        return None
    opened = [Store.open(path) for path in stores if "/" not in text and not text.startswith(".")]
    if any(store.is_published(text) for store in opened):
        return text
    moment = moment_of(text)
    if moment is not None or not opened:
        return text if moment is None else moment
    published = {run.run_id: run for store in opened for run in store.runs() if run.published}
    in_time = sorted(published.values(), key=lambda run: (run.created_at, run.run_id))
    try:
        return resolve(text, [run.run_id for run in in_time], "finished run")
    except UnknownNameError:
        return text  # neither: whoever reads the rows says so
