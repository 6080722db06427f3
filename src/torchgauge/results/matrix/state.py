"""What a version matrix keeps: its cells, and the A/B run that measured each against the baseline.

::

    STORE/matrix/<id>/state.json     after each step; the same command goes on from it

The measurements are those of the A/B runs, which lie in the store as all do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from torchgauge.errors import UnknownNameError
from torchgauge.records import to_plain
from torchgauge.results.atomic_file import storage_errors, write_atomically
from torchgauge.results.json_file import read_record
from torchgauge.results.lookup import resolve
from torchgauge.results.store import Store

FOLDER = "matrix"


@dataclass(frozen=True)
class CellState:
    """One cell: what was asked for, what it became, and the A/B run of it against the baseline.

    ``failed`` says why it has no environment. ``torch`` is what its interpreter imports, built from
    ``commit``. ``comparison`` is empty for the baseline and for a cell that was not measured yet; it measured
    this very ``python``, ``torch``, ``commit`` and ``pins``, and those of the baseline: where one of them
    changes, it is given up.
    """

    label: str
    python: str = ""
    torch: str = ""
    commit: str = ""
    pins: tuple[str, ...] = ()
    failed: str = ""
    comparison: str = ""
    done: bool = False


@dataclass(frozen=True)
class MatrixState:
    """A version matrix as it was left; ``baseline`` is the label of a cell."""

    id: str
    created_at: float
    command: tuple[str, ...]
    cells: tuple[CellState, ...]
    baseline: str = ""
    notes: tuple[str, ...] = ()

    def cell(self, label: str) -> CellState:
        """The cell of ``label``."""
        return next(cell for cell in self.cells if cell.label == label)


def pin_of(line: str) -> tuple[str, str]:
    """Name and version (or address) of a pin: ``timm==1.0.31``, ``torch @ https://...``."""
    name, _, version = line.partition("==" if "==" in line else " @ ")
    return name, version


def state_path(store: Store, matrix_id: str) -> Path:
    """Where the state of a matrix is."""
    return store.path / FOLDER / matrix_id / "state.json"


def read_state(store: Store, matrix_id: str) -> MatrixState | None:
    """The matrix as it was left; None where there is none. Raises :class:`DataFileError`."""
    path = state_path(store, matrix_id)
    return read_record(MatrixState, path, "repeat with --fresh to start over") if path.is_file() else None


def write_state(store: Store, state: MatrixState) -> None:
    """Keep ``state``, durable on return."""
    path = state_path(store, state.id)
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(to_plain(state), indent=1, allow_nan=False).encode())


def matrix_ids(store: Store) -> tuple[str, ...]:
    """Ids of all matrices of ``store``, the newest last."""
    found = sorted((store.path / FOLDER).glob("*/state.json"), key=lambda path: path.stat().st_mtime)
    return tuple(path.parent.name for path in found)


def find_state(store: Store, name: str) -> MatrixState:
    """The matrix that ``name`` means (``latest``, ``latest~1``); raises as :func:`resolve` does."""
    known = matrix_ids(store)
    chosen = resolve(name, known, "matrix", "matrices")
    state = read_state(store, chosen)
    if state is None:
        raise UnknownNameError("matrix", chosen, known)
    return state
