"""What rows of the operator matrix say of the operators that they dispatch."""

from __future__ import annotations

import pytest

from torchgauge.records import Status
from torchgauge.results.blockers.evidence import Evidence, ModelRow, OperatorRow
from torchgauge.results.blockers.prediction import (
    Forecast,
    accuracy_of,
    explained,
    needed,
    predict,
)
from torchgauge.results.blockers.verdicts import OperatorState, judge_of
from torchgauge.suites.census.record import ModelCensus

OPINFO = {
    "aten::gelu": frozenset({"nn.functional.gelu"}),
    "aten::gelu_backward": frozenset({"nn.functional.gelu"}),
    "aten::mul.Tensor": frozenset({"mul", "nn.functional.glu"}),
    "aten::sigmoid": frozenset({"sigmoid", "nn.functional.glu"}),
    "aten::glu": frozenset({"nn.functional.glu"}),
    "aten::zeros": frozenset({"zeros"}),
}


def row(entry: str, status: Status = Status.PASS, **fields: object) -> OperatorRow:
    """A forward row in float32."""
    known = {"variant": "forward", "dtype": "float32", "error": "E" if status is Status.ERROR else ""}
    return OperatorRow(entry, status=status, **{**known, **fields})  # type: ignore[arg-type]


def state(operator: str, *rows: OperatorRow, dtype: str = "float32", **evidence: object) -> OperatorState:
    """The state of ``operator`` after ``rows``."""
    found = Evidence("d", rows, **evidence)  # type: ignore[arg-type]
    return judge_of(found, OPINFO).of(operator, dtype).state


def model(status: Status, name: str = "m", **fields: object) -> ModelRow:
    """A row of a toy."""
    return ModelRow("toy", name, "inference", "float32", "eager", status, **fields)  # type: ignore[arg-type]


def census(*operators: str, dtype: str = "float32", name: str = "m") -> ModelCensus:
    """A model that needs ``operators``."""
    return ModelCensus("toy", name, "inference", dtype, "eager", frozenset((o, dtype) for o in operators))


def test_an_entry_that_passes_clears_what_it_dispatches() -> None:
    """Also operators that have no entry of their own."""
    assert state("aten::glu", row("nn.functional.glu")) is OperatorState.RUNS
    assert state("aten::sigmoid", row("nn.functional.glu")) is OperatorState.RUNS


def test_a_named_operator_is_missing_in_all_its_overloads_and_dtypes() -> None:
    """The failure says which one it is, so the other operators of the entry are not charged."""
    failed = row("nn.functional.glu", Status.ERROR, missing="aten::mul")
    assert state("aten::mul.Tensor", failed) is OperatorState.MISSING
    assert state("aten::mul.out", failed) is OperatorState.MISSING
    assert state("aten::mul.Tensor", failed, dtype="bfloat16") is OperatorState.MISSING
    assert state("aten::sigmoid", failed) is OperatorState.UNJUDGED


def test_its_own_entry_or_a_newer_run_overrules_a_name() -> None:
    """What is seen to run runs: the complaint was of another kind of tensor, or is repaired."""
    failed = row("nn.functional.glu", Status.ERROR, missing="aten::mul", at=10.0)
    assert state("aten::mul.Tensor", failed, row("mul", at=10.0)) is OperatorState.RUNS
    assert state("aten::sigmoid", row("nn.functional.glu", at=20.0)) is OperatorState.RUNS
    older = row("nn.functional.gelu", Status.ERROR, missing="aten::sigmoid", at=10.0)
    assert state("aten::sigmoid", older, row("nn.functional.glu", at=20.0)) is OperatorState.RUNS
    assert state("aten::sigmoid", older, row("nn.functional.glu", at=10.0)) is OperatorState.MISSING


def test_a_forward_pass_does_not_clear_the_backward_operator() -> None:
    """Only the variant that dispatches it does."""
    forward = row("nn.functional.gelu")
    assert state("aten::gelu_backward", forward) is OperatorState.UNJUDGED
    assert state("aten::gelu_backward", row("nn.functional.gelu", variant="backward")) is OperatorState.RUNS


def test_a_failure_without_a_name_is_charged_to_what_nothing_clears() -> None:
    """An operator that passes elsewhere is not to blame; the one that gave the entry its name is."""
    failed = row("nn.functional.glu", Status.CRASH)
    rows = (failed, row("mul"), row("sigmoid"))
    assert state("aten::glu", *rows) is OperatorState.FAILS
    assert state("aten::mul.Tensor", *rows) is OperatorState.RUNS
    assert state("aten::glu", failed) is OperatorState.FAILS
    assert state("aten::sigmoid", failed) is OperatorState.UNJUDGED


def test_a_missing_part_that_no_census_sees_is_what_blocks() -> None:
    """``zeros`` fails because of an operator inside it, and that one has to be implemented."""
    found = Evidence("d", (row("zeros", Status.ERROR, missing="aten::zero_"),))
    verdict = judge_of(found, OPINFO).of("aten::zeros", "float32")
    assert (verdict.state, verdict.blocker) == (OperatorState.MISSING, "aten::zero_")


