"""A claim on two versions is answered from a version matrix, whose sides were measured in turns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from torchgauge.results.claims import paired as module
from torchgauge.results.claims.answer import Verdict
from torchgauge.results.claims.answering import Listing, answer_claim
from torchgauge.results.claims.claim import Select, Side
from torchgauge.results.claims.claim_file import bundled_claims
from torchgauge.results.claims.claim_text import terminal_of
from torchgauge.results.matrix.state import CellState, MatrixState, write_state
from torchgauge.results.matrix.table import Column, Entry, Row, Table
from torchgauge.results.store import Store

MODELS = [f"m{number:02d}" for number in range(12)]
(CLAIM,) = (claim for claim in bundled_claims() if claim.name == "newer-torch-not-slower")


def entry(ratio: float) -> Entry:
    """A ratio of latencies whose interval is one per cent either way."""
    return Entry("pass", "unchanged", ratio, ratio * 0.99, ratio * 1.01, 0.01 * ratio)


def table(*ratios: float | None) -> Table:
    """Twelve models over as many versions after the first; None is a version where they fail."""
    versions = ["2.8.0+cpu", *(f"2.{9 + at}.0+cpu" for at in range(len(ratios)))]
    columns = tuple(
        Column(version.partition("+")[0], version, "/python", "ab", "complete", baseline=at == 0)
        for at, version in enumerate(versions)
    )
    failed = Entry("error", reason="broken")
    others = (failed if each is None else entry(each) for each in ratios)
    words = "inference", "float32", "eager", "cpu", "small", (Entry("pass", median=0.01), *others)
    rows = tuple(Row(f"timm/{name}:inference:float32:b1:eager@cpu", "timm", name, *words) for name in MODELS)
    return Table("0123456789abcdef", 1.0, (), columns[0].label, columns, rows, (), (), machine="two cores")


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The answer of a store that has nothing but one matrix."""

    def asked(made: Table, select: Select | None = None, **sides: Side):
        store = Store.open(tmp_path, create=True)
        write_state(store, MatrixState(made.id, 1.0, (), (CellState("a"),)))
        monkeypatch.setattr(module, "table_of", lambda _store, _state: made)
        claim = replace(CLAIM, select=select or Select(suites=("timm",), configurations=("eager",)),
                        question=replace(CLAIM.question, **sides))  # fmt: skip
        listing = Listing(tuple(("timm", name) for name in (*MODELS, "not-there")))
        found = answer_claim(claim, [str(tmp_path)], lambda *_: listing)
        (answer,) = found.answers
        assert "torch" in terminal_of(found)
        return answer

    return asked


@pytest.mark.parametrize(
    ("ratios", "verdict", "estimate"),
    [((1.0, 0.9), Verdict.SUPPORTED, 1 / 0.9), ((0.9, 1.2), Verdict.REFUTED, 0.75)],
)
def test_newest_over_previous_is_the_quotient_of_two_cells(ask, ratios, verdict, estimate):
    """Throughput is the inverse of latency; a model that the matrix has not is not measured."""
    answer = ask(table(*ratios))
    assert answer.verdict is verdict
    assert answer.estimate == pytest.approx(estimate)
    assert answer.counts == {"measured": 12, "not measured": 1}
    assert [where.torch for where in answer.where] == [("2.9.0+cpu",), ("2.10.0+cpu",)]
    assert any("12 ratios are from version matrix 0123456789abcdef" in note for note in answer.notes)


def test_sides_by_version_may_take_the_baseline(ask):
    """The baseline's own ratio is 1."""
    answer = ask(table(0.8, 0.5), base=Side(torch="2.8*"), head=Side(torch="2.9.0"))
    assert answer.estimate == pytest.approx(1 / 0.8)
    member = next(each for each in answer.members if each.name == "timm/m00")
    assert member.low == pytest.approx(1 / (0.8 * 1.01))


def test_a_version_where_a_model_fails_is_no_slower_version(ask):
    """It has failed, with the reason, and enters no mean."""
    answer = ask(table(1.0, None))
    assert answer.verdict is Verdict.NOT_MEASURED
    assert answer.counts == {"failed": 12, "not measured": 1}
    assert answer.members[0].reason == "head: error: broken"


@pytest.mark.parametrize(
    ("select", "sides"),
    [
        (Select(suites=("timm",), configurations=("eager",), machine="*Neoverse*"), {}),
        (Select(suites=("timm",), configurations=("inductor",)), {}),
        (Select(suites=("timm",), configurations=("eager",), mode="training"), {}),
        (Select(suites=("timm",), configurations=("eager",), since=2.0), {}),
        (None, {"base": Side(torch="2.5*")}),
    ],
)
def test_a_matrix_that_does_not_fit_answers_nothing(ask, select, sides):
    """Another machine, configuration or mode, an older date, and a version that it has not."""
    answer = ask(table(1.0, 0.9), select, **sides)
    assert answer.verdict is Verdict.NOT_MEASURED
    assert answer.counts == {"not measured": 13}
