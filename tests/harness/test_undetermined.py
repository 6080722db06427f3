"""What chance decides of a result is no fault, and a wrong result beside it is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from torchgauge.records import Cause, Modifier, Result, Status

pytestmark = pytest.mark.torch
WORDS = ("--device", "cpu", "--no-warm-compile", "--no-memory-probe")
Rows = dict[str, Result]


def measured(box: Any, *words: str) -> Rows:
    """Return the rows of a run by model and configuration."""
    done = box.measure("undetermined", *WORDS, *words)
    assert done.returncode in (0, 1, 3), done.stderr[-4000:]
    return {f"{row.case.workload.model} {row.case.configuration.name}": row for row in box.rows()}


@pytest.fixture(scope="module")
def rows(make_sandbox: Callable[[], Any]) -> Rows:
    """Return every row of both modes beside a compiler that keeps eager's kernels."""
    return measured(make_sandbox(), "--mode", "inference,training", "--config", "eager,aot_eager")


@pytest.fixture(scope="module")
def drawing(make_sandbox: Callable[[], Any]) -> Rows:
    """Return rows of programs that draw random numbers, which inductor draws in its own way."""
    models = "adds_noise,wrong_noisy_result,drops_out,wrong_dropout,seeds_itself,wrong_after_seeding"
    models += ",amplifies_beside_draws,adds_noise_to_a_convolution,wrong_noisy_convolution"
    models += ",doubles_its_noise,moves_its_noise,shares_its_noise,shares_its_mask,repeats_its_noise"
    models += ",masks_gradients_otherwise,seldom_drops_blocks"
    modes = ("--mode", "inference,training", "--config", "eager,inductor")
    return measured(make_sandbox(), *modes, "--models", models)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("sorts_near_scores", "rounding decides out.places in"),
        ("top_of_equal_scores", "rounding decides out.places in"),
        ("masks_near_scores", "rounding decides out.mask in"),
        ("masks_a_sum", "rounding decides out.mask in"),
        ("masks_many_scores", "rounding decides out.mask in"),
        ("counts_near_scores", "rounding decides out.masked in 1 element"),
        ("finds_near_scores", "the shape of out.places, which is unchecked"),
        ("finds_a_mode", "rounding decides out.places in"),
        ("highest_of_equal_sums", "rounding decides out.places in"),
        ("best_of_equal_sums", "rounding decides out.places in"),
        ("rounds_halves", "rounding decides out.whole in"),
    ],
)
def test_ties_pass_and_are_counted(rows: Rows, model: str, said: str) -> None:
    """Places where another rounding gives another order, mask, number or shape may differ."""
    row = rows[f"{model} aot_eager"]
    assert (row.status, row.reason) == (Status.PASS, "")
    assert Modifier.TIES in row.modifiers
    assert row.counted
    assert said in str(dict(row.facts)["ties"])
    assert Modifier.TIES not in rows[f"{model} eager"].modifiers


@pytest.mark.parametrize(
    "model", ["amplifies", "amplifies_a_convolution", "norm_of_two", "stays_in_a_domain"]
)
def test_amplified_rounding_passes_and_is_named(rows: Rows, model: str) -> None:
    """Without float64 the rounding of each operator says how far correct results lie apart."""
    row = rows[f"{model} aot_eager"]
    assert (row.status, row.reason) == (Status.PASS, "")
    assert "no float64 run" in str(row.accuracy and row.accuracy.reference)
    assert str(dict(row.facts)["rounded"]).partition(" ")[2].startswith("tensor")


