"""A program is measured with its author's tensors: their dtypes, shared memory, strides and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from torchgauge.records import Cause, Result, Status

pytestmark = pytest.mark.torch
RIGHT = (
    "complex_weight",
    "float8_buffer",
    "overlapping_inputs",
    "one_input_twice",
    "view_in_a_dict",
    "buffer_of_the_input",
    "weight_as_input",
    "expanded_input",
    "conjugate_input",
    "weight_norm",
    "own_containers",
    "transposed_weight",
    "one_list_twice",
    "one_dict_twice",
    "inputs_of_own_classes",
    "refers_to_itself",
)
EAGER = (
    "nested_input",
    "lazy_layer",
    "scripted_part",
    "arrays_of_one_memory",
    "rows_of_a_cache",
    "on_the_device",
)
"""Programs that dynamo does not capture, or that have nothing else to show under it."""


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def rows(request: pytest.FixtureRequest, make_sandbox: Callable[[], Any]) -> dict[str, Result]:
    """Return each row by dtype, model, configuration and mode."""
    box = make_sandbox()
    words = ("--device", "cpu", "--config", "eager,aot_eager", "--mode", "inference,training")
    done = box.measure("own_tensors", *words, "--dtype", request.param, "--memory-limit", "3G")
    assert done.returncode in (0, 1), done.stderr[-4000:]
    return {
        f"{one.case.workload.model} {one.case.configuration.name} {one.case.workload.mode}": one
        for one in box.rows()
    }


@pytest.mark.parametrize("mode", ["inference", "training"])
@pytest.mark.parametrize("model", RIGHT)
def test_a_program_runs_with_its_own_tensors(rows: dict[str, Result], model: str, mode: str) -> None:
    """Each raises where a tensor has another dtype, other memory or other strides."""
    for configuration in ("eager", "aot_eager"):
        row = rows[f"{model} {configuration} {mode}"]
        assert (row.status, row.reason) == (Status.PASS, "")
        assert row.accuracy is not None
        assert "float64 on the host" in row.accuracy.reference


@pytest.mark.parametrize("mode", ["inference", "training"])
@pytest.mark.parametrize("model", EAGER)
def test_rare_kinds_of_tensors_are_placed(rows: dict[str, Result], model: str, mode: str) -> None:
    """Each raises where a tensor has another layout or other memory, or where a copy does not fit."""
    row = rows[f"{model} eager {mode}"]
    assert (row.status, row.reason) == (Status.PASS, "")
    assert row.accuracy is not None
    assert "float64 on the host" in row.accuracy.reference


def test_hooks_and_attributes_of_tensors_are_kept(rows: dict[str, Result]) -> None:
    """The float64 copy has them too, so wrong gradients behind a hook are found."""
    for configuration in ("eager", "aot_eager"):
        row = rows[f"hooked_gradients {configuration} training"]
        assert (row.status, row.reason) == (Status.PASS, "")
        assert row.accuracy is not None
        assert "float64 on the host" in row.accuracy.reference
    row = rows["wrong_behind_a_hook aot_eager training"]
    assert (row.status, row.cause) == (Status.FAIL_ACCURACY, Cause.TOLERANCE)
    assert rows["wrong_behind_a_hook eager training"].status is Status.PASS


def test_tensors_of_inference_mode_are_restored(rows: dict[str, Result]) -> None:
    """They can be written in that mode only, and stay what they are in the copy."""
    for configuration in ("eager", "aot_eager"):
        row = rows[f"inference_tensors {configuration} inference"]
        assert (row.status, row.reason) == (Status.PASS, "")


def test_objects_with_tensors_are_placed_on_a_device(make_sandbox: Callable[[], Any]) -> None:
    """An object with a method ``to`` moves itself; the tensors of any other are moved one by one."""
    pytest.importorskip("torchgauge_npusim")
    box = make_sandbox()
    box.measure("own_tensors", "--models", "on_the_device", "--device", "npusim", "--config", "eager")
    (row,) = box.rows()
    assert (row.status, row.reason) == (Status.PASS, "")
    kept = "args.0.1 int64 on cpu, args.1.length int64 on cpu"
    assert dict(row.facts)["kept_dtypes"] == kept


def test_a_sparse_buffer_is_copied_for_the_reference(rows: dict[str, Result]) -> None:
    """Its layout stays."""
    row = rows["sparse_rows eager inference"]
    assert (row.status, row.reason) == (Status.PASS, "")


def test_infinities_of_a_program_that_refuses_double_pass(rows: dict[str, Result]) -> None:
    """Each run of eager has them in the same places, and there is no other reference."""
    row = rows["refuses_double eager inference"]
    assert (row.status, row.reason) == (Status.PASS, "")
    assert row.accuracy is not None
    assert row.accuracy.reference.startswith("eager alone: no float64 run")


def test_a_module_that_its_author_cast_keeps_its_norm(rows: dict[str, Result]) -> None:
    """Its norm in float32 and its other weights in bfloat16 stay, and the row names what differs."""
    names = {
        "float32": "linear.weight bfloat16, linear.bias bfloat16",
        "bfloat16": "norm.weight float32, norm.bias float32",
    }
    checked = 0
    for case, row in rows.items():
        if case.startswith("keeps_its_norm"):
            assert row.status is Status.PASS
            assert str(dict(row.facts)["kept_dtypes"]).startswith(names[row.case.workload.dtype])
            checked += 1
    assert checked == 4


def test_a_row_names_the_tensors_of_another_dtype(rows: dict[str, Result]) -> None:
    """Complex and float8 tensors have no counterpart in the row's dtype."""
    facts = {model: dict(rows[f"{model} eager inference"].facts).get("kept_dtypes") for model in RIGHT}
    assert facts.pop("complex_weight") == "phase complex64, turn complex64"
    assert facts.pop("float8_buffer") == "scales float8_e4m3fn"
    assert facts.pop("conjugate_input") == "args.0 complex64"
    assert set(facts.values()) == {None}


