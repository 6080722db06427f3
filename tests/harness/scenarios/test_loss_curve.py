"""Fifty losses say whether an optimizer trains as AdamW does: what is wrong or saves nothing is found."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from torchgauge.errors import UnobservableError
from torchgauge.records import Cause, Modifier, Result, Status, Tolerance

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PLUGIN = Path(__file__).parents[2] / "backends_plugin"
BAND = Tolerance(0.05, 0.05, 2.0, "a band")
CURVE = torch.linspace(5.0, 3.0, 50, dtype=torch.float64)
needs_torchao = pytest.mark.skipif(importlib.util.find_spec("torchao") is None, reason="needs torchao")


def verdict(found: Any, expected: Any = CURVE) -> Any:
    """What is said of ``found``."""
    from torchgauge.harness.scenarios.loss_curve_steps import judge

    same = torch.zeros(50, dtype=torch.float64)
    return judge({"loss": expected, "batches": same}, {"loss": found, "batches": same}, None, BAND)


def test_a_curve_within_the_band_is_right() -> None:
    """On either side, and by any course."""
    wave = 1.0 + 0.049 * torch.sin(torch.arange(50, dtype=torch.float64))  # which begins with 0
    assert verdict(CURVE * wave).ok
    assert verdict(CURVE).max_abs_error == 0.0


def test_one_loss_outside_of_the_band_is_wrong() -> None:
    """The reason names the step, both losses and the band."""
    found = CURVE.clone()
    found[30] *= 1.06
    said = verdict(found)
    assert (said.ok, said.cause) == (False, Cause.TOLERANCE)
    assert said.detail == "the loss of step 31 is 4.002 instead of 3.776, 6.0% off; the tolerance is 5.0%"


def test_what_diverges_is_not_finite() -> None:
    """The reason says when."""
    found = CURVE.clone()
    found[20:] = torch.inf
    said = verdict(found)
    assert (said.ok, said.cause) == (False, Cause.NONFINITE)
    assert "after 20 steps" in said.detail


def test_a_curve_that_begins_elsewhere_is_wrong() -> None:
    """Within the band, and of another state or batch: nothing was updated before the first loss."""
    found = CURVE.clone()
    found[0] *= 1.01
    said = verdict(found)
    assert (said.ok, said.cause) == (False, Cause.TOLERANCE)
    assert said.detail.startswith("the first loss, before any update, is 1.00% off")


def test_a_curve_that_stays_flat_is_wrong() -> None:
    """It begins where eager's does, and the band is left when that has fallen."""
    assert verdict(torch.full_like(CURVE, 5.0)).detail.startswith("the loss of step 50 is 5 instead of 3")


def test_a_reference_that_learns_nothing_tells_nothing() -> None:
    """Every optimizer would be as near to it as that of the right rate."""
    with pytest.raises(UnobservableError, match="to distinguish optimizers"):
        verdict(CURVE, torch.full_like(CURVE, 4.0))


@pytest.mark.parametrize(
    ("words", "factor"), [({"maximize": True}, 1.0), ({}, 0.0), ({}, 0.5), ({}, 0.8), ({}, 1.25), ({}, 2.0)]
)
def test_the_band_finds_a_wrong_sign_and_a_wrong_rate(words: dict[str, Any], factor: float) -> None:
    """On the suite's own model: also a rate that is wrong by a fifth, and bfloat16 is inside."""
    assert not _trained(words, factor, torch.float32).ok


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small products on several threads of a busy machine wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def _built(seed: int = 0) -> tuple[Any, Any]:
    """The suite's first model as it is built with ``seed``, and its workload."""
    from torchgauge.records import Workload
    from torchgauge.suites.lowbit.models import build

    sizes = (("blocks", 2), ("heads", 4), ("seq", 64), ("width", 64))
    workload = Workload("lowbit", "optim-bytes2", mode="loss_curve", batch=8, shape=sizes, seed=seed)
    return build(workload, {}), workload


def _subject(dtype: Any, *, seed: int = 0) -> Any:
    from torchgauge.harness.worker.reference import SeedWatch
    from torchgauge.harness.worker.subjects import make_subject

    built, workload = _built(seed)
    return make_subject(built, workload, SeedWatch(torch.manual_seed), "cpu", dtype=dtype, apart=True)


