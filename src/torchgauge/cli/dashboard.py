"""``torchgauge dashboard``."""

from __future__ import annotations

import click

from torchgauge.cli.answer import JSON, asides, say_json
from torchgauge.cli.lazy_group import LazyGroup
from torchgauge.cli.option_values import named
from torchgauge.counted import counted

VERBS = {
    "build": ("torchgauge.cli.dashboard:build", "build the site from stores"),
    "serve": ("torchgauge.cli.dashboard:serve", "serve a built site on this machine"),
    "publish": ("torchgauge.cli.publish", "build the site, and fail if the history shrank"),
}


@click.group("dashboard", cls=LazyGroup, sections={"Commands": VERBS})
def command() -> None:
    """Build the static site from a store, serve it on this machine, or publish it."""


@click.command("build")
@click.argument("stores", nargs=-1, metavar="[STORE]...", callback=named)
@click.option("--out", default="site", show_default=True, help="the folder of the site")
@click.option("--now", help="time from which ages of results count, ISO 8601 (default: now)")
@click.option(
    "--base-url",
    default="",
    metavar="URL",
    help="address of the site, for feeds, badges and previews",
)
@JSON
def build(stores: tuple[str, ...], out: str, now: str | None, base_url: str, as_json: bool) -> None:
    """Build one site from all STOREs (default: ./torchgauge-results).

    The old site stays until the new one is complete.

    Example: torchgauge dashboard build ./torchgauge-results --out site
    """
    from torchgauge.dashboard.pictures import card_image
    from torchgauge.dashboard.site import build_site
    from torchgauge.results.joined_store import one_store

    moment = _seconds(now) if now else None
    if note := card_image.note():
        click.echo(note, err=True)
    with one_store(stores or ("./torchgauge-results",), out) as (store, notes):
        report = build_site(store, out, now=moment, base_url=base_url)
    asides(notes, report.gaps)
    if as_json:
        say_json({**vars(report), "out": str(report.out)})
        return
    counts = ", ".join(
        f"{passed}/{planned} cases of {subject}" for subject, passed, planned in report.subjects
    )
    click.echo(
        f"{out}/index.html: {f'{counts} pass' if counts else 'no case'}, {counted(report.pages, 'page')}"
    )


def _seconds(text: str) -> float:
    from datetime import datetime, timezone

    from torchgauge.errors import UsageError

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--now {text} is not an ISO 8601 date", hint="--now 2026-01-31T06:00:00") from None
    return moment.replace(tzinfo=moment.tzinfo or timezone.utc).timestamp()


@click.command("serve")
@click.argument("site", default="site")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="port; 0: any free port"
)
def serve(site: str, port: int) -> None:
    """Serve a built SITE on 127.0.0.1 until Ctrl-C.

    Example: torchgauge dashboard serve site
    """
    from torchgauge.dashboard.serve import serve_site

    serve_site(site, port, lambda url: click.echo(f"{url}  (Ctrl-C ends it)"))