@pytest.mark.parametrize(
    ("model", "path"),
    [("wrong_input_gradient", "args.0"), ("no_input_gradient", "args.0"), ("gradient_of_a_view", "args.1")],
)
def test_a_wrong_gradient_of_an_input_is_found(rows: dict[str, Result], model: str, path: str) -> None:
    """Of a module without parameters it is all that training computes."""
    assert rows["without_parameters aot_eager training"].status is Status.PASS
    assert rows[f"{model} eager training"].status is Status.PASS
    row = rows[f"{model} aot_eager training"]
    assert (row.status, row.cause) == (Status.FAIL_ACCURACY, Cause.TOLERANCE)
    assert row.reason.startswith(f"iteration0.input_grad.{path}: ")


def test_infinities_and_nans_by_design_pass(rows: dict[str, Result]) -> None:
    """The reference has them in the same places."""
    for configuration in ("eager", "aot_eager"):
        row = rows[f"pads_its_logits {configuration} inference"]
        assert (row.status, row.reason) == (Status.PASS, "")


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (
            "moves_its_pad aot_eager",
            "out.logits: NaN or infinity at different positions than in the reference",
        ),
        (
            "loses_its_pad aot_eager",
            "out.logits: NaN or infinity at different positions than in the reference",
        ),
        ("adds_a_nan aot_eager", "out: NaN or infinity at different positions"),
        ("nothing_but_nan eager", "eager returned NaN or infinity in out"),
        ("nothing_but_nan aot_eager", "eager returned NaN or infinity in out"),
    ],
)
def test_other_infinities_and_nans_fail(rows: dict[str, Result], case: str, reason: str) -> None:
    """The result adds a NaN, moves an infinity, or holds only NaN."""
    row = rows[f"{case} inference"]
    assert (row.status, row.cause) == (Status.FAIL_ACCURACY, Cause.NONFINITE)
    assert row.reason.startswith(reason)
