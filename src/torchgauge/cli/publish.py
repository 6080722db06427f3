"""``torchgauge dashboard publish``."""

from __future__ import annotations

from pathlib import Path

import click

from torchgauge.cli.answer import say_json
from torchgauge.cli.option_values import FiniteRange, named
from torchgauge.counted import counted


@click.command("publish")
@click.option("--store", required=True, callback=named, help="the store with the whole history")
@click.option("--site", required=True, help="folder of the static site")
@click.option(
    "--history-guard",
    metavar="FILE",
    help="record of the last publication (default: history.json in the store)",
)
@click.option("--expect-history", is_flag=True, help="fail if the --history-guard file is missing")
@click.option(
    "--keep-samples", type=FiniteRange(0), metavar="DAYS", help="delete raw samples older than DAYS"
)
@click.option(
    "--keep-superseded", type=FiniteRange(0), metavar="DAYS", help="delete replaced attempts older than DAYS"
)
@click.option(
    "--keep-rejected", type=FiniteRange(0), metavar="DAYS", help="delete rejection records older than DAYS"
)
def command(
    store: str,
    site: str,
    history_guard: str | None,
    expect_history: bool,
    keep_samples: float | None,
    keep_superseded: float | None,
    keep_rejected: float | None,
) -> None:
    """Build the site of a store; fail if the history shrank.

    Runs whose journal cannot be read are listed and excluded.

    Example: torchgauge dashboard publish --store results --site site --expect-history
    """
    from torchgauge.dashboard.site import build_site
    from torchgauge.results.store import Store
    from torchgauge.workflows.github_files import annotate
    from torchgauge.workflows.publish import Retention, forget, publish

    opened = Store.open(store)
    guard = Path(history_guard) if history_guard else opened.path / "history.json"

    def build() -> None:
        report = build_site(store, site, left_out=opened.left_out)
        click.echo(
            f"{site}/index.html: {report.passed}/{report.planned} pass, {counted(report.pages, 'page')}",
            err=True,
        )

    state = publish(opened, guard, build, expect_history=expect_history)
    gone = forget(opened, Retention(keep_samples, keep_superseded, keep_rejected))
    for run, why in sorted(opened.left_out.items()):
        annotate("warning", f"left out: {run}: {why}")
    said = {"runs": len(state.runs), "rows": state.rows, "site": site, "forgotten": gone}
    say_json({**said, "left_out": opened.left_out})