def test_a_run_with_other_rounding_that_raises_names_its_exception(rows: Rows) -> None:
    """The reason names the exception, because rounding may explain the difference."""
    row = rows["wrong_and_strict aot_eager"]
    assert row.status is Status.FAIL_ACCURACY
    raised = "because eager with other rounding raised AssertionError: equal products differ"
    assert row.reason.endswith(f"; rounding is not ruled out, {raised}"), row.reason


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("wrong_sort", "out.places: torch.int64 values differ"),
        ("wrong_top", "out.places: torch.int64 values differ"),
        ("wrong_tie", "out.places: torch.int64 values differ"),
        ("twice_the_same", "out.places: torch.int64 values differ"),
        ("no_place", "out.places: torch.int64 values differ"),
        ("wrong_highest", "out.places: torch.int64 values differ"),
        ("wrong_mask", "out.mask: torch.bool values differ"),
        ("wrong_mask_of_many", "out.mask: torch.bool values differ"),
        ("wrong_masked", "out.masked.values: largest error"),
        ("wrong_inside", "out.wrapped.inside: largest error"),
        ("wrong_first", "out.flattened.first: largest error"),
        ("wrong_finds", "out.places: shape "),
        ("wrong_count", "out.above: "),
        ("wrong_beside_noise", "out.scores: largest error"),
        ("wrong_noise", "out.rest: largest error"),
        ("wrong_amplified_convolution", "out.rest: largest error"),
        ("wrong_near_one", "out.loss: largest error"),
        ("wrong_in_a_domain", "out.rest: largest error"),
        ("wrong_norm", "iteration0.grad.linear.weight: "),
        ("wrong_noisy_result", "out: largest error"),
        ("wrong_dropout", "iteration0.grad.linear.weight: largest error"),
        ("leaves_dropout_out", "iteration0."),
        ("wrong_activation", "iteration0.grad.linear.weight: largest error"),
        ("writes_its_weights", "compiled code, unlike eager, changes state: parameter.linear.weight"),
    ],
)
def test_wrong_results_beside_chance_are_found(rows: Rows, model: str, reason: str) -> None:
    """The compiled configuration is accused, and eager is not."""
    row = rows[f"{model} aot_eager"]
    assert (row.status, row.cause) == (Status.FAIL_ACCURACY, Cause.TOLERANCE)
    assert row.reason.startswith(reason)
    assert (rows[f"{model} eager"].status, rows[f"{model} eager"].reason) == (Status.PASS, "")


def test_a_number_near_zero_may_have_the_other_sign(rows: Rows) -> None:
    """Errors of a step add up: an activation passes another element, whose gradient is large."""
    row = rows["flips_an_activation aot_eager"]
    assert (row.status, row.reason) == (Status.PASS, "")
    assert "linear.weight" in str(dict(row.facts)["rounded"])


PADS = ("a_row", "added_pads", "a_channel", "a_large_class")


@pytest.mark.parametrize("beside", PADS)
def test_wrong_numbers_beside_far_larger_ones_are_found(rows: Rows, beside: str) -> None:
    """Rounding of a pad is larger than the numbers beside it, and excuses only the pad."""
    row = rows[f"wrong_beside_{beside} aot_eager"]
    assert (row.status, row.cause) == (Status.FAIL_ACCURACY, Cause.TOLERANCE)
    assert rows[f"wrong_beside_{beside} eager"].status is Status.PASS


@pytest.mark.parametrize("model", ["fills_a_row", "adds_pads", "fills_a_channel", "has_a_large_class"])
def test_numbers_beside_far_larger_ones_pass(rows: Rows, model: str) -> None:
    """Compiled code that rounds in another way is right."""
    row = rows[f"{model} aot_eager"]
    assert (row.status, row.reason) == (Status.PASS, "")


@pytest.mark.parametrize("model", ["adds_noise", "drops_out", "drops_out_in_a_rnn", "seeds_itself"])
def test_equal_random_numbers_are_compared_as_others(rows: Rows, model: str) -> None:
    """A compiler that draws as eager draws needs no indulgence."""
    row = rows[f"{model} aot_eager"]
    assert (row.status, row.reason) == (Status.PASS, "")
    assert not {Modifier.UNCHECKED, Modifier.TIES}.intersection(row.modifiers)