@cache
def _right(dtype: Any) -> Any:
    """What AdamW shows in ``dtype``."""
    from torchgauge.harness.scenarios.loss_curve_steps import observe

    return observe(_subject(dtype))


def _said_of(subject: Any, dtype: Any) -> Any:
    """What is said of ``subject`` beside AdamW in ``dtype``."""
    from torchgauge.harness.scenarios.loss_curve_steps import judge, observe

    return judge(_right(dtype), observe(subject), None, BAND)


def _trained(words: dict[str, Any], factor: float, dtype: Any) -> Any:
    """What is said of AdamW with other ``words``, its rate times ``factor`` and the model in ``dtype``."""

    class Odd:
        """The module with an optimizer of its own."""

        def __init__(self, module: Any) -> None:
            self.module = module

        def __call__(self, *args: Any) -> Any:
            return self.module(*args)

        def make_optimizer(self, parameters: Any, rate: float) -> Any:
            return torch.optim.AdamW(parameters, lr=rate * factor, **words)

    subject = _subject(dtype)
    subject.call = Odd(subject.module)
    return _said_of(subject, torch.float32)


@pytest.mark.parametrize("seed", [1, 2])
def test_another_seed_is_found(seed: int) -> None:
    """By its batches, or, with eager's, by its first loss where the curve stays within the band."""
    other, own = _subject(torch.float32, seed=seed), _subject(torch.float32)
    own.call = other.call = other.module
    said = _said_of(other, torch.float32)
    assert (said.ok, said.cause, said.detail) == (
        False, Cause.TOLERANCE, "step 1 used a different batch than eager"
    )  # fmt: skip
    own.module = other.module  # its weights, and eager's batches
    said = _said_of(own, torch.float32)
    assert (said.ok, said.cause) == (False, Cause.TOLERANCE)


@needs_torchao
@pytest.mark.filterwarnings("ignore")
def test_sabotaged_products_in_float8_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right ones are within the band; a scale that is off by two and weights that stay are not."""
    from torchao.float8 import float8_ops

    from torchgauge.harness.backends.float8_training import _converted

    def said(spoil: Callable[[Any], object]) -> Any:
        subject = _subject(torch.bfloat16)
        subject.call, facts = _converted(subject.module, "tensorwise")
        assert facts["float8_linears"] == 13
        spoil(subject.call)
        return _said_of(subject, torch.bfloat16)

    assert said(lambda _: None).ok
    frozen = said(lambda module: [each.weight.requires_grad_(False) for each in _linears(module)])
    assert (frozen.ok, frozen.cause) == (False, Cause.TOLERANCE)
    product = float8_ops.addmm_float8_unwrapped
    monkeypatch.setattr(
        float8_ops, "addmm_float8_unwrapped", lambda *each, **named: 2 * product(*each, **named)
    )
    doubled = said(lambda _: None)
    assert (doubled.ok, doubled.cause) == (False, Cause.TOLERANCE)


def _linears(module: Any) -> list[Any]:
    return [each for each in module.modules() if isinstance(each, torch.nn.Linear)]


@pytest.fixture(scope="module")
def rows(make_sandbox: Callable[[], Any]) -> dict[str, Result]:
    """One run of the suite's first model by right, wrong and useless optimizers, by configuration."""
    box = make_sandbox()
    file = box.store_path.with_name("odd.yaml")
    file.write_text(
        "configurations:\n"
        "  - {name: no-smaller, doc: x, backend: optim, options: {config: adamw-8bit, block_size: 1000000}}\n"
        "  - {name: unheard-of, doc: x, backend: optim, options: {config: adamw-1bit}}\n"
        "  - {name: ascends, doc: x, backend: ascends}\n",
        encoding="utf-8",
    )
    names = "eager,optim-adamw-8bit,optim-cpu-offload,no-smaller,unheard-of,ascends"
    words = ("--models", "optim-bytes2", "--device", "cpu", "--config", names, "--config-file", str(file))
    path = box.environment["PYTHONPATH"]
    done = box.measure("lowbit", *words, PYTHONPATH=f"{path}:{PLUGIN}")
    found = {each.case.configuration.name: each for each in box.rows()}
    assert found.keys() == set(names.split(",")), done.stderr[-4000:]
    return found


