"""A store of every kind of run that a month may hold, and what all readers say of a store."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))

import stored_runs as made

from torchgauge.cli.main import cli
from torchgauge.dashboard.site import build_site
from torchgauge.records import Cause, Modifier, Phase, Status
from torchgauge.results.dataset import read_encoded, read_table
from torchgauge.results.interchange.imported_run import IMPORTED_FROM
from torchgauge.results.journal import RunState
from torchgauge.results.store import Store
from torchgauge.results.tables import TABLES

MONTH = "2026-05"
"""The month of :data:`stored_runs.BEGIN`."""
DAMAGED = "20260530T040000Z-0000000d"
NOW = made.BEGIN + 40 * made.DAY
LINEAR, COMPILED, OTHER = made.case(), made.case("conv", "inductor"), made.case("noop", device="other")
TABLES_ASKED = ("results", "summaries", "samples")


def run_id(number: int) -> str:
    """The id of the run of night ``number``, as torchgauge gives them."""
    return f"202605{28 + number:02d}T040000Z-0000000{number}"


def mixed_store(path: Path) -> Store:
    """Nights of two months with what can be: superseded, imported, cut short, damaged."""
    store = Store.open(path, create=True)
    where = (made.environment(), made.environment("other"))
    for number in range(4):
        metrics = {"peak_memory": 1e6 + number}
        made.run(
            store,
            run_id(number),
            [
                made.result(LINEAR, 1e-3 + number * 1e-5, metrics=metrics, started_at=_at(number)),
                made.result(COMPILED, 2e-3, modifiers=(Modifier.UNSTEADY,), started_at=_at(number) + 60),
                made.result(
                    OTHER,
                    status=Status.NOT_RUN if number % 2 else Status.ERROR,
                    cause=Cause.CANCELLED if number % 2 else None,
                    phase=Phase.START,
                    reason=f"night {number} \N{SNOWMAN}",
                    started_at=0.0 if number % 2 else _at(number),
                ),
            ],
            where,
            at=_at(number),
        )
    contributed = store.path / "runs" / run_id(1) / "provenance.json"
    contributed.write_text(json.dumps({"contributor": "kim", "pool": "lab", "rows": 3}))
    brought = made.result(LINEAR, 1.1e-3, facts=((IMPORTED_FROM, "old.csv row 7"),))
    made.run(store, "20260529T050000Z-0000000a", [brought], at=_at(1) + 3600)
    cut_short = "20260530T050000Z-0000000b"
    made.run(store, cut_short, [made.result(LINEAR)], at=_at(2) + 60, state=RunState.INTERRUPTED)
    made.run(store, DAMAGED, [made.result(COMPILED)], at=_at(2))
    flip(store.table_path("summaries", DAMAGED))
    later = "20260615T040000Z-0000000c"
    made.run(store, later, [made.result(LINEAR, 1.2e-3)], at=made.BEGIN + 18 * made.DAY)
    return store


def _at(number: int) -> float:
    return made.BEGIN + (number - 0.5) * made.DAY


def flip(path: Path, place: int = -100) -> None:
    """Change one bit of a file, ``place`` bytes from its end."""
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def asked(*arguments: str) -> str:
    """Exit code and words of a command."""
    done = CliRunner().invoke(cli, list(arguments))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return f"{type(done.exception).__name__}\n{done.exception}"
    return f"{done.exit_code}\n{done.output}"


def words_of_readers(path: Path) -> dict[str, str]:
    """What the commands that read stores say of the one at ``path``."""
    where = ("--store", str(path))
    commands: Sequence[tuple[str, ...]] = (
        ("results", "list", *where, "--json"),
        ("results", "list", *where),
        ("results", "fsck", *where, "--json"),
        ("results", "show", run_id(2), *where, "--json"),
        ("results", "show", LINEAR.id, *where),
        *((("results", "query", "--table", name, *where, "--json")) for name in TABLES_ASKED),
        ("results", "query", f"case_id={LINEAR.id}", "metric=latency", "--table", "summaries", *where),
        ("results", "query", "status!=pass", "device=other", *where, "--json"),
        ("results", "query", "--run", run_id(1), "--table", "summaries", *where, "--json"),
        ("results", "query", "--run", DAMAGED, "--table", "summaries", *where),
        ("compare", run_id(0), run_id(3), *where, "--json"),
        ("results", "trend", *where, "--json", "--no-keep"),
        ("results", "triage", *where, "--json"),
        ("report", run_id(3), *where),
        ("results", "compat", *where),
        ("ops", "blockers", *where, "--json"),
        ("results", "noise", *where),
        ("results", "export", run_id(2), *where, "--format", "hud"),
    )
    return {" ".join(each): asked(*each) for each in commands}


def rows_of(store: Store) -> dict[str, list[object]]:
    """Every row of every table of the sound runs, in order, also as the dashboard reads them."""
    runs = [run for run in store.published() if run != DAMAGED]
    found: dict[str, list[object]] = {}
    for name, table in TABLES.items():
        encoded, lengths = read_encoded(store, name, runs, table.names)
        words = [
            encoded[column].chunk(0).dictionary.to_pylist()
            for column in table.names
            if encoded.num_rows and hasattr(encoded[column].type, "index_type")
        ]
        plain = read_table(store, name, runs)
        found[name] = [plain.to_pylist(), encoded.to_pylist(), lengths, words, str(plain.schema)]
    return found


def site_of(path: Path, out: Path) -> dict[str, str]:
    """The digest of every file of the site of the store at ``path``."""
    build_site(path, out, now=NOW)
    files = (file for file in sorted(out.rglob("*")) if file.is_file())
    return {file.relative_to(out).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
