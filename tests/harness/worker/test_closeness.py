"""Each tensor is judged on its own scale: faults that a tolerance hides are found, rounding is not accused.

The pairs have three tensors of one kind, as the gradients of a small network: what is planted in one is
judged by what the others show of rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from torchgauge.records import Cause, Tolerance

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
SMALL = 1e-4
LOOSE = Tolerance(1e-2, 1e-2, 2.0, "test")
FAULTS = {"zeroed": 0.0, "negated": -1.0, "a tenth more": 1.1}


def gradients(noise: float, *, seed: int = 0, size: int = 2000) -> tuple[dict[str, Any], dict[str, Any]]:
    """Three small gradients in float64, and with relative rounding errors of ``noise`` from ``seed``."""
    generator = torch.Generator().manual_seed(99)
    rounding = torch.Generator().manual_seed(seed)
    truth, rounded = {}, {}
    for name in ("first", "second", "third"):
        exact = SMALL * torch.randn(size, generator=generator, dtype=torch.float64)
        error = torch.randn(size, generator=rounding, dtype=torch.float64)
        truth[f"iteration0.grad.{name}"] = exact
        rounded[f"iteration0.grad.{name}"] = (exact + noise * SMALL * error).float()
    return truth, rounded


def verdict(eager: Any, found: Any, truth: Any = None) -> Any:
    """Ours, at the tolerance of training."""
    from torchgauge.harness.worker.accuracy import compare

    return compare(eager, found, truth, LOOSE)


def seeded() -> Any:
    """Return a generator in its first state."""
    return torch.Generator().manual_seed(0)


def planted(result: dict[str, Any], factor: float) -> dict[str, Any]:
    """``result`` with its second tensor times ``factor``."""
    return result | {"iteration0.grad.second": factor * result["iteration0.grad.second"]}


@pytest.mark.parametrize("factor", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("reference", ["with float64", "without"])
def test_a_fault_in_a_small_gradient_is_found(factor: float, reference: str) -> None:
    """All values lie below the tolerance; until 2026-11 each of these passed, as by PyTorch's rule."""
    truth, eager = gradients(1e-6)
    found = verdict(eager, planted(eager, factor), truth if reference == "with float64" else None)
    assert found.cause is Cause.TOLERANCE
    assert [text.partition(":")[0] for text in found.failed] == ["iteration0.grad.second"]


