"""From the rows of a store to a ranking, and the ranking in every form."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from torchgauge.records import (
    Case,
    Cause,
    Configuration,
    DeviceTarget,
    Failure,
    Modifier,
    Result,
    Status,
    Workload,
)
from torchgauge.results.blockers.evidence import evidence_of, static_kinds
from torchgauge.results.blockers.prediction import Forecast
from torchgauge.results.blockers.ranking import Blockers, Question, blockers, dtypes_of
from torchgauge.results.blockers.text import terminal_of
from torchgauge.results.store import Store
from torchgauge.suites.census.data import CensusData
from torchgauge.suites.census.record import ModelCensus

sys.path.insert(0, str(Path(__file__).parent))  # the runner imports test files by path

import stored_runs as stored

OPINFO = {
    "aten::gelu": frozenset({"nn.functional.gelu"}),
    "aten::erf": frozenset({"erf"}),
    "aten::mm": frozenset({"mm"}),
    "aten::add.Tensor": frozenset({"add"}),
}


def census(model: str, *operators: str, mode: str = "inference") -> ModelCensus:
    """A toy model that needs ``operators`` in float32."""
    pairs = frozenset((name, "float32") for name in operators)
    return ModelCensus("toy", model, mode, "float32", "eager", pairs)


def row(model: str, status: Status = Status.PASS, suite: str = "toy", **changes: object) -> Result:
    """A row of a model, or of an operator where ``suite`` is ``ops``, on the device ``d``."""
    mode, dtype = changes.pop("mode", ""), changes.pop("dtype", "float32")
    missing, error = changes.pop("missing", ""), changes.pop("error", "")
    batch = changes.pop("batch", 1)
    mode = mode or ("forward" if suite == "ops" else "inference")
    case = Case(
        Workload(suite, model, mode, dtype, batch), Configuration("eager", "eager"), DeviceTarget("d")
    )
    failure = None
    if missing or error:
        message = error or f"Could not run '{missing}' with arguments from the 'd' backend"
        failure = Failure("NotImplementedError", message, missing_op=missing, fingerprint=f"of {message}")
    return stored.result(case, None, status=status, failure=failure, **changes)


def ranked(tmp_path: Path, rows: Sequence[Result], models: Sequence[ModelCensus], **more: object) -> Blockers:
    """The ranking in float32 of a store with one run of ``rows``."""
    store = Store.open(tmp_path, create=True)
    stored.run(store, "r1", rows, stored.environment("d"))
    return asked(store, models, **more)


def asked(store: Store, models: Sequence[ModelCensus], dtype: str = "float32", **more: object) -> Blockers:
    """The ranking of ``store`` with a census of ``models``."""
    data = CensusData({"torch": "2.9.0"}, tuple(models), OPINFO)
    return blockers(Question(evidence_of(store, "d"), data, "eager", **more), dtype)  # type: ignore[arg-type]


ROWS = (
    row("nn.functional.gelu", Status.ERROR, "ops", missing="aten::gelu.out"),
    row("erf", Status.ERROR, "ops", missing="aten::erf"),
    row("mm", Status.FAIL_ACCURACY, "ops", cause=Cause.TOLERANCE),
    row("add", Status.PASS, "ops"),
    row("one", Status.ERROR, missing="aten::gelu"),
    row("two", Status.ERROR, missing="aten::gelu"),
    row("wrong", Status.FAIL_ACCURACY, cause=Cause.TOLERANCE),
    row("fine", Status.PASS),
    row("full", Status.OOM, cause=Cause.DEVICE, reason="2 GiB asked"),
    row("huge", Status.OOM, cause=Cause.DEVICE, reason="2 GiB asked"),
)
MODELS = (
    census("one", "aten::gelu", "aten::add.Tensor"),
    census("two", "aten::gelu", "aten::erf"),
    census("wrong", "aten::mm"),
    census("fine", "aten::add.Tensor"),
    census("full", "aten::add.Tensor", "aten::erf"),
    census("new", "aten::gelu", "aten::mm"),
    census("new", "aten::gelu", "aten::erf", mode="training"),
    census("good", "aten::add.Tensor"),
    census("dark", "aten::strange"),
)


def test_another_model_under_a_name_is_no_evidence(tmp_path: Path) -> None:
    """A census is of the named model: what a smaller one ran clears nothing and is no model that runs."""
    models = [census("fine", "aten::strange"), census("other", "aten::strange")]
    seen = {line.model: line for line in ranked(tmp_path / "1", [row("fine")], models).models}
    assert seen["fine"].status == "pass"
    posing = row("fine", modifiers=(Modifier.OTHER_MODEL,))
    found = ranked(tmp_path / "2", [posing, row("far")], models)
    assert {line.model: line.status for line in found.models if line.model == "fine"} == {"fine": ""}


def test_rows_of_the_device_itself_are_no_models(tmp_path: Path) -> None:
    """What the doctor calibrates is neither counted nor missed in the census."""
    found = ranked(
        tmp_path, [row("fine"), row("gemm", suite="calibration")], [census("fine", "aten::strange")]
    )
    assert [line.title for line in found.models] == ["toy/fine"]
    assert not any("not in the census" in note for note in found.notes)


def test_operators_are_ranked_by_what_they_unblock(tmp_path: Path) -> None:
    """Seen and predicted models are counted together and told apart; accuracy has its own steps."""
    found = ranked(tmp_path, ROWS, MODELS)
    first, second, third = found.steps
    assert first.operators == ("aten::gelu",)
    assert first.unblocks == ("toy/new:inference", "toy/one:inference")
    assert first.observed == ("toy/one:inference",)
    assert second.operators == ("aten::erf",)
    assert second.unblocks == ("toy/new:training", "toy/two:inference")
    assert second.perhaps == ("toy/full:inference",)
    assert third.operators == ("aten::mm",)
    assert (third.unblocks, third.fixes) == ((), ("toy/wrong:inference",))


def test_failures_without_an_operator_are_clusters(tmp_path: Path) -> None:
    """Both that ran out of memory are there, with what one of them lacks besides; no step promises them."""
    found = ranked(tmp_path, ROWS, MODELS)
    (cluster,) = found.clusters
    assert (cluster.status, cluster.reason) == ("oom", "2 GiB asked")
    assert cluster.models == ("toy/full:inference", "toy/huge:inference")
    assert cluster.also_lacks == ("aten::erf",)
    unblocked = {name for step in found.steps for name in (*step.unblocks, *step.fixes)}
    failed = {line.name for line in found.models if line.status not in ("", "pass")}
    assert failed <= unblocked | set(cluster.models), "a failure is hidden"
    assert not unblocked & set(cluster.models)


def test_a_model_that_passes_lacks_nothing_whatever_the_matrix_says(tmp_path: Path) -> None:
    """What was seen counts before what was expected; the mistake is counted."""
    rows = (*ROWS[:2], row("one", Status.PASS))
    found = ranked(tmp_path, rows, MODELS[:1])
    assert found.steps == ()
    assert found.accuracy.false_blocked == 1


def test_models_never_run_have_a_forecast(tmp_path: Path) -> None:
    """Runs, is blocked by what, or is unknown and why."""
    found = {line.name: line for line in ranked(tmp_path, ROWS, MODELS).never_run}
    assert found["toy/good:inference"].forecast is Forecast.RUNS
    assert found["toy/new:training"].lacks == ("aten::erf", "aten::gelu")
    dark = found["toy/dark:inference"]
    assert dark.forecast is Forecast.UNKNOWN
    assert "aten::strange" in dark.forecast_reason
    assert len(found) == 4


def test_the_forecasts_are_measured_on_what_was_run(tmp_path: Path) -> None:
    """Over the six that ran: two of three called blocked; the one out of memory for another reason."""
    found = ranked(tmp_path, ROWS, MODELS).accuracy
    assert (found.true_blocked, found.false_blocked) == (3, 0)
    assert (found.missed_blocked, found.true_runs, found.unknown) == (1, 2, 1)


def test_only_the_newest_row_of_a_model_counts_and_old_rows_carry_their_age(tmp_path: Path) -> None:
    """Another batch is the same model; the operator matrix is a day older than the models."""
    store = Store.open(tmp_path, create=True)
    where = stored.environment("d")
    stored.run(store, "r1", ROWS[:5], where, at=stored.BEGIN)
    later = (row("one", Status.PASS, batch=2, started_at=stored.BEGIN + stored.DAY),)
    stored.run(store, "r2", later, where, at=stored.BEGIN + stored.DAY)
    found = asked(store, MODELS[:2])
    lines = {line.name: line for line in found.models}
    assert (lines["toy/one:inference"].status, lines["toy/one:inference"].age_s) == ("pass", 0.0)
    assert found.judged_age_s == stored.DAY
    text = terminal_of([found])
    assert "1 d older than the newest run" in text


def test_suites_and_dtypes_choose(tmp_path: Path) -> None:
    """Models of other suites are left out; a dtype without rows says what to type."""
    store = Store.open(tmp_path, create=True)
    stored.run(store, "r1", (*ROWS, row("x", suite="timm")), stored.environment("d"))
    assert [line.title for line in asked(store, MODELS, suites=("timm",)).models] == ["timm/x"]
    assert dtypes_of(evidence_of(store, "d")) == ("float32",)
    other = asked(store, MODELS, "bfloat16")
    assert any("--dtype bfloat16" in note for note in other.notes)
    assert other.accuracy.n == 0
    assert any("no backward rows" in note for note in asked(store, MODELS).notes)


def test_a_static_census_in_the_store_is_used(tmp_path: Path) -> None:
    """It judges what the matrix does not; a file that is no census is passed over."""
    store = Store.open(tmp_path, create=True)
    stored.run(store, "r1", ROWS, stored.environment("d"))
    folder = tmp_path / "census"
    folder.mkdir()
    (folder / "static-d-2.9.0.json").write_text(
        json.dumps({"device": "d", "operators": {"aten::strange": "missing"}, "at": 1.0}), "utf-8"
    )
    (folder / "static-d-0.json").write_text("{", "utf-8")
    found = {line.name: line for line in asked(store, MODELS).never_run}
    assert found["toy/dark:inference"].lacks == ("aten::strange",)


def test_the_newest_static_census_is_that_of_the_latest_time(tmp_path: Path) -> None:
    """By the time in the file: that of the file itself is another one in a store that was copied."""
    store = Store.open(tmp_path, create=True)
    folder = tmp_path / "census"
    folder.mkdir()
    for name, at, kind in (
        ("static-d-2.9.0.json", 200.0, "native"),
        ("static-d-2.8.0.json", 100.0, "missing"),
    ):
        found = {"device": "d", "operators": {"aten::strange": kind}, "at": at}
        (folder / name).write_text(json.dumps(found), "utf-8")
    os.utime(folder / "static-d-2.9.0.json", (1.0, 1.0))
    assert static_kinds(store, "d") == {"aten::strange": "native"}


def test_a_complaint_about_sparse_tensors_is_none_about_the_operator(tmp_path: Path) -> None:
    """Models are made of dense tensors, so nothing is missing for them."""
    message = "Could not run 'aten::add.Tensor' with arguments from the 'SparseCSR' backend"
    sparse = row("sparse.add", Status.ERROR, "ops", missing="aten::add.Tensor", error=message)
    found = ranked(tmp_path, (sparse, row("add", Status.PASS, "ops")), MODELS[3:4])
    assert found.steps == ()
    assert found.never_run[0].forecast is Forecast.RUNS


def test_a_failure_of_another_kind_is_helped_perhaps(tmp_path: Path) -> None:
    """It crashed and lacks an operator that nobody else lacks: a step of its own promises nothing."""
    crash = row("full", Status.CRASH, cause=Cause.SIGNAL, reason="signal 6")
    found = ranked(tmp_path, (*ROWS[:4], crash), MODELS[4:5])
    (step,) = found.steps
    assert (step.operators, step.unblocks, step.perhaps) == (("aten::erf",), (), ("toy/full:inference",))
    assert found.operators[0].perhaps == step.perhaps
    assert "perhaps helps 1 model that failed otherwise" in terminal_of([found])
