"""``torchgauge matrix``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchgauge.cli.answer import JSON, aside
from torchgauge.cli.option_values import CommaList
from torchgauge.cli.options import (
    MAX_TIME,
    Command,
    measuring,
    selection_of,
    selectors,
    settings_of,
    sources,
    store_option,
)
from torchgauge.errors import DataFileError, UsageError

if TYPE_CHECKING:
    from torchgauge.harness.matrix.matrix_run import Matrix, MatrixRequest
    from torchgauge.results.matrix.table import Table

MIN_LAUNCHES = 3
"""With fewer no case can be decided: `results.comparing.pair_evidence`, which is not imported for a word."""
AXES = ("torch", "transformers", "timm")


def _axis(name: str) -> Callable[[Command], Command]:
    words = f"versions of {name}"
    return click.option(f"--{name}", name, type=CommaList(), default=(), metavar="VERSION,...", help=words)


@click.command("matrix")
@selectors
@sources
@_axis("torch")
@_axis("transformers")
@_axis("timm")
@click.option("--python", "builds", multiple=True, metavar="NAME=PATH", help="your own build, as one version")
@click.option("--baseline", default="", metavar="CELL", help="version to compare with (default: the first)")
@click.option("--environments", metavar="DIR", help="folder of environments (default: in the user's cache)")
@click.option("--dry-run", is_flag=True, help="print downloads and environments; install nothing")
@click.option("--max-launches", type=click.IntRange(MIN_LAUNCHES), default=12, show_default=True,
              help="maximum number of launches (process starts) per version")  # fmt: skip
@MAX_TIME
@click.option(
    "--seed", type=int, default=0, help="seed of random choices, such as the order of sides (default: random)"
)
@click.option("--policy", metavar="FILE", help="YAML with tolerances (default: built in)")
@measuring
@store_option("folder of results")
@click.option("--fresh", is_flag=True, help="restart instead of continuing an interrupted matrix")
@click.option("--show", metavar="ID", help="show this stored matrix (or `latest`); measure nothing")
@click.option("--beside", multiple=True, metavar="NAME=FILE",
              help="`matrix --json` file of another machine, shown without a verdict")  # fmt: skip
@click.option("--markdown", metavar="FILE", help="write the table as Markdown to this file")
@click.option("--svg", metavar="FILE", help="write the chart as SVG to this file")
@JSON
def command(suite: tuple[str, ...], **options: Any) -> None:
    """Measure several versions of torch, transformers or timm in turns on one machine.

    The first version is the baseline. To continue an interrupted matrix, repeat the command.

    Exit codes: 0 all versions were measured, 1 outputs differ, 3 incomplete, 130 interrupted.

    Example: torchgauge matrix timm --torch 2.12.1,2.13.0 --device DEVICE
    """
    from torchgauge.results.matrix.state import find_state
    from torchgauge.results.matrix.table import table_of
    from torchgauge.results.store import Store

    others = _others(options["beside"])
    if options["show"]:
        store = Store.open(options["store"])
        _show(table_of(store, find_state(store, options["show"])), others, options)
        return
    request = _request(suite, options)
    matrix = _matrix(request, options)
    locks, lines = matrix.plan()
    aside(lines)
    if options["dry_run"]:
        sys.exit(3 if any(cell.failed for cell in matrix.state.cells) else 0)
    matrix.make(locks)
    interrupted = matrix.measure(max_time_s=options["max_time"])
    table = table_of(matrix.store, matrix.state)
    _show(table, others, options)
    if not table.complete:
        aside(["the matrix is incomplete; try: run the same command again, to continue"])
    empty = [column.label for column in table.columns if column.nothing]
    if empty:
        aside([f"no results of {', '.join(empty)}; the table shows the reason"])
    sys.exit(130 if interrupted else 1 if table.differ else 0 if table.complete and not empty else 3)


def _request(suite: tuple[str, ...], options: dict[str, Any]) -> MatrixRequest:
    from torchgauge.harness.ab.comparison import refuse_unchecked
    from torchgauge.harness.ab.judging import read_policy
    from torchgauge.harness.matrix.cells import cells_of
    from torchgauge.harness.matrix.matrix_run import MatrixRequest

    cells = cells_of({name: options[name] for name in AXES}, options["builds"], options["baseline"])
    settings, provenance = settings_of(options)
    refuse_unchecked(settings)
    policy = str(Path(options["policy"]).absolute()) if options["policy"] else ""
    read_policy(policy)
    return MatrixRequest(
        cells=cells,
        selection=selection_of(suite, options),
        settings=settings,
        seed=options["seed"],
        max_launches=options["max_launches"],
        policy=policy,
        provenance=provenance,
    )


def _matrix(request: MatrixRequest, options: dict[str, Any]) -> Matrix:
    from torchgauge.harness.matrix.environments import Environments, chosen_folder
    from torchgauge.harness.matrix.matrix_run import Matrix, needed
    from torchgauge.harness.run.live_lines import LiveLines
    from torchgauge.results.store import Store

    needs = needed(request)

    def say(line: str) -> None:
        aside([line])

    dry = options["dry_run"]
    matrix = Matrix(
        Store(Path(options["store"])) if dry else Store.open(options["store"], create=True),
        request,
        Environments(chosen_folder(options["environments"]), say, LiveLines().during),
        needs,
        say,
        keeps=not dry,
    )
    matrix.begin(fresh=options["fresh"])
    return matrix


def _others(named: tuple[str, ...]) -> dict[str, Table]:
    from torchgauge.records import RecordError
    from torchgauge.results.matrix.table import read_table

    found = {}
    for text in named:
        name, equals, file = text.partition("=")
        if not (name and equals and file):
            raise UsageError(
                f"--beside {text!r} is not NAME=FILE", hint="--beside NAME=FILE, FILE from `matrix --json`"
            )
        try:
            found[name] = read_table(Path(file).read_text(encoding="utf-8"))
        except OSError as error:
            raise DataFileError(file, f"cannot be read: {error.strerror or error}") from error
        except (RecordError, ValueError, KeyError, TypeError) as error:
            raise DataFileError(file, f"is not a matrix: {error}", hint="torchgauge matrix --json") from error
    return found


def _show(table: Table, others: dict[str, Table], options: dict[str, Any]) -> None:
    from torchgauge.results.atomic_file import storage_errors, write_atomically
    from torchgauge.results.matrix.table import with_others
    from torchgauge.results.matrix.text import json_of, markdown_of, terminal_of

    shown = with_others(table, others) if others else table
    if options["markdown"]:
        write_atomically(Path(options["markdown"]), markdown_of(shown).encode())
    if options["svg"]:
        from torchgauge.dashboard.pictures.version_matrix import draw_matrix

        write_atomically(Path(options["svg"]), draw_matrix(shown).text.encode())
    with storage_errors(Path(options["store"])):
        click.echo(json_of(table) if options["as_json"] else terminal_of(shown), nl=False)