@pytest.mark.parametrize(
    "model",
    ["adds_noise", "adds_noise_to_a_convolution", "drops_out", "seeds_itself", "seldom_drops_blocks"],
)
def test_random_numbers_of_inductor_pass(drawing: Rows, model: str) -> None:
    """It is checked with eager's random numbers, and timed with its own."""
    row = drawing[f"{model} inductor"]
    assert (row.status, row.reason) == (Status.PASS, "")
    assert row.counted
    assert "fallback_random" in str(dict(row.facts)["random_numbers"])
    assert row.accuracy is not None
    assert row.accuracy.max_abs_error is not None
    assert row.accuracy.max_abs_error < 1e-3


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("doubles_its_noise", "out: its RMS, "),
        ("moves_its_noise", "out: its "),
        ("shares_its_noise", "out: its change of the mean over dimension 0, "),
        ("shares_its_mask", "out.1: its RMS distance from out.0, over 16 steps "),
        ("repeats_its_noise", "out: a step repeats the random numbers of the step before"),
        ("masks_gradients_otherwise", ""),
    ],
)
def test_wrong_random_numbers_of_the_timed_code_are_found(drawing: Rows, model: str, said: str) -> None:
    """With the random numbers of eager, the code is right."""
    row = drawing[f"{model} inductor"]
    assert (row.status, row.cause) == (Status.FAIL_ACCURACY, Cause.TOLERANCE)
    assert row.reason.startswith(said)
    assert drawing[f"{model} eager"].status is Status.PASS


def test_amplified_rounding_beside_random_numbers_passes(drawing: Rows) -> None:
    """The timed code draws its own random numbers, which do not change ``rest``."""
    row = drawing["amplifies_beside_draws inductor"]
    assert (row.status, row.reason) == (Status.PASS, "")
    assert "fallback_random" in str(dict(row.facts)["random_numbers"])


@pytest.mark.parametrize(
    "model", ["wrong_noisy_result", "wrong_noisy_convolution", "wrong_dropout", "wrong_after_seeding"]
)
def test_wrong_results_of_drawing_programs_are_found(drawing: Rows, model: str) -> None:
    """A result that is a few percent off is as wrong beside random numbers as without them."""
    row = drawing[f"{model} inductor"]
    assert (row.status, row.cause) == (Status.FAIL_ACCURACY, Cause.TOLERANCE)
    assert drawing[f"{model} eager"].status is Status.PASS


@pytest.mark.parametrize("configuration", ["eager", "aot_eager"])
@pytest.mark.parametrize("model", ["has_a_nan_score", "has_small_types", "has_tensor_classes"])
def test_odd_values_are_compared(rows: Rows, model: str, configuration: str) -> None:
    """One is a NaN in float64 as well; dtypes and classes of other programs have few operators."""
    row = rows[f"{model} {configuration}"]
    assert (row.status, row.reason) == (Status.PASS, "")


def test_eager_may_repeat_itself_but_for_rounding(rows: Rows) -> None:
    """Sums in another order are not a fault, in the check and in timed steps; the row names the results."""
    for configuration in ("eager", "aot_eager"):
        row = rows[f"sorts_sums {configuration}"]
        assert (row.status, row.reason) == (Status.PASS, "")
        assert "rounding decides out.places in" in str(dict(row.facts)["ties"])
        row = rows[f"sums_in_any_order {configuration}"]
        assert (row.status, row.reason) == (Status.PASS, "")
        assert "rounded" in dict(row.facts)
        assert dict(row.facts)["timed_results"]


@pytest.mark.parametrize("model", ["sums_of_noise", "noise_as_small_as_rounding", "sorts_drawn_places"])
def test_numbers_that_no_seed_reaches_are_named(rows: Rows, model: str) -> None:
    """Noise is as large in float64 as in float32, and rounding is smaller."""
    row = rows[f"{model} eager"]
    assert (row.status, row.cause) == (Status.FAIL_ACCURACY, Cause.NONDETERMINISTIC_EAGER)
    assert row.reason.startswith("two seeded eager runs differ: ")
