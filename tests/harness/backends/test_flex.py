"""Backend ``flex``: what torch refuses is said in its words, a probe is no pass, blocks are counted."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from torchgauge.errors import NotOfferedError
from torchgauge.harness.backends.backend import backend_named
from torchgauge.harness.backends.flex import refusal
from torchgauge.harness.backends.prepared import BackendSession, Prepared, prepare
from torchgauge.harness.planning.configurations import bundled
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.records import Cause, Configuration, Modifier, Phase, Status, Workload

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile:UserWarning"),
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),  # inductor's own imports
]
NO_WAY_BACK = (
    "FlexAttention does not support backward on CPU. "
    "Please set the input requires_grad to False or use another device."
)


class Host:
    """The part of a device session that a backend needs."""

    torch_device = torch.device("cpu")

    def synchronize(self) -> None:
        """The host has nothing to wait for."""


class Call:
    """An attention call as a subject, prepared by a bundled configuration."""

    def __init__(self, mode: str, mask: str = "causal", **sizes: int) -> None:
        from torchgauge.suites.features.networks import build

        shape = {"heads": 2, "head_width": 16, "seq": 256, "mask": mask, **sizes}
        workload = Workload("features", "attention.flex-x", mode, shape=tuple(sorted(shape.items())))
        self.built = build(workload, {})
        self.module: Any = self.built.module
        self.args = self.built.args

    def step(self, call: Any) -> Any:
        """A forward pass; in training with its way back."""
        if self.built.loss is None:
            return lambda: call(*self.args)
        return lambda: self.built.loss(call()).backward()

    def prepared(self, name: str, cache: Path = Path()) -> Prepared:
        """What the backend of the configuration ``name`` makes of the call."""
        configuration: Configuration = bundled()[name].configuration
        subject = Subject(self.module, self.module, self.args, {}, self.built.loss, Host(), 0)
        session = BackendSession(Host(), self.step, cache=str(cache))
        return prepare(backend_named(configuration.backend), subject, configuration, session)


def numbers(made: Prepared) -> dict[str, float]:
    """What was measured, by metric."""
    return {each.metric: each.samples[0] for each in made.measurements}


@pytest.mark.parametrize("name", ["flex", "flex-eager"])
def test_what_torch_refuses_is_said_in_its_own_words(name: str) -> None:
    """On the host there is no way back, and the reason is the sentence that torch raises."""
    with pytest.raises(NotOfferedError) as refused:
        Call("training").prepared(name)
    assert refused.value.message == NO_WAY_BACK


def test_a_lifted_check_is_a_probe_and_no_pass() -> None:
    """With torch's check lifted the way back runs and is right; the case is degraded and says why."""
    from torch.nn.attention import flex_attention as flexible

    call, check = Call("training"), flexible._validate_device
    made = call.prepared("flex-eager-probe")
    assert flexible._validate_device is check
    assert made.degraded == [f"a probe: {NO_WAY_BACK}; torch's device check was disabled"]
    found = []
    for each in (made.call, call.module):
        call.module.zero_grad()
        with made.context():
            call.step(each)()
        found.append([parameter.grad.clone() for parameter in call.module.parameters()])
    assert len(found[0]) == 3
    assert all(torch.allclose(*pair, atol=1e-7) for pair in zip(*found, strict=True))
    assert flexible._validate_device is check


def test_a_model_without_a_form_is_not_offered() -> None:
    """A linear layer has no attention to be written otherwise."""
    call = Call("inference")
    call.module = torch.nn.Linear(2, 2)
    with pytest.raises(NotOfferedError, match="no variant with flex_attention"):
        call.prepared("flex-eager")


