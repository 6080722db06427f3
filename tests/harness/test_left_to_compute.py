"""A lazy result is refused; if eager returns a lazy result too, timed steps read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from torchgauge.records import Cause, Result, Status

pytestmark = pytest.mark.torch
MODULE = "torchgauge_faults.promises_models"
LATER = "correct at first, wrong in a later step: "
COMPUTES = "which computes when it is read"
LAZY = {
    "lazy_tensor": f"out: {MODULE}.Lazy, {COMPUTES}",
    "lazy_tensor_by_name": f"out: torch.Tensor, {COMPUTES}",
    "lazy_list": f"out.0: torch.Tensor, {COMPUTES}",
    "lazy_in_a_dict": f"out.y.0: torch.Tensor, {COMPUTES}",
    "lazy_later": f"{LATER}out: {MODULE}.Lazy, {COMPUTES}",
}
"""Models with lazy results in the back end alone, and the reasons in their rows."""
READ = {
    "lazy_dict_in_both": f"out is a {MODULE}.LazyDict, {COMPUTES}",
    "types_of_torch": f"out.0 is a torch.nested._internal.nested_tensor.NestedTensor, {COMPUTES}",
}
"""Models whose eager results are lazy, and the fact in their rows."""
FILE = "configurations:\n  - {name: broken, doc: x, backend: broken}\n"


@pytest.fixture(scope="module")
def rows(make_sandbox: Callable[[], Any]) -> dict[str, Result]:
    """Return each row by model and configuration."""
    box = make_sandbox()
    file = box.store_path.with_name("promises.yaml")
    file.write_text(FILE, encoding="utf-8")
    done = box.measure(
        *("promises", "--models", ",".join([*LAZY, *READ, "types_of_python"]), "--device", "cpu"),
        *("--config", "eager,broken", "--config-file", str(file), "--no-fallback-check"),
    )
    assert done.returncode == 1, done.stderr[-4000:]
    return {f"{one.case.workload.model} {one.case.configuration.name}": one for one in box.rows()}


@pytest.mark.parametrize("model", LAZY)
def test_a_result_that_is_left_to_compute_is_refused(rows: dict[str, Result], model: str) -> None:
    """The result is refused even if its class has another class's name, or later calls alone return it."""
    assert rows[f"{model} eager"].status is Status.PASS
    row = rows[f"{model} broken"]
    assert (row.status, row.cause, row.reason) == (Status.FAIL_ACCURACY, Cause.CONTRACT, LAZY[model])


@pytest.mark.parametrize("model", READ)
def test_what_eager_leaves_to_compute_is_read(rows: dict[str, Result], model: str) -> None:
    """Both configurations pass, and their rows name what a timed step reads."""
    for name in ("eager", "broken"):
        row = rows[f"{model} {name}"]
        assert (row.status, row.reason) == (Status.PASS, "")
        assert str(dict(row.facts)["outputs_read"]).startswith(READ[model])


def test_a_timed_step_contains_the_computation(rows: dict[str, Result]) -> None:
    """The mapping needs 3 ms when it is read, and its call nearly nothing."""
    for name in ("eager", "broken"):
        row = rows[f"lazy_dict_in_both {name}"]
        latency = next(one for one in row.measurements if one.metric == "latency")
        assert min(latency.samples) >= 0.003


def test_results_that_hold_what_is_read_are_not_read(rows: dict[str, Result]) -> None:
    """Named tuples, dataclasses, ordered dictionaries, arrays and modules compute nothing."""
    for name in ("eager", "broken"):
        row = rows[f"types_of_python {name}"]
        assert (row.status, row.reason) == (Status.PASS, "")
        assert "outputs_read" not in dict(row.facts)