@pytest.mark.parametrize("factor", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_found_beside_the_rounding_of_another_implementation(factor: float) -> None:
    """Errors of five per cent, independent of eager's: a factor shows in the slope, not in the RMSE."""
    truth, eager = gradients(0.05)
    _, other = gradients(0.05, seed=1)
    assert verdict(eager, other, truth).ok
    assert len(verdict(eager, planted(other, factor), truth).failed) == 1


@pytest.mark.parametrize("factor", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_found_in_noise_where_all_else_is_the_same(factor: float) -> None:
    """Half of each gradient is rounding, but the same kernels round alike, so nothing excuses one tensor."""
    truth, eager = gradients(0.5)
    assert verdict(eager, eager, truth).ok
    assert len(verdict(eager, planted(eager, factor), truth).failed) == 1


LOST = {
    "row": ((1000, 40), (999,), 0.0),
    "column": ((40, 1000), (slice(None), 1), 0.0),
    "channel": ((4, 1000, 10), (slice(None), 7), 0.0),
    "element": ((2000,), (7,), -1.0),
}


def shaped(sides: tuple[dict[str, Any], dict[str, Any]], shape: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return both dictionaries with tensors of another shape."""
    return [{path: one.reshape(shape) for path, one in side.items()} for side in sides]


def rejudged(truth: Any, noise: float, shape: tuple[int, ...], change: Callable[[Any], Any]) -> list[Any]:
    """Return the verdicts on a correct result and on a changed one, where eager can run again."""
    from torchgauge.harness.worker.accuracy import compare
    from torchgauge.harness.worker.rounding import EagerResults

    size, verdicts = math.prod(shape), []
    exact, eager = shaped(gradients(noise, size=size), shape)
    fp64 = exact if truth else None
    for changed in (False, True):
        found = shaped(gradients(noise, seed=1, size=size), shape)[1]
        if changed:
            change(found["iteration0.grad.second"])
        again = EagerResults(
            lambda number: shaped(gradients(noise, seed=number + 1, size=size), shape)[1], eager, lambda: fp64
        )
        verdicts.append(compare(eager, found, fp64, LOOSE, eager=again))
    return verdicts


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 0.02])
@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize(("shape", "lost", "factor"), LOST.values(), ids=LOST)
def test_a_lost_slice_is_found(shape: Any, lost: Any, factor: float, truth: bool, noise: float) -> None:
    """One zeroed row of 1000 changes a tensor by 3 % of its RMS, and passes as a whole."""
    right, wrong = rejudged(truth, noise, shape, lambda tensor: tensor[lost].mul_(factor))
    assert right.ok
    assert wrong.detail.startswith("iteration0.grad.second: index ")


@pytest.mark.parametrize("noise", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize("shape", [(2000,), (1000, 40)])
def test_another_rounding_passes_in_each_slice(shape: Any, truth: bool, noise: float) -> None:
    """Eager that runs again with as much rounding explains what single slices and elements differ by."""
    assert rejudged(truth, noise, shape, lambda tensor: None)[0].ok


def test_slices_that_ought_to_be_zero_accuse_nobody() -> None:
    """A gradient is rounding alone, as that of a bias before a batch norm, or a row of one is."""
    from torchgauge.harness.worker.accuracy import compare
    from torchgauge.harness.worker.rounding import EagerResults

    truth, eager = gradients(1e-6)
    found = {path: one.clone() for path, one in eager.items()}
    for side, sign in ((eager, 1.0), (found, -1.0)):
        side["iteration0.grad.first"] = sign * 1e-7 * SMALL * torch.randn(2000, generator=seeded())
        side["iteration0.grad.third"] = side["iteration0.grad.third"].reshape(40, 50).clone()
        side["iteration0.grad.third"][7] = sign * 1e-3 * SMALL
    truth["iteration0.grad.first"].zero_()
    truth["iteration0.grad.third"] = truth["iteration0.grad.third"].reshape(40, 50)
    for fp64 in (truth, None):
        again = EagerResults(lambda _: eager, eager, lambda fp64=fp64: fp64)
        assert compare(eager, found, fp64, LOOSE, eager=again).ok


@pytest.mark.parametrize(("path", "ok"), [("state.update.a", True), ("state.gradient.a", False)])
def test_an_update_that_rounding_reverses_is_no_odd_slice(path: str, ok: bool) -> None:
    """The first update by Adam is the learning rate, with the sign of a gradient that is small here."""
    from torchgauge.harness.worker.accuracy import compare
    from torchgauge.harness.worker.closeness import TIGHT
    from torchgauge.harness.worker.rounding import EagerResults

    eager = {path: SMALL * torch.randn(2000, generator=seeded()).sign()}
    found = {path: eager[path].clone()}
    found[path][163] *= -1.0
    again = EagerResults(lambda _: eager, eager, near=TIGHT)
    assert compare(eager, found, None, LOOSE, eager=again).ok is ok


@pytest.mark.parametrize(("path", "ok"), [("state.update.a", True), ("out", False)])
def test_one_wrong_element_in_each_row_is_found(path: str, ok: bool) -> None:
    """They are 2 % of the elements, and no row is far off. An optimizer may reverse some of its updates."""
    from torchgauge.harness.worker.accuracy import compare
    from torchgauge.harness.worker.closeness import TIGHT
    from torchgauge.harness.worker.rounding import EagerResults

    eager = {path: SMALL * torch.randn(50, 50, generator=seeded()).sign()}
    found = {path: eager[path] * (1.0 + 0.3 * torch.eye(50))}
    again = EagerResults(lambda _: eager, eager, near=TIGHT)
    assert compare(eager, found, None, LOOSE, eager=again).ok is ok


@pytest.mark.parametrize(
    ("factor", "noise", "ok"),
    [
        (1.02, 1e-4, False),
        (1.02, 0.01, True),
        (1.002, 1e-4, False),
        (1.002, 0.001, True),
        (1.00005, 1e-6, True),
    ],
)
@pytest.mark.parametrize("truth", [True, False])
def test_a_factor_near_one_is_found_if_rounding_changes_less(
    factor: float, noise: float, ok: bool, truth: bool
) -> None:
    """A learning rate that is slightly off shows in all elements of the updates; other runs show noise."""
    from torchgauge.harness.worker.accuracy import compare
    from torchgauge.harness.worker.closeness import TIGHT
    from torchgauge.harness.worker.rounding import EagerResults

    def fail(number: int) -> Any:
        raise TimeoutError("it took too long")

    def run(number: int) -> dict[str, torch.Tensor]:
        other = torch.randn((), generator=torch.Generator().manual_seed(number))
        return {"state.update.a": update * (1.0 + noise * other)}

    update = SMALL * torch.randn(2000, generator=seeded())
    eager, found = {"state.update.a": update}, {"state.update.a": factor * update}
    fp64 = {"state.update.a": update.double()} if truth else None
    verdict = compare(eager, found, fp64, LOOSE, eager=EagerResults(run, eager, near=TIGHT))
    assert verdict.ok is ok
    late = EagerResults(fail, eager, near=TIGHT)
    assert compare(eager, found, fp64, LOOSE, eager=late).ok, "no run ends"


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize(("size", "ok"), [(1e-6, True), (1.0, False)])
def test_zeros_of_eager_are_judged_by_the_size_of_others(size: float, ok: bool, truth: bool) -> None:
    """The limit of 0.1 % has no size to be relative to."""
    from torchgauge.harness.worker.accuracy import compare
    from torchgauge.harness.worker.closeness import TIGHT
    from torchgauge.harness.worker.rounding import EagerResults

    values = SMALL * torch.randn(2000, generator=seeded())
    eager = {"iteration0.grad.zero": torch.zeros(2000), "iteration0.grad.other": values}
    found = eager | {"iteration0.grad.zero": size * values}
    fp64 = {path: leaf.double() for path, leaf in eager.items()} if truth else None
    again = EagerResults(lambda _: eager, eager, near=TIGHT)
    assert compare(eager, found, fp64, LOOSE, eager=again).ok is ok


@pytest.mark.parametrize(("error", "ok"), [(2e-2, True), (0.2, False)])
def test_one_wrong_element_is_an_outlier(error: float, ok: bool) -> None:
    """The RMSE of a million elements hides it; it fails beyond ten times the tolerance of 1e-2."""
    from torchgauge.harness.worker.accuracy import compare
    from torchgauge.harness.worker.rounding import EagerResults

    truth = {"out": torch.ones(1000, 1000, dtype=torch.float64)}
    eager = {"out": truth["out"].float()}
    found = {"out": eager["out"].clone()}
    found["out"][7, 7] += error
    again = EagerResults(lambda _: eager, eager, lambda: truth)
    assert compare(eager, found, truth, LOOSE, eager=again).ok is ok
    none = EagerResults(lambda _: {}, eager, lambda: truth)
    assert compare(eager, found, truth, LOOSE, eager=none).ok, "no run could be made"


@pytest.mark.parametrize("noise", [1e-6, 0.05, 0.5, 2.0])
def test_another_rounding_passes(noise: float) -> None:
    """Two implementations that are equally far from float64 are equally right, however far that is."""
    truth, eager = gradients(noise)
    for seed in range(1, 20):
        assert verdict(eager, gradients(noise, seed=seed)[1], truth).ok


def test_eager_that_was_lucky_in_one_tensor_accuses_nobody() -> None:
    """The noise of a tensor is at least that of its kind: one that hit float64 by chance says nothing."""
    truth, eager = gradients(0.3)
    lucky = eager | {"iteration0.grad.second": truth["iteration0.grad.second"].float()}
    assert verdict(lucky, gradients(0.3, seed=1)[1], truth).ok


def test_what_is_nearer_to_float64_than_eager_is_right() -> None:
    """Eager loses a tenth of a sum in low precision; the compiler does not, and differs in nothing else."""
    truth, eager = gradients(1e-6)
    worse = planted(eager, 0.9)
    assert not verdict(eager, worse, truth).ok
    assert verdict(worse, eager, truth).ok


@pytest.mark.parametrize("factor", FAULTS.values(), ids=FAULTS)
def test_where_float64_says_zero_there_is_nothing_to_find(factor: float) -> None:
    """The gradient of a bias before a batch norm is zero; eager's is rounding, and no other is more wrong."""
    truth, eager = gradients(1e-6)
    truth |= {"iteration0.grad.second": 1e-12 * truth["iteration0.grad.second"]}
    eager = planted(eager, 1e-6)
    assert verdict(eager, planted(eager, factor), truth).ok
    assert verdict(eager, planted(eager, factor)).ok, "without float64, by its size beside the others"


def test_a_gradient_that_is_exactly_zero_passes() -> None:
    """A parameter that was not used has zeros everywhere, and an empty tensor has nothing."""
    truth, eager = gradients(1e-6)
    zero = {"iteration0.grad.unused": torch.zeros(5), "iteration0.grad.none": torch.empty(0)}
    wide = {path: value.double() for path, value in zero.items()}
    assert verdict(eager | zero, eager | zero, truth | wide).ok
    assert not verdict(eager | zero, planted(eager, 0.0) | zero, truth | wide).ok


def test_a_step_that_is_rounded_away_is_no_fault() -> None:
    """Beside its parameter most of a small step is lost: eager moved a few elements, another moves none."""
    truth, eager = gradients(2.0)
    _, other = gradients(2.0, seed=1)
    few = torch.zeros(2000)
    few[:3] = eager["iteration0.grad.second"][:3]
    lost = eager | {"iteration0.grad.second": few}
    assert verdict(lost, other | {"iteration0.grad.second": torch.zeros(2000)}, truth).ok
    assert not verdict(eager, planted(other, 0.0), truth).ok, "eager moved them all"


def test_two_eager_runs_are_held_to_the_tolerance_alone() -> None:
    """A device may repeat itself but for the rounding of small gradients: its two runs must not accuse it."""
    from torchgauge.harness.worker.accuracy import compare

    _, eager = gradients(1e-6)
    again = planted(eager, 1.1)
    assert not compare(eager, again, None, LOOSE).ok
    assert compare(eager, again, None, LOOSE, own_scale=False).ok
    assert not compare(eager, planted(eager, 1000.0), None, LOOSE, own_scale=False).ok


@pytest.mark.parametrize("factor", [*FAULTS.values(), 2.0], ids=[*FAULTS, "twice as much"])
@pytest.mark.parametrize("noise", [1e-6, 0.05])
def test_a_fault_of_all_tensors_excuses_none_without_float64(factor: float, noise: float) -> None:
    """The median distance from eager is that of the fault, so only what no factor explains may excuse."""
    _, eager = gradients(noise)
    _, other = gradients(noise, seed=1)
    assert verdict(eager, other).ok
    assert len(verdict(eager, {path: factor * value for path, value in other.items()}).failed) == len(other)


@pytest.mark.parametrize("noise", [1e-6, 0.05, 0.5, 2.0])
def test_another_rounding_passes_without_float64(noise: float) -> None:
    """Also in a tensor of a single element, whose scatter says nothing."""
    for seed in range(1, 20):
        eager, other = gradients(noise)[1], gradients(noise, seed=seed)[1]
        bias = {"iteration0.grad.bias": torch.tensor([SMALL])}
        off = {"iteration0.grad.bias": torch.tensor([SMALL * (1.0 + noise / 2)])}
        assert verdict(eager | bias, other | off).ok


@pytest.mark.parametrize("reference", ["with float64", "without"])
@pytest.mark.parametrize("rounding", [0.0, 1e-9])
def test_a_gradient_that_ought_to_be_zero_may_not_have_the_size_of_others(
    reference: str, rounding: float
) -> None:
    """A parameter that was not used, or a bias before a batch norm: rounding is right, a gradient is not."""
    truth, eager = gradients(1e-6)
    path, zero = "iteration0.grad.unused", torch.zeros(5)
    truth[path], eager[path] = zero.double(), zero + rounding
    wide = truth if reference == "with float64" else None
    assert verdict(eager, eager | {path: zero - 5 * rounding}, wide).ok
    assert verdict(eager, eager | {path: zero + SMALL}, wide).failed == [
        f"{path}: an RMS of 0.0001 instead of zero"
    ]


def test_one_chaotic_iteration_beside_a_calm_one_accuses_nobody_without_float64() -> None:
    """What correct implementations differ by is read from the tensors of the same kind."""
    (_, calm), (_, other) = gradients(1e-6), gradients(1e-6, seed=1)
    (_, wild), (_, found) = gradients(0.5), gradients(0.5, seed=1)
    second = {path.replace("iteration0", "iteration1"): value for path, value in wild.items()}
    result = {path.replace("iteration0", "iteration1"): value for path, value in found.items()}
    loss = {f"iteration0.buffer.{number}": torch.ones(3) for number in range(3)}
    assert verdict(calm | second | loss, other | result | loss).ok
    assert not verdict(calm | second | loss, planted(other, 1.1) | result | loss).ok


def test_one_tensor_that_correct_implementations_turn_is_not_accused_without_float64() -> None:
    """The gradient behind a gate of a few numbers is off by a factor: seen in `regnety_002`, autocast."""
    _, eager = gradients(0.1)
    assert verdict(eager, planted(gradients(0.1, seed=1)[1], 1.3)).ok


def test_an_exception_widens_every_bound() -> None:
    """A model with a larger multiplier, whose reason is in the data file, may differ by more."""
    from torchgauge.harness.worker.accuracy import compare

    truth, eager = gradients(1e-6)
    wrong = planted(eager, 1.1)
    for reference in (truth, None):
        assert not compare(eager, wrong, reference, LOOSE).ok
        assert compare(eager, wrong, reference, Tolerance(1e-2, 1e-2, 9.0, "test")).ok


def test_eager_on_the_host_is_held_against_float64() -> None:
    """Rounding is far from the bound, chaos in many tensors of a kind explains itself, nonsense does not."""
    from torchgauge.harness.worker.closeness import nonsense

    for noise in (1e-6, 0.05, 0.4):
        truth, eager = gradients(noise)
        assert nonsense(verdict(eager, eager, truth).tensors) == ""
    truth, eager = gradients(1e-6)
    for factor in (0.0, -1.0, 2.0):
        assert "iteration0.grad.second" in nonsense(
            verdict(planted(eager, factor), planted(eager, factor), truth).tensors
        )


def test_a_lone_output_has_no_chaos_to_hide_in() -> None:
    """Where a kind has one tensor, such as the logits, its own error does not raise the bound."""
    from torchgauge.harness.worker.closeness import nonsense

    truth = {"out": torch.ones(10, dtype=torch.float64)}
    for factor, odd in ((0.9, False), (0.0, True), (-1.0, True)):
        eager = {"out": torch.full((10,), factor)}
        assert bool(nonsense(verdict(eager, eager, truth).tensors)) is odd


@pytest.mark.parametrize(("loss", "odd"), [(1e-8, False), (1e-2, True)])
def test_a_loss_of_nothing_is_a_difference_of_rounded_numbers(loss: float, odd: bool) -> None:
    """A network that knows its one batch by heart: the logarithm of nearly one."""
    from torchgauge.harness.worker.closeness import nonsense

    path = "iteration1.loss"
    found = verdict(
        {path: torch.zeros(())}, {path: torch.zeros(())}, {path: torch.tensor(loss, dtype=torch.float64)}
    )
    assert bool(nonsense(found.tensors)) is odd


@pytest.mark.parametrize(("step", "odd"), [(5e-9, False), (5e-8, False), (1e-5, True)])
def test_a_step_below_the_last_place_of_its_parameter_is_lost(step: float, odd: bool) -> None:
    """The weights of a normalisation are ones: float32 keeps nothing of a small step, or twice of it."""
    from torchgauge.harness.worker.closeness import nonsense

    path = "iteration0.change.norm.weight"
    weight = torch.ones(64)
    lost = {path: torch.zeros(64) if odd else (weight - step) - weight}
    truth = {path: torch.full((64,), -step).double()}
    assert bool(nonsense(verdict(lost, lost, truth).tensors)) is odd


@pytest.mark.parametrize("huge", [1e60, 1e200])
@pytest.mark.parametrize("wrong", [1.0, 1.1])
def test_what_overflows_in_float32_alone_hides_nothing(wrong: float, huge: float) -> None:
    """The squares of the larger number exceed float64 as well."""
    truth = torch.randn(100, generator=seeded(), dtype=torch.float64)
    truth[7] = huge
    eager = truth.float()
    assert not eager.isfinite().all()
    assert verdict({"out": eager}, {"out": eager * wrong}, {"out": truth}).ok is (wrong == 1.0)
