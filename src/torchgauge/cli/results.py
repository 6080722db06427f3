"""``torchgauge results``: what is in a store."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from torchgauge.cli.answer import JSON, aside, say, say_json
from torchgauge.cli.lazy_group import LazyGroup
from torchgauge.cli.options import MIXED_VERSIONS, store_option
from torchgauge.counted import counted

STORE = store_option("the store")
VERBS = {
    "Read": {
        "list": ("torchgauge.cli.results:list_runs", "list runs, comparisons and bisections"),
        "show": ("torchgauge.cli.results:show", "print the rows of a run, or all facts of one case"),
        "query": ("torchgauge.cli.stored_rows:query_rows", "print rows that match conditions"),
        "compat": ("torchgauge.cli.compat", "compare what devices support"),
        "scorecard": ("torchgauge.cli.scorecard", "score devices by PyTorch's proposed quality levels"),
        "triage": ("torchgauge.cli.triage", "group failures by root cause, with a command for each"),
        "trend": ("torchgauge.cli.trend", "find changes in nightly history and confirm them"),
        "claim": ("torchgauge.cli.claim", "check a published claim against stored results"),
        "noise": ("torchgauge.cli.noise", "noise of unchanged code, and tolerances for a policy"),
    },
    "Import and export": {
        "import": ("torchgauge.cli.import_", "import CSVs of dynamo's runner, or JSON of HUD or TorchBench"),
        "merge": ("torchgauge.cli.results:merge", "merge parts that workers measured into one run"),
        "export": ("torchgauge.cli.stored_rows:export_rows", "write rows as CSV, Parquet or HUD's formats"),
        "push": ("torchgauge.cli.results:push_runs", "copy finished runs to an object store"),
        "pull": ("torchgauge.cli.results:pull_runs", "copy a store from an object store"),
    },
    "Maintain": {
        "publish": ("torchgauge.cli.results:publish", "rebuild the tables of a run from its journal"),
        "compact": ("torchgauge.cli.results:compact_months", "merge the tables of each past month"),
        "remove": ("torchgauge.cli.remove", "remove a run from a store, with a reason"),
        "fsck": ("torchgauge.cli.results:check", "read every file, and report damaged ones"),
    },
}


@click.group("results", cls=LazyGroup, sections=VERBS)
def command() -> None:
    """Read, import, export and maintain stored results."""


@click.command("list")
@click.option(
    "--kind", type=click.Choice(("run", "comparison", "bisection")), help="only this kind (default: all)"
)
@STORE
@JSON
def list_runs(kind: str | None, store: str, as_json: bool) -> None:
    """List runs, comparisons and bisections, with running, interrupted and damaged ones.

    Example: torchgauge results list
    """
    from torchgauge.harness.store_list import store_entries
    from torchgauge.results.lookup import MAKERS
    from torchgauge.results.store import Store

    opened = Store.open(store)
    entries = [each for each in store_entries(opened) if kind in (None, each.kind)]
    aside(opened.unfinished)
    if as_json:
        say_json([each.plain for each in entries])
        return
    say(each.line for each in entries)
    if not entries:
        click.echo(f"no {kind or 'run'}s yet; try: {MAKERS[kind or 'run']}", err=True)


@click.command("publish")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@STORE
def publish(runs: tuple[str, ...], store: str) -> None:
    """Rebuild the tables of each RUN from its journal.

    Example: torchgauge results publish RUN_ID
    """
    from torchgauge.results.comparing.comparison_store import comparison_ids, publish_comparison_again
    from torchgauge.results.lookup import resolve_either
    from torchgauge.results.publication import publish_again
    from torchgauge.results.store import Store

    opened = Store.open(store, writes=True)
    comparisons = comparison_ids(opened)
    for run in dict.fromkeys(resolve_either(opened, name) for name in runs):
        (publish_comparison_again if run in comparisons else publish_again)(opened, run)
        click.echo(f"{run}: tables rebuilt")


@click.command("fsck")
@STORE
@JSON
def check(store: str, as_json: bool) -> None:
    """Read every byte of a store and list damaged and missing files.

    Exit codes: 0 intact, 3 damaged.

    Example: torchgauge results fsck
    """
    from torchgauge.records import to_plain
    from torchgauge.results.fsck import check_store
    from torchgauge.results.remote.pull import every_byte

    with every_byte(store) as opened:
        found = check_store(opened)
    if as_json:
        say_json({**to_plain(found), "exit_code": found.exit_code})
    else:
        say(
            f"{each.fault.value:<7}  {each.path}: {each.problem}; try: {each.remedy}"
            for each in found.findings
        )
        unsealed = len(found.runs) - len(found.sealed) - len(found.busy)
        sealed, busy = len(found.sealed), len(found.busy)
        counts = f"{sealed} sealed with checksums, {unsealed} not sealed, {busy} skipped (in use)"
        aside([f"{counted(len(found.runs), 'run')}: {counts}; {counted(len(found.findings), 'finding')}"])
    sys.exit(found.exit_code)


@click.command("compact")
@click.option("--month", metavar="YYYY-MM", help="only this month (default: all past months)")
@click.option("--dry-run", is_flag=True, help="print the changes; write nothing")
@STORE
@JSON
def compact_months(month: str | None, dry_run: bool, store: str, as_json: bool) -> None:
    """Merge the tables of each past month into a few files; journals stay.

    Exit codes: 0 done, 3 a month was refused.

    Example: torchgauge results compact --dry-run
    """
    from torchgauge.records import to_plain
    from torchgauge.results.compacted.compaction import compact
    from torchgauge.results.store import Store

    reports = compact(Store.open(store, writes=True), month, dry_run=dry_run)
    if as_json:
        say_json([to_plain(report) for report in reports])
    for report in () if as_json else reports:
        size = f", {report.bytes_before:,} bytes" if report.bytes_before else ""
        size += f" became {report.bytes_after:,}" if report.bytes_after else ""
        click.echo(f"{report.month}: {report.done}; {counted(len(report.runs), 'run')}{size}")
        say(f"  {run} is not merged: {why}" for run, why in sorted(report.left.items()))
    if not reports:
        click.echo("nothing to merge: no past month has a published run", err=True)
    sys.exit(3 if any(report.done == "refused" for report in reports) else 0)


@click.command("push")
@click.argument("url")
@STORE
@JSON
def push_runs(url: str, store: str, as_json: bool) -> None:
    """Copy finished runs of a store to URL in an object store.

    A repeated push copies missing runs. Exit 3 if a run was not copied.

    Example: torchgauge results push s3://BUCKET/PREFIX --store ./torchgauge-results
    """
    from torchgauge.records import to_plain
    from torchgauge.results.remote.push import push
    from torchgauge.results.store import Store

    report = push(Store.open(store, writes=True), url)
    if as_json:
        say_json(to_plain(report))
    else:
        click.echo(f"{counted(len(report.copied), 'run')} and {counted(len(report.months), 'month')} copied, "
                   f"{len(report.already)} already at the URL")  # fmt: skip
    aside(f"{run} was not copied: {why}" for run, why in sorted(report.left.items()))
    sys.exit(3 if report.left else 0)


@click.command("pull")
@click.argument("url")
@click.argument("folder", metavar="DIR")
def pull_runs(url: str, folder: str) -> None:
    """Copy the store at URL into the new folder DIR, or update an earlier copy.

    Example: torchgauge results pull s3://BUCKET/PREFIX ./copy
    """
    from torchgauge.results.remote.pull import pull_into

    copy = pull_into(url, Path(folder))
    aside(copy.sentences(url))
    click.echo(f"{folder} matches {url}")


@click.command("merge")
@click.argument("parts", metavar="DIR...", nargs=-1, required=True)
@STORE
@MIXED_VERSIONS
@JSON
def merge(parts: tuple[str, ...], store: str, mixed_versions: bool, as_json: bool) -> None:
    """Merge the folders that `torchgauge worker` wrote into one run.

    Example: torchgauge results merge parts/first parts/second
    """
    from torchgauge.harness.parts.part_merge import merge_parts
    from torchgauge.harness.run.run_report import report_plain
    from torchgauge.harness.run.summary import summary_lines
    from torchgauge.records import Status
    from torchgauge.results.store import Store

    into = Store.open(store, create=True)
    report = merge_parts(into, [Path(each) for each in parts], mixed=mixed_versions)
    if left := report.counts[Status.NOT_RUN]:
        folder = into.path / "runs" / report.run_id
        click.echo(
            f"{counted(left, 'case')} without a row; try: merge more parts, or run "
            f"torchgauge run --resume {folder}",
            err=True,
        )
    aside(summary_lines(report, into.path))
    if as_json:
        say_json(report_plain(report))
    sys.exit(report.exit_code)


@click.command("show")
@click.argument("name")
@STORE
@JSON
def show(name: str, store: str, as_json: bool) -> None:
    """Print the rows of a run, or all facts of one case.

    Example: torchgauge results show RUN_ID
    """
    from torchgauge.harness.run.summary import brief_text, result_lines
    from torchgauge.records import to_plain
    from torchgauge.results.lookup import find_results

    found, whole_run = find_results(store, name)
    if as_json:
        say_json([to_plain(result) for result in found])
        return
    if whole_run:
        click.echo(brief_text(found), nl=False)
        return
    for result in found:
        say(result_lines(result))
