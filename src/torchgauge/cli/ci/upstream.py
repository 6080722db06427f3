"""``torchgauge ci report upstream``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from torchgauge.cli.answer import say, say_json
from torchgauge.cli.options import store_option
from torchgauge.errors import UsageError

if TYPE_CHECKING:
    from torchgauge.workflows.relay import Told


@click.command("upstream")
@store_option("store with the results")
@click.option(
    "--run",
    "runs",
    multiple=True,
    help="run to report (default: the latest); repeatable",
)
@click.option("--relay", is_flag=True, help="report to PyTorch's cross-repository CI relay")
@click.option(
    "--status", type=click.Choice(["in_progress", "completed"]), default="completed", show_default=True,
    help="state of the job",
)  # fmt: skip
@click.option(
    "--conclusion",
    type=click.Choice(["success", "failure", "cancelled"]),
    help="result of the job (default: from the runs)",
)
@click.option(
    "--callback-url", envvar="CRCR_CALLBACK_URL", default="", help="URL of the relay (CRCR_CALLBACK_URL)"
)
@click.option(
    "--event", envvar="GITHUB_EVENT_PATH", help="repository_dispatch event file (default: GITHUB_EVENT_PATH)"
)
@click.option("--upstream-sha", default="", help="PyTorch commit, if no event was dispatched")
@click.option("--event-type", type=click.Choice(["nightly", "periodic"]), help="used with --upstream-sha")
@click.option("--job-name", default="", help="name of the job (default: GITHUB_JOB)")
@click.option("--check-run-id", default="", help="id of the job's check run")
@click.option("--artifact-url", default="", help="URL of logs and results")
@click.option("--hud-v3", "hud", metavar="DIR", help="write HUD's benchmark results v3 to this folder")
@click.option("--benchmark", default="torchgauge", show_default=True, help="benchmark.name of --hud-v3")
@click.option("--dry-run", is_flag=True, help="print the callback; send nothing")
def command(**options: Any) -> None:
    """Report runs to PyTorch: to its CI relay, or as files for its HUD.

    Exit codes: 0 reported, or the relay is down; 1 the relay refuses the report.

    Example: torchgauge ci report upstream --relay --status completed --job-name "bench-POOL" --hud-v3 upload
    """
    if not options["relay"] and not options["hud"]:
        raise UsageError("no report was requested", hint="--relay, --hud-v3 DIR, or both")
    if options["hud"]:
        from pathlib import Path

        from torchgauge.results.interchange.formats import export_run
        from torchgauge.results.interchange.hud_v3 import FORM

        store, names = _runs(options)
        folder = Path(options["hud"])
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            say(export_run(store, name, FORM, folder / f"{name}.json", options["benchmark"]).files)
    if options["relay"]:
        _relay(options)


def _runs(options: dict[str, Any]) -> tuple[Any, list[str]]:
    from torchgauge.errors import NothingSelectedError
    from torchgauge.results.lookup import resolve_run
    from torchgauge.results.run_id import of_one_campaign
    from torchgauge.results.store import Store

    store = Store.open(options["store"])
    given = [resolve_run(store, name) for name in options["runs"]]
    names = given or of_one_campaign([info.run_id for info in store.runs()])
    if not names:
        raise NothingSelectedError("the store contains no run", hint="torchgauge run SUITE --device DEVICE")
    return store, names


def _relay(options: dict[str, Any]) -> None:
    from torchgauge.workflows import relay
    from torchgauge.workflows.github_files import add_summary
    from torchgauge.workflows.workflow_event import read_event

    if bool(options["upstream_sha"]) != bool(options["event_type"]):
        raise UsageError("--upstream-sha and --event-type go together", hint="pass both, or neither")
    if options["upstream_sha"]:
        payload = relay.self_reported(options["event_type"], options["upstream_sha"])
    elif options["event"]:
        payload = relay.dispatched(read_event(options["event"]))
    elif options["dry_run"]:
        payload = dict(relay.EXAMPLE_PAYLOAD)
        click.echo("note: no event file was given, so the payload is an example", err=True)
    else:
        raise UsageError("no event file was given", hint="--event FILE, or --upstream-sha with --event-type")
    job = relay.RelayJob.from_environment(
        options["job_name"], options["check_run_id"], tried=options["dry_run"]
    )
    body = relay.callback(payload, job, _told(options))
    if options["dry_run"]:
        say_json(body)
        return
    if not options["callback_url"]:
        raise UsageError("no relay URL was given", hint="--callback-url URL, or set CRCR_CALLBACK_URL")
    trouble = relay.send(options["callback_url"], relay.oidc_token(), body)
    if trouble:
        click.echo(f"warning: {trouble}", err=True)
        add_summary(f"The relay was not notified: {trouble[:200].replace('`', '')}")
    else:
        click.echo(f"reported to the relay: {options['status']}")


def _told(options: dict[str, Any]) -> Told:
    from torchgauge.results.reports.run_report import run_report
    from torchgauge.workflows.relay import Told, all_told, told_of

    if options["status"] == "in_progress":
        return Told("in_progress")
    store, names = _runs(options)
    told = all_told([told_of(run_report(store, store.run(name))) for name in names])
    return Told("completed", options["conclusion"] or told.conclusion, told.counts, options["artifact_url"])