@pytest.mark.parametrize(
    ("mask", "sizes", "share", "pairs"),
    [
        ("causal", {}, 0.25, 3 * 128 * 128),
        ("noop", {}, 0.0, 256 * 256),
        ("window", {"queries": 1, "seq": 1024}, 7 / 8, 128),
    ],
)
def test_blocks_are_counted(mask: str, sizes: dict[str, int], share: float, pairs: int) -> None:
    """Skipped blocks of all, and the work of those that are left; one query is no whole block of them."""
    with torch.no_grad():
        found = numbers(Call("inference", mask, **sizes).prepared("flex-eager"))
    assert found == {"block_sparsity": share, "block_flops": 4.0 * 2 * pairs * 16}


def test_a_form_that_is_compiled_too_often_is_degraded() -> None:
    """Beyond dynamo's limit a variant runs without its compiler, and torch only warns."""
    from torch.nn.attention.flex_attention import flex_attention

    call, attend = Call("inference"), torch.compile(flex_attention, backend="eager")
    variants = (lambda s, *_: s, lambda s, *_: -s, lambda s, *_: s * s)

    class Variants(torch.nn.Module):  # type: ignore[misc]
        of, block_mask = call.module, None

        def forward(self, *args: Any) -> Any:
            return sum(attend(*args, score_mod=each) for each in variants)

    call.module.flex_form = lambda _: Variants()
    torch._dynamo.reset()
    with torch.no_grad(), torch._dynamo.config.patch(recompile_limit=2):
        made = call.prepared("flex-eager")
    torch._dynamo.reset()
    assert len(made.degraded) == 1
    assert "hit config.recompile_limit (2)" in made.degraded[0]


def test_calls_of_the_operator_are_counted() -> None:
    """What a step calls is counted in the step itself, whoever compiled it before; a form without is told."""
    call = Call("inference")
    with torch.no_grad():
        made = call.prepared("flex-eager")
        found = [made.look.take(call.step(each), call.step(call.module)) for each in (made.call, call.module)]
    assert found[0] == ({"flex_calls": 1, "sdpa_calls": 0}, "")
    facts = {"flex_calls": 0, "sdpa_calls": 1}
    assert found[1] == (facts, "the model that flex_form() returns never calls flex_attention")


def test_a_mask_is_read_from_the_call() -> None:
    """A form that has a mask and does not use it skips nothing; heads and batches that differ are counted."""
    from torch.nn.attention.flex_attention import create_block_mask

    call = Call("inference")
    own = call.module.flex_form("cpu")
    own.forward = own.attend
    call.module.flex_form = lambda _: own
    with torch.no_grad():
        found = numbers(call.prepared("flex-eager"))
        whole = 4.0 * 2 * 256 * 256 * 16
        assert found == {"block_sparsity": 0.0, "block_flops": whole}
        mask = create_block_mask(lambda _b, h, q, k: (q >= k) | (h == 0), None, 2, 256, 256, device="cpu")
        own.forward = lambda *args: own.attend(*args, block_mask=mask)
        found = numbers(call.prepared("flex-eager"))
    assert found == {"block_sparsity": 1 / 8, "block_flops": whole * 7 / 8}


def test_a_compiled_call_is_read_in_the_graph(tmp_path: Path) -> None:
    """What dynamo hands over has the same blocks, and other attention beside it is told."""
    call = Call("inference")
    own = call.module.flex_form("cpu")
    alone = own.forward
    call.module.flex_form = lambda _: own
    found = []
    for forward in (alone, lambda *args: alone(*args) + call.module(*args)):
        own.forward = forward
        with torch.no_grad(), torch._dynamo.config.patch(debug_backend_override=">=0:aot_eager"):
            made = call.prepared("flex", tmp_path)
            made.judged()
        measured = numbers(made)
        found.append((measured["block_sparsity"], measured["block_flops"], made.evidence["sdpa_calls"]))
    assert found == [(0.25, 4.0 * 2 * 3 * 128 * 128 * 16, calls) for calls in (0, 1)]
    assert made.degraded == ["1 of 2 attention calls are scaled_dot_product_attention in a compiled graph"]