def test_wrong_results_are_inaccurate_and_do_not_block() -> None:
    """Where its own entry fails accuracy, even if others with it pass."""
    wrong = row("sigmoid", Status.FAIL_ACCURACY)
    assert state("aten::sigmoid", wrong) is OperatorState.INACCURATE
    assert state("aten::sigmoid", wrong, row("nn.functional.glu")) is OperatorState.INACCURATE


@pytest.mark.parametrize("status", [Status.SKIPPED, Status.INFRA, Status.NOT_RUN, Status.UNSUPPORTED])
def test_rows_that_say_nothing_leave_the_static_census(status: Status) -> None:
    """It says missing or not; without it the operator is unjudged."""
    silent = row("nn.functional.glu", status)
    assert state("aten::glu", silent) is OperatorState.UNJUDGED
    assert state("aten::glu", silent, static={"aten::glu": "missing"}) is OperatorState.MISSING
    assert state("aten::glu", silent, static={"aten::glu": "native"}) is OperatorState.RUNS
    assert state("aten::glu", static={"aten::mul": "native"}) is OperatorState.UNJUDGED


def test_rows_of_the_asked_dtype_count_before_others() -> None:
    """Another dtype stands in only where there is no row."""
    rows = (row("sigmoid", Status.ERROR, dtype="bfloat16"), row("sigmoid"))
    assert state("aten::sigmoid", *rows, dtype="bfloat16") is OperatorState.FAILS
    assert state("aten::sigmoid", *rows) is OperatorState.RUNS
    assert state("aten::sigmoid", *rows, dtype="float16") is OperatorState.RUNS


def test_a_prediction_never_uses_the_models_own_rows() -> None:
    """What the model's own failure named, and what its own pass cleared, is told without it."""
    failing = Evidence("d", (), (model(Status.ERROR, missing="aten::erf"),), {"aten::erf": "native"})
    judge = judge_of(failing, OPINFO)
    assert predict(judge, census("aten::erf"), "float32").forecast is Forecast.RUNS
    assert predict(judge, census("aten::erf", name="other"), "float32").forecast is Forecast.BLOCKED
    passing = model(Status.PASS)
    judge = judge_of(Evidence("d", (), (passing,)), OPINFO, [(passing, [("aten::erf", "float32")])])
    assert predict(judge, census("aten::erf"), "float32").forecast is Forecast.UNKNOWN
    assert predict(judge, census("aten::erf", name="other"), "float32").forecast is Forecast.RUNS


def test_a_census_in_one_dtype_serves_the_others() -> None:
    """Its own dtype is replaced and that of indices is not; parts that a backend receives count too."""
    of = ModelCensus(
        "toy",
        "m",
        "inference",
        "float32",
        "eager",
        frozenset({("aten::mm", "float32"), ("aten::arange", "int64")}),
        received=frozenset({("aten::mm.out", "float32")}),
    )
    assert needed(of, "amp_bfloat16") == [
        ("aten::arange", "int64"),
        ("aten::mm", "bfloat16"),
        ("aten::mm.out", "bfloat16"),
    ]


def test_under_autocast_the_better_of_two_dtypes_counts() -> None:
    """An operator that only the wide dtype has is run in it."""
    rows = (row("sigmoid", Status.ERROR, dtype="bfloat16"), row("sigmoid"))
    judge = judge_of(Evidence("d", rows), OPINFO)
    of = census("aten::sigmoid")
    assert predict(judge, of, "bfloat16").forecast is Forecast.BLOCKED
    assert predict(judge, of, "amp_bfloat16").forecast is Forecast.RUNS


def test_a_failure_is_explained_by_its_own_kind_only() -> None:
    """A model that is out of memory is not explained by an operator that is missing."""
    rows = (row("sigmoid", Status.ERROR, error="RuntimeError: no"), row("nn.functional.gelu", Status.CRASH))
    judge = judge_of(Evidence("d", rows), OPINFO)
    found = predict(judge, census("aten::sigmoid", "aten::gelu"), "float32")
    assert explained(found, "", "RuntimeError: no", Status.ERROR)
    assert explained(found, "", "", Status.CRASH)
    assert explained(found, "aten::x", "NotImplementedError: x", Status.ERROR)
    assert not explained(found, "", "ValueError: other", Status.ERROR)
    assert not explained(found, "", "", Status.OOM)
    assert not explained(found, "", "", Status.TIMEOUT)


def test_the_tally_counts_an_unknown_against_recall() -> None:
    """Nothing is improved by saying nothing."""
    found = accuracy_of(
        [
            (Forecast.BLOCKED, False),
            (Forecast.BLOCKED, False),
            (Forecast.BLOCKED, True),
            (Forecast.RUNS, True),
            (Forecast.RUNS, False),
            (Forecast.UNKNOWN, False),
            (Forecast.UNKNOWN, True),
        ]
    )
    assert (found.n, found.unknown) == (7, 2)
    assert (found.precision.hits, found.precision.n) == (2, 3)
    assert (found.recall.hits, found.recall.n) == (2, 4)
    assert (found.base_rate.hits, found.base_rate.n) == (4, 7)
