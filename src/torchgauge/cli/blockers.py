"""``torchgauge ops blockers``."""

from __future__ import annotations

import sys

import click

from torchgauge.cli.answer import asides, forms, say_json
from torchgauge.cli.option_values import CommaList
from torchgauge.cli.results import STORE


@click.command("blockers")
@click.option("--device", type=CommaList(), default=(), help="device names; `torchgauge devices` lists them")
@STORE
@click.option("--suite", "suites", type=CommaList(), default=(), help="only models of these suites")
@click.option(
    "--dtype", type=CommaList(), default=(), help="dtypes (default: those of the models in the store)"
)
@click.option(
    "--path",
    type=click.Choice(["eager", "compiled"]),
    default="eager",
    show_default=True,
    help="how the models run",
)
@click.option("--census", metavar="FILE", help="file of `ops census --record` (default: the shipped one)")
@forms(
    csv="CSV on stdout",
    markdown="Markdown on stdout",
)
def command(
    device: tuple[str, ...],
    store: str,
    suites: tuple[str, ...],
    dtype: tuple[str, ...],
    path: str,
    census: str | None,
    form: str,
) -> None:
    """Rank operators that a device lacks by the number of models that they unblock.

    Needs results of `torchgauge ops judge` in the store.

    Example: torchgauge ops blockers --device DEVICE
    """
    from pathlib import Path

    from torchgauge.errors import UsageError
    from torchgauge.harness.planning.selection import DTYPES
    from torchgauge.results.blockers.evidence import evidence_of
    from torchgauge.results.blockers.ranking import Question, blockers, dtypes_of
    from torchgauge.results.blockers.text import as_plain, csv_of, markdown_of, terminal_of
    from torchgauge.results.store import Store
    from torchgauge.suites.census.data import load

    if not device:
        raise UsageError("no device was given", hint="--device NAME; torchgauge results list shows the runs")
    opened, data = Store.open(store), load(Path(census) if census else None)
    gaps: set[str] = set()
    found = []
    for name in device:
        evidence = evidence_of(opened, name)
        gaps.update(evidence.gaps)
        _check(
            "suite", suites, {*(each.suite for each in data.models), *(row.suite for row in evidence.models)}
        )
        stored = {row.dtype for row in evidence.models} | {row.dtype for row in evidence.operators}
        _check("dtype", dtype, {*DTYPES, *stored, *(each.dtype for each in data.models)})
        question = Question(evidence, data, path, suites)
        found += [blockers(question, each) for each in dtype or dtypes_of(evidence)]
    asides((), sorted(gaps))
    if form == "json":
        say_json([as_plain(each) for each in found])
    else:
        render = {"csv": csv_of, "markdown": markdown_of, "text": terminal_of}[form]
        click.echo(render(found), nl=False)
    sys.exit(3 if gaps else 0)


def _check(kind: str, names: tuple[str, ...], known: set[str]) -> None:
    from torchgauge.errors import UnknownNameError

    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, sorted(known))
