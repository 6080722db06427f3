"""``torchgauge dashboard``."""

from __future__ import annotations

import json

import click


@click.group("dashboard")
def command() -> None:
    """Build the static site from a store, or serve it on this machine."""


@command.command("build")
@click.argument("store", default="./torchgauge-results")
@click.option("--out", default="site", show_default=True, help="the folder of the site")
@click.option("--json", "as_json", is_flag=True, help="machine output on stdout")
def build(store: str, out: str, as_json: bool) -> None:
    """Build the site of STORE; a site that is there stays until the new one is whole.

    Example: torchgauge dashboard build ./torchgauge-results --out site
    """
    from torchgauge.dashboard.site import build_site

    report = build_site(store, out)
    if as_json:
        click.echo(json.dumps({**vars(report), "out": str(report.out)}, indent=1))
    else:
        click.echo(f"{out}/index.html: {report.passed}/{report.planned} pass, {report.pages} pages")


@command.command("serve")
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
