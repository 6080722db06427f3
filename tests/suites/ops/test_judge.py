"""The verdict on one operator, dtype and variant, on the host with real entries of PyTorch's database."""

from __future__ import annotations

import contextlib
import io
import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

with warnings.catch_warnings():  # it says that an optional package is missing
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_device_type import tol, toleranceOverride
    from torch.testing._internal.opinfo.core import DecorateInfo, OpInfo, SampleInput

from torchgauge.suites.ops.database import draws_random_numbers, operators  # noqa: E402
from torchgauge.suites.ops.judge import judge  # noqa: E402
from torchgauge.suites.ops.script import Shown, script  # noqa: E402
from torchgauge.suites.ops.tried import depends_on_seed, tried_samples  # noqa: E402
from torchgauge.suites.ops.upstream import VARIANTS, says  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
CPU = torch.device("cpu")


def entry(function, *, name="ours", samples=None, decorators=(), dtypes=(torch.float32,), **more) -> OpInfo:
    """An entry of a database of our own."""

    def two(op, device, dtype, requires_grad, **_):
        for size in (2, 3):
            yield SampleInput(torch.ones(size, device=device, dtype=dtype, requires_grad=requires_grad))

    return OpInfo(
        name,
        op=function,
        dtypes=set(dtypes),
        sample_inputs_func=samples or two,
        decorators=decorators,
        supports_out=False,
        **more,
    )


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_the_host_agrees_with_float64(variant: str, dtype) -> None:
    """Addition passes in every variant, and its samples were really compared."""
    found = judge(operators()["add"], dtype, variant, CPU)
    assert (found.status, found.reason) == ("pass", "")
    assert found.judged > 0


def test_integers_are_exact_and_narrow_dtypes_need_not_beat_the_host() -> None:
    """A dtype without a wider one is compared with itself; a sample beyond float64's tolerance is counted."""
    assert judge(operators()["add"], torch.int32, "forward", CPU).status == "pass"
    narrow = entry(lambda x: x / 3 if x.dtype == torch.float64 else (x / 3).bfloat16().float())
    found = judge(narrow, torch.float32, "forward", CPU)
    assert (found.status, found.beyond_wide) == ("pass", 2)


def test_a_wrong_result_names_sample_and_numbers() -> None:
    """The device's call is the first of each sample: what it says must be what the host says afterwards."""
    calls: list[int] = []

    def wrong_on_device(x):
        calls.append(1)
        return x + (5 if len(calls) == 2 + 1 else 0)

    found = judge(entry(wrong_on_device), torch.float32, "forward", CPU)
    assert (found.status, found.failed_at and found.failed_at.index, found.judged) == ("fail_accuracy", 1, 1)
    assert "largest difference 5" in found.reason
    assert found.inputs == "float32[3]"


EQUAL = torch.tensor([[3.0, 1.0, 3.0, 1.0, 2.0, 1.0, 3.0, 2.0], [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0]])
"""Rows of values that occur several times."""