@pytest.mark.parametrize(("form", "calls"), [(None, 1), ("sdpa", 0), ("break", 0)])
def test_a_compiled_form_is_judged_by_its_graph(tmp_path: Path, form: str | None, calls: int) -> None:
    """The operator stands in what dynamo captured, or the case is degraded; no code is generated here.

    Behind a graph break torch captures the operator for ``eager``: all scores are in memory, as uncompiled.
    """
    call = Call("inference")
    own = call.module.flex_form("cpu")
    if form == "sdpa":
        own.forward = call.module.forward
    elif form == "break":
        own.attend = torch.compiler.disable(own.attend)
    call.module.flex_form = lambda _: own
    with torch.no_grad(), torch._dynamo.config.patch(debug_backend_override=">=0:aot_eager"):
        made = call.prepared("flex", tmp_path)
        made.judged()
    assert made.evidence["flex_calls"] == calls
    assert any("never calls flex_attention" in each for each in made.degraded) is not bool(calls)


def _raised(call: Any) -> BaseException:
    with pytest.raises(NotImplementedError) as raised:
        call()
    return raised.value


def test_only_torch_refuses() -> None:
    """Words of torch, from Python or from an operator, are a refusal; a mask that raises is an error."""
    from torch.nn.attention import flex_attention as flexible

    def unfinished() -> None:
        raise NotImplementedError("a bug of the vendor's own mask")

    def no_way_back() -> None:
        inputs = torch.ones(1, 1, 2, 2, requires_grad=True)
        flexible.flex_attention(inputs, inputs, inputs)

    assert refusal(_raised(unfinished), flexible) == ""
    assert refusal(_raised(no_way_back), flexible) == NO_WAY_BACK
    assert "meta tensor" in refusal(_raised(torch.ones(1, device="meta").cpu), flexible)
    call = Call("inference")
    call.module.flex_form = lambda _: unfinished()
    with pytest.raises(NotImplementedError, match="the vendor's own mask"):
        call.prepared("flex-eager")


def test_a_mask_that_is_off_by_one_is_a_wrong_result(make_sandbox) -> None:
    """From the model to the row: eager passes, either form fails by its numbers, and no time counts."""
    sandbox = make_sandbox()
    sandbox.measure("observed", "--models", "sees_one_more", "--device", "cpu")
    rows = {row.case.configuration.name: row for row in sandbox.rows()}
    assert rows.pop("eager").status is Status.PASS
    assert rows.keys() == {"flex", "flex-eager"}
    for row in rows.values():
        assert (row.status, row.phase, row.cause) == (Status.FAIL_ACCURACY, Phase.ACCURACY, Cause.TOLERANCE)
        assert row.reason.startswith("out: largest error ")
        assert not any(each.metric == "latency" and each.samples for each in row.measurements)


@pytest.mark.skipif(importlib.util.find_spec("torchgauge_npusim") is None, reason="no simulated device")
def test_a_device_that_is_refused_by_name_says_so_beside_the_probe(make_sandbox) -> None:
    """Of an out-of-tree device the refusal is told as one by name; lifted, it computes what eager does."""
    sandbox = make_sandbox()
    done = sandbox.measure("features", "--models", "attention.flex-check", "--device", "npusim")
    assert "Traceback" not in done.stderr
    by_name = "refused by name: FlexAttention is only supported on CUDA, CPU, HPU, or MPS devices."
    rows = {(row.case.workload.mode, row.case.configuration.name): row for row in sandbox.rows()}
    assert len(rows) == 10
    for mode in ("inference", "training"):
        flex, probe = rows[mode, "flex-eager"], rows[mode, "flex-eager-probe"]
        assert flex.status is Status.UNSUPPORTED
        assert flex.reason.startswith(by_name)
        assert (probe.status, Modifier.DEGRADED in probe.modifiers) == (Status.PASS, True)
        assert dict(probe.facts)["refused"].startswith(by_name)
        assert probe.accuracy is not None
        assert rows[mode, "flex"].status is rows[mode, "flex-probe"].status is Status.UNSUPPORTED
