"""``torchgauge results claim``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchgauge.cli.answer import forms, say, say_json
from torchgauge.cli.option_values import CommaList, since
from torchgauge.cli.options import STORES
from torchgauge.errors import UsageError

if TYPE_CHECKING:
    from torchgauge.results.claims.claim import Claim, Side

SELECTS = (
    "suites", "devices", "configurations", "models", "tier", "mode", "size", "torch", "system", "machine",
)  # fmt: skip
SIDE = "torch, system, machine, environment, device or configuration"


@click.command("claim")
@click.argument("words", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="list the claims and their published statements")
@click.option("--file", "files", multiple=True, metavar="FILE", help="YAML with claims of your own")
@STORES
@click.option("--suite", "suites", type=CommaList(), help="suites to check; `all`: every suite of models")
@click.option("--device", "devices", type=CommaList(), help="devices to check, each by itself")
@click.option("--config", "configurations", type=CommaList(), help="configurations to check, each by itself")
@click.option("--models", type=CommaList(), help="model names, globs or /regex/, instead of the claim's tier")
@click.option("--tier", type=click.Choice(["smoke", "standard", "full"]), help="tier of models")
@click.option("--mode", help="inference or training")
@click.option("--dtype", help="dtype, such as float32")
@click.option("--size", type=click.Choice(["small", "full"]), help="model size")
@click.option("--torch", "torch", help="glob over versions of torch (default: the newest)")
@click.option("--system", help="glob over operating systems, such as Linux")
@click.option("--machine", help="glob over machines")
@click.option("--base", metavar="KEY=GLOB,...", help=f"rows that form the base; KEY: {SIDE}")
@click.option("--head", metavar="KEY=GLOB,...", help="rows that form the head; same KEYs as --base")
@click.option("--since", callback=since, help="exclude older runs: 2026-08-01, or 90d")
@click.option("--minimum", type=click.IntRange(1), help="minimum number of models for a verdict")
@click.option("--all", "every", is_flag=True, help="list every model")
@forms(markdown="Markdown on stdout")
def command(words: tuple[str, ...], **options: Any) -> None:
    """Check a published claim against stored results; WORDS are its name or words of its text.

    Measures nothing.

    Exit codes: 0 supported, 1 refuted, 2 usage, 3 undecided or not measured.

    Example: torchgauge results claim "inductor faster than eager" --suite all --device D
    """
    from torchgauge.results.claims.claim_file import bundled_claims, load_claims

    own = tuple(claim for name in options["files"] for claim in load_claims(Path(name)))
    asked = " ".join(words)
    if not own and asked.endswith((".yaml", ".yml")):
        own, asked = load_claims(Path(asked)), ""
    known = (*own, *(claim for claim in bundled_claims() if claim.name not in {each.name for each in own}))
    if options["listing"]:
        if asked:
            raise UsageError(
                "--list prints every claim and accepts no name", hint=f"leave out --list or {asked!r}"
            )
        import msgspec

        from torchgauge.results.claims.claim_text import listing_lines

        if options["form"] == "json":
            say_json(msgspec.to_builtins(known))
        else:
            say(listing_lines(known))
        return
    sys.exit(_answer([_asked(claim, options) for claim in _chosen(asked, own, known)], options))


def _chosen(asked: str, own: tuple[Claim, ...], known: tuple[Claim, ...]) -> tuple[Claim, ...]:
    """The claim that the words mean; all of a person's own files where there are no words."""
    from torchgauge.results.claims.catalogue import find_claim

    if asked:
        of_file = tuple(claim for claim in known if Path(claim.file).stem == asked)
        named = any(claim.name == asked for claim in known)
        return of_file if of_file and not named else (find_claim(asked, known),)
    if own:
        return own
    raise UsageError("no claim was given", hint="torchgauge results claim --list")


def _answer(claims: list[Claim], options: dict[str, Any]) -> int:
    """Print the answers; the exit code is the worst of them: refuted, then open, then supported."""
    from torchgauge.harness.planning.claim_models import list_models
    from torchgauge.results.claims.answering import answer_claim
    from torchgauge.results.claims.claim_text import json_of, markdown_of, terminal_of

    found = [answer_claim(claim, options["stores"], list_models) for claim in claims]
    render = markdown_of if options["form"] == "markdown" else terminal_of
    text = (
        json_of(found)
        if options["form"] == "json"
        else "\n".join(render(each, every=options["every"]) for each in found)
    )
    click.echo(text, nl=False)
    codes = {each.exit_code for each in found}
    return 1 if 1 in codes else max(codes)


def _asked(claim: Claim, options: dict[str, Any]) -> Claim:
    """``claim`` with what the options replace."""
    from dataclasses import replace

    import msgspec

    from torchgauge.harness.planning.selection import DTYPE_ALIASES
    from torchgauge.results.claims.claim import fault_of_sides

    given = {name: options[name] for name in SELECTS if options[name]}
    if options["dtype"]:
        given["dtype"] = DTYPE_ALIASES.get(options["dtype"], options["dtype"])
    if options["since"]:
        given["since"] = options["since"]
    question = claim.question
    if options["minimum"]:
        question = replace(question, minimum=options["minimum"])
    if (options["base"] or options["head"]) and question.sides is None:
        raise UsageError(
            f"{claim.name} does not compare two sides", hint="select rows by --torch, --system or --machine"
        )
    if options["base"]:
        question = replace(question, base=_side("base", options["base"]))
    if options["head"]:
        question = replace(question, head=_side("head", options["head"]))
    if (fault := fault_of_sides(question.sides)) is not None:
        raise UsageError(f"--base and --head: {fault[0]}", hint=fault[1])
    return replace(claim, select=msgspec.structs.replace(claim.select, **given), question=question)


def _side(name: str, text: str) -> Side:
    """``torch=2.12*,system=Linux`` as a side."""
    from torchgauge.errors import UnknownNameError
    from torchgauge.results.claims.claim import Side

    found: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, sign, value = item.partition("=")
        if not sign or not value:
            raise UsageError(f"--{name} {text!r}: {item!r} selects nothing", hint=f"--{name} torch=2.12*")
        if key not in Side.__struct_fields__:
            raise UnknownNameError(f"key of --{name}", key, Side.__struct_fields__)
        found[key] = value
    return Side(**found)
