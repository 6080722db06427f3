"""``torchgauge results noise``: the ledger, and a policy made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from torchgauge.cli.answer import JSON, asides, say_json
from torchgauge.cli.options import store_option

if TYPE_CHECKING:
    from torchgauge.results.comparing.noise_ledger import Ledger

STORE = store_option("the store to read")
CLASS = click.option("--runner-class", help="only this class of runner (default: all)")


@click.group("noise", invoke_without_command=True)
@STORE
@CLASS
@JSON
@click.pass_context
def command(context: click.Context, store: str, runner_class: str | None, as_json: bool) -> None:
    """Show the noise of each case and class of machine.

    Example: torchgauge results noise
    """
    if context.invoked_subcommand is not None:
        return
    ledger, now = _ledger(store, runner_class)
    if as_json:
        from dataclasses import asdict

        say_json(asdict(ledger))
        return
    from torchgauge.results.comparing.noise_text import ledger_text

    click.echo(ledger_text(ledger, now), nl=False)


@command.command("suggest")
@STORE
@CLASS
@click.option(
    "--launches", type=click.IntRange(1), default=4, show_default=True, help="launches per comparison"
)
@click.option("--output", metavar="FILE", help="write the policy to FILE instead of standard output")
@JSON
def suggest_policy(
    store: str, runner_class: str | None, launches: int, output: str | None, as_json: bool
) -> None:
    """Print a policy with tolerances from the noise of each case.

    Requires ten launches (process starts) of `ab --control` for a case.

    Example: torchgauge results noise suggest --output policy.yaml
    """
    from pathlib import Path

    from torchgauge.errors import UsageError
    from torchgauge.results.comparing.noise_suggest import suggest, suggestions

    ledger, now = _ledger(store, runner_class)
    if as_json:
        say_json(suggestions(ledger, launches))
        return
    text = suggest(ledger, now, launches)
    if output is None:
        click.echo(text, nl=False)
        return
    path = Path(output)
    if path.exists():
        raise UsageError(f"{path} exists", hint="pass a new file; existing files are not overwritten")
    path.write_text(text, encoding="utf-8")
    click.echo(f"wrote {path}", err=True)


def _ledger(store: str, runner_class: str | None) -> tuple[Ledger, float]:
    """The ledger as of now; raises for a class of runner that has no line."""
    from torchgauge.clock import SYSTEM_CLOCK
    from torchgauge.errors import UnknownNameError
    from torchgauge.results.comparing.noise_ledger import read_ledger
    from torchgauge.results.dataset import gaps_of
    from torchgauge.results.store import Store

    now = SYSTEM_CLOCK.now()
    opened = Store.open(store)
    ledger = read_ledger(opened, now, runner_class)
    asides((), gaps_of(opened))
    if runner_class is not None and not ledger.cases:
        known = {case.runner_class for case in read_ledger(opened, now).cases}
        raise UnknownNameError("class of runner", runner_class, known)
    return ledger, now
