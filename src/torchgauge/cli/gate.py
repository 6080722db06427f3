"""``torchgauge gate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from torchgauge.cli.answer import JSON, say_json
from torchgauge.cli.compare import POLICY, STORE, sides
from torchgauge.counted import counted

if TYPE_CHECKING:
    from torchgauge.results.comparing.gate import GateResult
    from torchgauge.results.comparing.policy import Policy


@click.command("gate")
@click.argument("names", nargs=-1, required=True, metavar="COMPARISON | RUN_A RUN_B")
@STORE
@sides
@POLICY
@JSON
@click.pass_context
def command(
    context: click.Context,
    /,
    names: tuple[str, ...],
    store: str,
    policy: str | None,
    as_json: bool,
    **words: str,
) -> None:
    """Turn verdicts into an exit code: 0 decided and not worse, 1 worse, 3 unknown.

    COMPARISON is a run of `torchgauge ab`, or `latest`. RUN_A and RUN_B are as for `torchgauge
    compare`.

    Example: torchgauge gate latest --policy policy.yaml
    """
    from torchgauge.clock import SYSTEM_CLOCK, utc
    from torchgauge.errors import UsageError
    from torchgauge.records import to_plain
    from torchgauge.results.comparing.gate import gate
    from torchgauge.results.comparing.policy import policy_of
    from torchgauge.results.comparing.policy_notes import unused_notes
    from torchgauge.results.comparing.verdict_text import gate_text

    if len(names) > 2:
        raise UsageError(
            f"{counted(len(names), 'name is', 'names are')} given", hint="one COMPARISON, or RUN_A RUN_B"
        )
    rules = None if policy is None else policy_of(policy, utc(SYSTEM_CLOCK.now()).date())
    chosen = any(words[name] for name in ("device_a", "device_b", "config_a", "config_b"))
    if len(names) == 2 or chosen:
        from torchgauge.cli.compare import compared

        found = compared(store, names[0], names[-1] if len(names) == 2 else None, policy, words)
        result, title = gate(found.verdicts), f"{found.base.label} -> {found.head.label}"
        cases = [each.head_case for each in found.verdicts if each.pair_key]
    else:
        result, title, cases = _of_comparison(store, names[0], rules)
    for note in unused_notes(rules, cases) if rules is not None else ():
        click.echo(f"note: {note}", err=True)
    if as_json:
        listed = ("blocking", "unmeasured", "reported", "undecided", "verdicts")
        rows = {name: [to_plain(each) for each in getattr(result, name)] for name in listed}
        document = {"exit_code": result.exit_code, "reasons": list(result.reasons), "compared": title, **rows}
        say_json(document)
    else:
        click.echo(gate_text(result, title), nl=False)
    context.exit(result.exit_code)


def _of_comparison(store: str, name: str, rules: Policy | None) -> tuple[GateResult, str, list[str]]:
    """The gate over an A/B run, its title and its cases."""
    from torchgauge.errors import UsageError
    from torchgauge.results.comparing.comparison_store import comparison
    from torchgauge.results.comparing.gate import gate
    from torchgauge.results.journal import RunState
    from torchgauge.results.lookup import resolve_comparison
    from torchgauge.results.store import Store

    opened = Store.open(store)
    folder = comparison(opened, resolve_comparison(opened, name))
    plan, found = folder.plan(), folder.findings()
    if plan.pairs and all(pair.control for pair in plan.pairs):
        raise UsageError(
            f"A/B run {folder.run_id} compared head with itself (A/A), so no verdict can be gated",
            hint="pass another comparison; torchgauge results noise shows A/A runs",
        )
    verdicts, state = found.verdicts, found.state
    judged = {verdict.pair_key for verdict in verdicts}
    missing = [pair.id for pair in plan.pairs if not pair.control and pair.key not in judged]
    incomplete = "" if state is RunState.COMPLETE else f"the A/B run is {state.value}"
    if missing and verdicts:
        incomplete = "; ".join(filter(None, (incomplete, f"no verdict on {', '.join(missing[:5])}")))
    cases = [pair.head.id for pair in plan.pairs]
    return gate(verdicts, rules, incomplete), f"A/B run {folder.run_id}", cases
