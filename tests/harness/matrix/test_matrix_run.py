"""What a matrix keeps of its cells, and what it gives up where they are others now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchgauge.harness.matrix.cells import Cell
from torchgauge.harness.matrix.environments import Environments, Made
from torchgauge.harness.matrix.matrix_run import Matrix, MatrixRequest
from torchgauge.harness.planning.selection import Selection
from torchgauge.records import RunSettings
from torchgauge.results.matrix.state import read_state
from torchgauge.results.store import Store

LABELS = ("a", "b", "c")
FOUND = {
    label: Made(f"/{label}/python", f"2.1{at}.0", (f"torch==2.1{at}.0", "timm==1.0.1"), f"c0ffee{at}")
    for at, label in enumerate(LABELS)
}


@pytest.fixture
def matrix(tmp_path):
    """A matrix of three builds whose cells are measured, the last one in part."""
    said: list[str] = []
    cells = tuple(Cell(label, python=f"/no/such/{label}") for label in LABELS)
    request = MatrixRequest(cells, Selection(("toy",), ("fake",)), RunSettings())
    store = Store.open(str(tmp_path / "store"), create=True)
    made = Matrix(store, request, Environments(tmp_path), say=said.append)
    made.begin()
    made._take(FOUND, "a")
    made._keep("b", comparison="ab-b", done=True)
    made._keep("c", comparison="ab-c")
    return made, said


def kept(matrix: Matrix) -> dict[str, tuple[str, bool]]:
    state = read_state(matrix.store, matrix.request.id)
    assert state is not None
    assert state == matrix.state
    return {cell.label: (cell.comparison, cell.done) for cell in state.cells}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"torch": "2.20.0"}, "torch 2.11.0 (commit c0ffee1) is 2.20.0 (commit c0ffee1) now"),
        ({"commit": "deadbeef"}, "torch 2.11.0 (commit c0ffee1) is 2.11.0 (commit deadbeef) now"),
        ({"python": "/b2/python"}, "/b/python is /b2/python now"),
        ({"pins": ("torch==2.11.0", "timm==1.0.2")}, "timm 1.0.1 is 1.0.2 now"),
        ({"pins": ("torch==2.11.0",)}, "timm 1.0.1 is (missing) now"),
    ],
)
def test_a_cell_that_is_another_now_begins_anew(matrix, change, words):
    """Its A/B run measured what is no more there; the line names old and new, and the others go on."""
    made, said = matrix
    made._take({**FOUND, "b": replace(FOUND["b"], **change)}, "a")
    assert kept(made) == {"a": ("", False), "b": ("", False), "c": ("ab-c", False)}
    assert said == [f"b changed ({words}): its measurement starts over"]
    made._take({**FOUND, "b": replace(FOUND["b"], **change)}, "a")
    assert len(said) == 1


def test_another_baseline_begins_all_cells_anew(matrix):
    """Also a cell that does not answer now: its A/B run was against what the baseline was."""
    made, said = matrix
    made._take({"a": replace(FOUND["a"], torch="2.20.0"), "b": FOUND["b"]}, "a")
    assert kept(made) == dict.fromkeys(LABELS, ("", False))
    words = "torch 2.10.0 (commit c0ffee0) is 2.20.0 (commit c0ffee0) now"
    assert said == [f"a changed ({words}): all measurements start over"]


def test_a_baseline_that_fails_later_gives_nothing_up(matrix):
    """These builds are no files, so that none answers: nothing is measured, and what was stays."""
    made, said = matrix
    made.make({})
    assert kept(made) == {"a": ("", False), "b": ("ab-b", True), "c": ("ab-c", False)}
    assert said[-1].startswith("the baseline a can no longer be installed: nothing is measured")
    assert made.ready == frozenset()
    assert made.measure() is False