def numbers(row: Result) -> dict[str, tuple[float, ...]]:
    """The samples of a row by metric, where there are any."""
    return {each.metric: each.samples for each in row.measurements if each.samples}


@needs_torchao
def test_a_small_state_is_weighed_and_held_to_the_curve(rows: dict[str, Result]) -> None:
    """About a quarter of AdamW's bytes, and losses that hardly differ."""
    row, eager = rows["optim-adamw-8bit"], rows["eager"]
    assert (eager.status, row.status, row.reason) == (Status.PASS, Status.PASS, ""), row.reason
    assert Modifier.DEGRADED not in row.modifiers
    found, plain = numbers(row), numbers(eager)
    assert plain["optimizer_state"][0] >= 2 * 4 * (2 * 272 * 64 + 12 * 64 * 64 + 5 * 64)
    assert 0.2 < found["optimizer_state"][0] / plain["optimizer_state"][0] < 0.35
    assert dict(row.facts)["optimizer_state_share"] == pytest.approx(
        found["optimizer_state"][0] / plain["optimizer_state"][0], rel=0.01
    )
    assert 0.0 < found["curve_distance"][0] < 0.05
    assert found["final_loss_ratio"][0] == pytest.approx(found["final_loss"][0] / plain["final_loss"][0])
    assert "curve_distance" not in plain
    assert found.keys() >= {"latency", "speedup", "graph_count"}


@needs_torchao
def test_an_optimizer_that_saves_nothing_is_degraded(rows: dict[str, Result]) -> None:
    """Its losses are right; what was asked of it did not happen."""
    row = rows["no-smaller"]
    assert row.status is Status.PASS, row.reason
    assert Modifier.DEGRADED in row.modifiers
    assert "that of torch.optim.AdamW" in str(dict(row.facts)["degraded"])


@needs_torchao
def test_what_torchao_refuses_is_unsupported_in_its_words(rows: dict[str, Result]) -> None:
    """A refusal of its own code, and an optimizer that it does not have."""
    assert rows["optim-cpu-offload"].status is Status.UNSUPPORTED
    assert "CPU Offload" in rows["optim-cpu-offload"].reason
    assert rows["unheard-of"].status is Status.UNSUPPORTED
    assert "offers no optimizer 'adamw-1bit'; the nearest is 'adamw-" in rows["unheard-of"].reason


@needs_torchao
def test_configurations_may_share_compiled_functions(rows: dict[str, Result]) -> None:
    """Optimizers of torchao run the same compiled functions; neither ran another configuration."""
    for name in ("optim-adamw-8bit", "no-smaller"):
        assert (rows[name].status, rows[name].reason) == (Status.PASS, "")


@needs_torchao
def test_an_optimizer_that_climbs_is_never_timed(rows: dict[str, Result]) -> None:
    """A stranger's backend may bring its optimizer, and is judged as ours."""
    row = rows["ascends"]
    assert (row.status, row.cause) == (Status.FAIL_ACCURACY, Cause.TOLERANCE)
    assert "the tolerance is 5.0%" in row.reason
    assert "latency" not in numbers(row)


def test_without_torchao_the_row_says_what_to_type(sandbox: Any, tmp_path: Path) -> None:
    """Missing is what no search of the path finds."""
    hook = tmp_path / "absent"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "found = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'torchao' else found(name, *rest)\n"
    )
    path = f"{hook}:{sandbox.environment['PYTHONPATH']}"
    words = ("--models", "optim-bytes2", "--config", "eager,optim-adamw-8bit", "--device", "cpu")
    sandbox.measure("lowbit", *words, PYTHONPATH=path)
    found = {each.case.configuration.name: each for each in sandbox.rows()}
    assert found["eager"].status is Status.PASS, found["eager"].reason
    row = found["optim-adamw-8bit"]
    assert (row.status, row.cause) == (Status.SKIPPED, Cause.MISSING_PACKAGE)
    assert "pip install 'torchgauge[quant]'" in row.reason