def on_device(name: str, device, x, words, *, variant: str = "forward"):
    """Judge an operator whose first call is ``device(x, *words)``; all further ones are PyTorch's own."""
    own, calls = getattr(torch, name), []

    def called(*given):
        calls.append(1)
        return (device if len(calls) == 1 else own)(*given)

    def one(op, place, dtype, requires_grad, **_):
        yield SampleInput(x.to(dtype).clone().requires_grad_(requires_grad), args=words)

    made = entry(called, name=name, samples=one, dtypes=(x.dtype,), supports_autograd=variant == "backward")
    return judge(made, x.dtype, variant, CPU)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sort", (1,)),
        ("sort", ()),
        ("topk", (3, 1)),
        ("argsort", (-1,)),
        ("kthvalue", (4, 1)),
        ("kthvalue", (4, 1, True)),
        ("median", (1,)),
        ("mode", (1,)),
        ("max", (1,)),
        ("min", (1, True)),
        ("argmax", (1,)),
        ("argmin", (1,)),
        ("argmax", ()),
    ],
)
def test_any_place_of_an_equal_value_is_right(name: str, words: tuple[int, ...]) -> None:
    """A device may search backwards; the index of another value is wrong."""
    own = getattr(torch, name)
    size = EQUAL.shape[1] if words or name != "argmax" else EQUAL.numel()

    def backwards(x, *given):
        shown = own(x.flip(1) if size == EQUAL.shape[1] else x.flatten().flip(0), *given)
        return (shown[0], size - 1 - shown[1]) if isinstance(shown, tuple) else size - 1 - shown

    def elsewhere(x, *given):
        shown = backwards(x, *given)
        return (shown[0], (shown[1] + 3) % size) if isinstance(shown, tuple) else (shown + 3) % size

    for dtype in (torch.bfloat16, torch.int32):
        found = on_device(name, backwards, EQUAL.to(dtype), words)
        assert (found.status, found.reason, found.judged) == ("pass", "", 1)
        found = on_device(name, elsewhere, EQUAL.to(dtype), words)
        assert found.status == "fail_accuracy"
        assert "torch.int64" in found.reason or "values differ" in found.reason


def test_places_of_equal_values_are_all_different() -> None:
    """A sort that returns one index twice has lost another one."""

    def twice(x, dim):
        values, places = x.sort(dim)
        return values, places.where(values != 1.0, places[:, :1])

    found = on_device("sort", twice, EQUAL, (1,))
    assert found.status == "fail_accuracy"
    assert "[1]: " in found.reason


def test_a_stable_order_of_equal_values_is_a_promise() -> None:
    """Upstream's ``stable=True`` allows one order only."""

    def unstable(x, **_):
        values, places = x.flip(1).sort()
        return values, EQUAL.shape[1] - 1 - places

    calls: list[int] = []

    def called(x, **more):
        calls.append(1)
        return unstable(x) if len(calls) == 1 else x.sort(**more)

    def one(op, place, dtype, requires_grad, **_):
        yield SampleInput(EQUAL.clone(), kwargs={"stable": True})

    found = judge(entry(called, name="sort", samples=one), torch.float32, "forward", CPU)
    assert found.status == "fail_accuracy"


def test_any_of_equal_values_may_have_the_gradient() -> None:
    """The order decides which value has the gradient, so it is judged only without equal values."""

    def backwards(x, *given):
        shown = x.flip(1).sort(*given)
        return shown[0], 7 - shown[1]

    found = on_device("sort", backwards, EQUAL, (1,), variant="backward")
    assert found.status == "skipped"
    assert "equal values" in found.reason
    apart = torch.arange(16.0).reshape(2, 8)
    found = on_device("sort", lambda x, d: (2 * x).sort(d), apart, (1,), variant="backward")
    assert found.status == "fail_accuracy"


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_partial_results_may_be_rounded(name: str) -> None:
    """A device may round partial results to the dtype; a wrong term is found."""
    drawn = torch.randn(4, 64, generator=torch.Generator().manual_seed(5))
    x = (drawn if name == "cumsum" else 1.0 + 0.05 * drawn).bfloat16()
    step = torch.add if name == "cumsum" else torch.mul

    def rounded(x, dim):
        columns = [x[:, 0]]
        for column in x.unbind(dim)[1:]:
            columns.append(step(columns[-1], column))
        return torch.stack(columns, dim)

    def wrong(x, dim):
        keeps = x.clone()
        keeps[:, 20] = 0.0 if name == "cumsum" else 1.5
        return rounded(keeps, dim)

    assert on_device(name, rounded, x, (1,)).status == "pass"
    assert on_device(name, wrong, x, (1,)).status == "fail_accuracy"


def test_what_the_operator_raises_is_an_error_of_its_sample() -> None:
    """The exception is kept for the failure record."""

    def refuses(x):
        raise RuntimeError("no such kernel")

    found = judge(entry(refuses), torch.float32, "forward", CPU)
    assert (found.status, found.failed_at and found.failed_at.index) == ("error", 0)
    assert "no such kernel" in found.reason
    assert isinstance(found.error, RuntimeError)


