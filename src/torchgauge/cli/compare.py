"""``torchgauge compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from torchgauge.cli.answer import JSON, asides, say_json
from torchgauge.cli.options import store_option

if TYPE_CHECKING:
    from torchgauge.results.comparing.two_runs import TwoRuns

STORE = store_option("the store to read")
POLICY = click.option("--policy", metavar="FILE", help="YAML with tolerances and actions (default: built in)")


def sides(command: Any) -> Any:
    """Devices and configurations of the two sides, and the step time to compare."""
    options = [
        click.option("--device-a", default="", metavar="D", help="device of the first side"),
        click.option("--device-b", default="", metavar="D", help="device of the second side"),
        click.option("--config-a", default="", metavar="C", help="configuration of the first side"),
        click.option("--config-b", default="", metavar="C", help="configuration of the second side"),
        click.option(
            "--metric", default="latency", show_default=True, help="latency, latency_device or latency_cpu"
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command("compare")
@click.argument("run_a")
@click.argument("run_b", required=False)
@STORE
@sides
@POLICY
@JSON
def command(
    run_a: str, run_b: str | None, store: str, policy: str | None, as_json: bool, **words: str
) -> None:
    """Compare RUN_A with RUN_B, or two devices or configurations of one run.

    Prints the speed-up of B over A: above 1 is faster. A run is an id or its beginning, `latest` or
    `latest~1`.

    For a reliable verdict, use `torchgauge ab`.

    Example: torchgauge compare latest~1 latest
    """
    found = compared(store, run_a, run_b, policy, words)
    if as_json:
        say_json(as_plain(found))
        return
    from torchgauge.results.comparing.verdict_text import comparison_text

    click.echo(comparison_text(found), nl=False)


def compared(store: str, run_a: str, run_b: str | None, policy: str | None, words: dict[str, str]) -> TwoRuns:
    """The comparison that the arguments ask for."""
    from torchgauge.results.comparing.run_pairs import RunSide
    from torchgauge.results.comparing.two_runs import compare_named
    from torchgauge.results.dataset import gaps_of
    from torchgauge.results.store import Store

    opened = Store.open(store)
    base = RunSide(run_a, words["device_a"], words["config_a"])
    head = RunSide(run_b or run_a, words["device_b"], words["config_b"])
    found = compare_named(opened, base, head, policy, metric=words["metric"])
    asides((), gaps_of(opened))
    return found


def as_plain(found: TwoRuns) -> dict[str, Any]:
    """The comparison as JSON values."""
    from dataclasses import asdict

    from torchgauge.records import to_plain

    return {
        "base": asdict(found.base),
        "head": asdict(found.head),
        "differs": found.differs.value,
        "facts": {key: list(values) for key, values in found.facts.items()},
        "dropped": list(found.dropped),
        "verdicts": [to_plain(verdict) for verdict in found.verdicts],
    }
