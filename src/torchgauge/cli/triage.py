"""``torchgauge triage``."""

from __future__ import annotations

import json
import sys

import click

from torchgauge.cli.options import STORES, CommaList, moment_of


@click.command("triage")
@STORES
@click.option("--device", type=CommaList(), default=(), help="only these devices: D or D1,D2 or D.1")
@click.option("--suite", "suites", type=CommaList(), default=(), help="only models of these suites")
@click.option(
    "--status",
    "statuses",
    type=CommaList(),
    default=(),
    help="statuses to cluster, also unsupported or skipped (default: all that count as failures)",
)
@click.option(
    "--since",
    metavar="RUN|DATE",
    help="compare with how things stood after RUN, or before 2027-01-31 or 30d ago (default: before the "
    "newest run)",
)
@click.option("--unexpected", is_flag=True, help="leave out clusters that data files expect whole")
@click.option(
    "--top",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="clusters to show in text and Markdown; 0 is all",
)
@click.option("--json", "as_json", is_flag=True, help="machine output on stdout")
@click.option("--csv", "as_csv", is_flag=True, help="a line for each cluster as CSV on stdout")
@click.option("--markdown", "as_markdown", is_flag=True, help="a page or an issue on stdout")
def command(  # noqa: PLR0917  click passes them by name
    stores: tuple[str, ...],
    device: tuple[str, ...],
    suites: tuple[str, ...],
    statuses: tuple[str, ...],
    since: str | None,
    unexpected: bool,
    top: int,
    as_json: bool,
    as_csv: bool,
    as_markdown: bool,
) -> None:
    """Cluster failures by root cause over models and devices, largest first, with a command for each.

    Runs nothing. Exit codes: 0; 3 where part of a store could not be read; 5 where nothing was published.

    Example: torchgauge triage --store here --store there --since 7d
    """
    from torchgauge.errors import UsageError
    from torchgauge.results.triage.findings import triage
    from torchgauge.results.triage.reading import Wanted
    from torchgauge.results.triage.text import as_plain, csv_of, markdown_of, terminal_of

    if as_json + as_csv + as_markdown > 1:
        raise UsageError("more than one form is asked for", hint="one of --json, --csv and --markdown")
    wanted = Wanted(device, suites, _statuses(statuses))
    found = triage(stores, wanted, _since(since, stores), unexpected=unexpected)
    if as_json:
        click.echo(json.dumps(as_plain(found), indent=1, allow_nan=False))
    elif as_csv:
        click.echo(csv_of(found), nl=False)
    elif as_markdown:
        click.echo(markdown_of(found, top), nl=False)
    else:
        click.echo(terminal_of(found, top), nl=False)
    if as_json or as_csv:
        for line in (*(f"note: {each}" for each in found.notes), *(f"gap: {each}" for each in found.gaps)):
            click.echo(line, err=True)
    sys.exit(3 if found.gaps else 0)


def _statuses(words: tuple[str, ...]):  # type: ignore[no-untyped-def]
    from torchgauge.errors import UnknownNameError
    from torchgauge.records import INCOMPLETE, Status
    from torchgauge.results.triage.findings import FAILING

    known = {status.value: status for status in Status if status not in INCOMPLETE}
    del known[Status.PASS.value]
    for word in words:
        if word not in known:
            raise UnknownNameError("status of a failure", word, known)
    return tuple(dict.fromkeys(known[word] for word in words)) or FAILING


def _since(text: str | None, stores: tuple[str, ...]) -> str | float | None:
    """A run as it is, a date or a number of days back as seconds since the epoch."""
    from torchgauge.results.store import Store

    if not text or any(Store.open(path).is_published(text) for path in stores if _plain_name(text)):
        return text or None
    moment = moment_of(text)
    return text if moment is None else moment


def _plain_name(text: str) -> bool:
    return "/" not in text and not text.startswith(".")