def test_a_sample_generator_that_raises_is_an_error_with_its_reason() -> None:
    """Samples before it were judged, and no sample is blamed."""

    def broken(op, device, dtype, requires_grad, **_):
        yield SampleInput(torch.ones(1))
        raise ValueError("cannot make more")

    found = judge(entry(torch.abs, samples=broken), torch.float32, "forward", CPU)
    assert (found.status, found.judged, found.failed_at) == ("error", 1, None)
    assert found.reason == "the sample generator raised ValueError: cannot make more after sample 0"


def test_a_dtype_that_upstream_does_not_list_is_unsupported() -> None:
    """Nothing is tried."""
    found = judge(entry(torch.abs), torch.int8, "forward", CPU)
    assert (found.status, found.judged) == ("unsupported", 0)
    assert "PyTorch's OpInfo lists no int8 for ours" in found.reason


def test_upstreams_skips_expected_failures_and_tolerances_hold() -> None:
    """A skip is carried over with its reason, an expected failure is no failure, a tolerance is used."""
    import unittest

    def on(test: str, decorator, **more) -> DecorateInfo:
        return DecorateInfo(decorator, "TestCommon", test, **more)

    skipped = entry(torch.abs, decorators=(on("test_compare_cpu", unittest.skip("too slow")),))
    found = judge(skipped, torch.float32, "forward", CPU)
    assert found.status == "skipped"
    assert found.reason == "PyTorch's own test is skipped: TestCommon.test_compare_cpu: too slow"

    other = entry(torch.abs, decorators=(on("test_compare_cpu", unittest.skip("x"), device_type="cuda"),))
    assert judge(other, torch.float32, "forward", CPU).status == "pass"

    def refuses(x):
        raise RuntimeError("known")

    expected = entry(refuses, decorators=(on("test_compare_cpu", unittest.expectedFailure),))
    found = judge(expected, torch.float32, "forward", CPU)
    assert (found.status, found.upstream) == ("skipped", "xfail")
    passing = entry(torch.abs, decorators=(on("test_compare_cpu", unittest.expectedFailure),))
    assert judge(passing, torch.float32, "forward", CPU).upstream == "xfail, passes"

    loose = toleranceOverride({torch.float32: tol(atol=0.5, rtol=0.25)})
    tolerances = says(
        entry(torch.abs, decorators=(on("test_compare_cpu", loose),)), "forward", CPU, torch.float32
    )
    assert (tolerances.atol, tolerances.rtol) == (0.5, 0.25)


def test_random_operators_are_not_judged() -> None:
    """Two seeds give two results on the host, also where the entry seeds for itself."""
    for name in ("randn", "nn.functional.alpha_dropout"):
        op = operators()[name]
        drawn = [depends_on_seed(op, s.sample) for s in tried_samples(op, torch.float32, "forward", 8)]
        assert any(drawn), name
    assert draws_random_numbers(operators()["randn"])
    found = judge(operators()["randn"], torch.float32, "forward", CPU)
    assert found.status == "skipped"
    assert "two seeds give two results" in found.reason


def test_empty_inputs_are_cut_where_there_are_none() -> None:
    """Every sample that is tried has a tensor without elements."""
    made = list(tried_samples(operators()["mul"], torch.float32, "empty", 8))
    assert made
    assert all(
        sample.input.numel() == 0 or 0 in sample.args[0].shape for sample in (each.sample for each in made)
    )


def test_out_must_be_the_tensor_that_was_given() -> None:
    """An operator that leaves ``out=`` alone is wrong, whatever it returns."""
    found = judge(entry(lambda x, out=None: x + 1), torch.float32, "out", CPU)
    assert found.status == "fail_accuracy"
    assert "is not the tensor that was given as out=" in found.reason


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_script_of_a_case_runs_alone(variant: str) -> None:
    """It makes the sample, compares and says that the host equals itself."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(script(Shown("add", "float32", variant, "cpu", 1)), {})
    assert said.getvalue().endswith("equal\n")
