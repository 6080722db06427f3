"""``torchgauge dashboard``."""

from __future__ import annotations

from pathlib import Path

import click

from torchgauge.cli.answer import JSON, asides, say_json
from torchgauge.cli.lazy_group import LazyGroup
from torchgauge.cli.option_values import FiniteRange, named
from torchgauge.counted import counted

VERBS = {
    "build": ("torchgauge.cli.dashboard:build", "build the site of stores"),
    "serve": ("torchgauge.cli.dashboard:serve", "serve a built site on this machine"),
    "publish": ("torchgauge.cli.dashboard:publish_site", "keep a store's history and the site"),
}


@click.group("dashboard", cls=LazyGroup, sections={"Commands": VERBS})
def command() -> None:
    """Build the static site from a store, serve it on this machine, or publish it."""


@click.command("build")
@click.argument("stores", nargs=-1, metavar="[STORE]...", callback=named)
@click.option("--out", default="site", show_default=True, help="the folder of the site")
@click.option("--now", help="what ages are counted from, ISO 8601 in UTC; this moment, unless given")
@click.option(
    "--plotly",
    type=click.Choice(["auto", "basic", "full", "none"]),
    default="auto",
    show_default=True,
    help="what draws charts: the small bundle of the npm registry, the full one in Python's plotly, or none",
)
@click.option(
    "--base-url",
    default="",
    metavar="URL",
    help="where the site will be served, for feeds, badges, link previews and the sitemap",
)
@JSON
def build(
    stores: tuple[str, ...], out: str, now: str | None, plotly: str, base_url: str, as_json: bool
) -> None:
    """Build the site of each STORE together (default: ./torchgauge-results).

    A site that is there stays until the new one is whole. A run that is in several stores counts once.

    Example: torchgauge dashboard build ./torchgauge-results --out site
    """
    from torchgauge.dashboard.pictures import card_image
    from torchgauge.dashboard.plotly_bundle import Wanted, bring
    from torchgauge.dashboard.site import build_site
    from torchgauge.results.joined_store import one_store

    moment = _seconds(now) if now else None
    charts = bring(Wanted(plotly))
    for note in (charts.note, card_image.note()):
        if note:
            click.echo(note, err=True)
    with one_store(stores or ("./torchgauge-results",), out) as (store, notes):
        report = build_site(store, out, now=moment, charts=charts, base_url=base_url)
    asides(notes, report.gaps)
    if as_json:
        say_json({**vars(report), "out": str(report.out)})
        return
    counts = ", ".join(f"{passed}/{planned} {subject}" for subject, passed, planned in report.subjects)
    click.echo(
        f"{out}/index.html: {f'{counts} pass' if counts else 'no case'}, {counted(report.pages, 'page')}"
    )


def _seconds(text: str) -> float:
    from datetime import datetime, timezone

    from torchgauge.errors import UsageError

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--now {text}: not a date and a time", hint="--now 2026-01-31T06:00:00") from None
    return moment.replace(tzinfo=moment.tzinfo or timezone.utc).timestamp()


@click.command("serve")
@click.argument("site", default="site")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one"
)
def serve(site: str, port: int) -> None:
    """Serve a built SITE on 127.0.0.1 until Ctrl-C.

    Example: torchgauge dashboard serve site
    """
    from torchgauge.dashboard.serve import serve_site

    serve_site(site, port, lambda url: click.echo(f"{url}  (Ctrl-C ends it)"))


@click.command("publish")
@click.option("--store", required=True, callback=named, help="the store with the whole history")
@click.option(
    "--site", required=True, help="folder of the static site, which stays until the new one is whole"
)
@click.option(
    "--history-guard",
    metavar="FILE",
    help="what was published last, to be checked and written anew (default: history.json in the store)",
)
@click.option("--expect-history", is_flag=True, help="refuse where that file is missing")
@click.option("--keep-samples", type=FiniteRange(0), metavar="DAYS", help="then delete raw samples of tables")
@click.option("--keep-superseded", type=FiniteRange(0), metavar="DAYS", help="then delete earlier attempts")
@click.option("--keep-rejected", type=FiniteRange(0), metavar="DAYS", help="then delete records of refusals")
def publish_site(
    store: str,
    site: str,
    history_guard: str | None,
    expect_history: bool,
    keep_samples: float | None,
    keep_superseded: float | None,
    keep_rejected: float | None,
) -> None:
    """Build the site of a store whose history did not shrink, and remember what was published.

    Example: torchgauge dashboard publish --store results --site site --expect-history
    """
    from torchgauge.dashboard.site import build_site
    from torchgauge.results.store import Store
    from torchgauge.workflows.publish import Retention, forget, publish

    opened = Store.open(store)
    guard = Path(history_guard) if history_guard else opened.path / "history.json"

    def build() -> None:
        report = build_site(store, site, around_damaged=False)  # what was published is not taken back
        click.echo(
            f"{site}/index.html: {report.passed}/{report.planned} pass, {counted(report.pages, 'page')}",
            err=True,
        )

    state = publish(opened, guard, build, expect_history=expect_history)
    gone = forget(opened, Retention(keep_samples, keep_superseded, keep_rejected))
    said = {"runs": len(state.runs), "rows": state.rows, "site": site, "forgotten": gone}
    say_json(said)
