"""The built-in backends on small real models: what they run, what they measure, and what they admit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from torchgauge import registry
from torchgauge.errors import NotOfferedError
from torchgauge.harness.backends.backend import GROUP, backend_named
from torchgauge.harness.backends.prepared import BackendSession, Prepared, prepare
from torchgauge.harness.backends.sdpa import judged
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.records import Configuration, Result, Status

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


class Host:
    """The part of a device session that a backend needs."""

    torch_device = torch.device("cpu")

    def synchronize(self) -> None:
        """The host has nothing to wait for."""

    def seed(self, seed: int) -> None:
        """Seed the host's generator."""
        torch.manual_seed(seed)


class Stack:
    """Three blocks of attention, as a subject without gradients, prepared by a backend of a name."""

    def __init__(self, folder: Path, module: Any = None) -> None:
        from torchgauge.suites.toy.networks import Encoder

        torch.manual_seed(0)
        self.module = module or torch.nn.Sequential(*[Encoder() for _ in range(3)]).eval()
        self.inputs = torch.randn(2, 16, 64)
        self.folder = folder
        self.subject = Subject(self.module, self.module, (self.inputs,), {}, None, Host(), 0)

    def prepared(self, name: str, *, mode: str = "", **options: Any) -> Prepared:
        """What the backend ``name`` makes of the subject."""
        configuration = Configuration("c", name, tuple(sorted(options.items())), compile_mode=mode)
        session = BackendSession(Host(), lambda call: lambda: call(self.inputs), cache=str(self.folder))
        return prepare(backend_named(name), self.subject, configuration, session)


@pytest.fixture
def stack(tmp_path: Path) -> Any:
    """A stack, and gradients as before afterwards."""
    with torch.no_grad():
        yield Stack(tmp_path)


@pytest.mark.parametrize("nested", [False, True])
def test_repeated_blocks_are_compiled_once(stack: Stack, nested: bool) -> None:
    """Three blocks of one class make one graph, the result is eager's, and eager's own module stays eager."""
    from torchgauge.suites.toy.networks import Encoder

    made = stack.prepared("compile_regional", backend="aot_eager", nested=nested)
    with made.context():
        assert torch.allclose(made.call(stack.inputs), stack.module(stack.inputs), atol=1e-6)
    made.judged()
    found = {each.metric: each.samples for each in made.measurements}
    assert (found["graph_count"], found["recompiles"]) == ((1.0,), (0.0,))
    assert (made.evidence["regions"], made.evidence["region_class"]) == (3, "Encoder")
    assert made.degraded == []
    twin = made.call._orig_mod if nested else made.call
    for eager, compiled in zip(stack.module, twin, strict=True):
        assert eager._compiled_call_impl is None
        assert type(eager) is Encoder
        assert eager is not compiled
        assert eager.out.weight is compiled.out.weight


def test_the_kernel_that_ran_is_the_evidence(stack: Stack) -> None:
    """A back end that was asked for is seen in a profiled step, and PyTorch's own choice is told."""
    for kernel in ("math", "flash", ""):
        made = stack.prepared("sdpa", kernel=kernel)
        assert made.look is not None

        def step(call: Any = made.call) -> Any:
            return call(stack.inputs)

        with made.context():
            found = made.look.take(step, step)
        assert not isinstance(found, str), found
        facts, degraded = found
        assert (facts["sdpa_calls"], degraded) == (3, "")
        assert facts["sdpa_kernels"] == f"{kernel or 'flash'} x3"


def test_why_a_kernel_was_not_used_is_in_the_reason(tmp_path: Path) -> None:
    """PyTorch says it in warnings, whose places in its sources are nobody's business."""

    class ThreeDimensions(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            x = x[:, None]
            mask = torch.zeros(1, 16, 16)
            return torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    with torch.no_grad(), pytest.raises(NotOfferedError) as refused:
        Stack(tmp_path, ThreeDimensions()).prepared("sdpa", kernel="flash")
    said = refused.value.message
    assert "Flash attention kernel not used because: Please use the following attn mask shapes: 2d" in said
    assert "Triggered" not in said


@pytest.mark.parametrize(
    ("operators", "kernel", "kernels", "degraded"),
    [
        (["aten::linear"], "", "none", "the model never calls scaled_dot_product_attention"),
        (
            ["aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention_math"],
            "efficient",
            "math x1",
            "efficient attention was requested, but math ran",
        ),
        (
            [
                "aten::scaled_dot_product_attention",
                "aten::_scaled_dot_product_flash_attention_for_cpu",
                "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
            ],
            "flash",
            "flash x1",
            "",
        ),
    ],
)
def test_another_kernel_than_was_asked_for_is_degraded(
    operators: list[str], kernel: str, kernels: str, degraded: str
) -> None:
    """A device that runs another one without a word is found out."""
    facts, said = judged(operators, kernel)
    assert (facts["sdpa_kernels"], said) == (kernels, degraded)
    undone = sum(name.endswith("_backward") for name in operators)
    assert facts.get("sdpa_backward_kernels") == (f"{kernel} x{undone}" if undone else None)


def test_another_kernel_on_the_way_back_is_degraded() -> None:
    """A device may have a kernel for the way there alone, and go back by another."""
    there, back = (
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        "aten::_scaled_dot_product_fused_attention_overrideable_backward",
    )
    facts, said = judged(["aten::scaled_dot_product_attention", there, back], "flash")
    assert (facts["sdpa_kernels"], facts["sdpa_backward_kernels"]) == ("flash x1", "overrideable x1")
    assert said == "flash attention was requested, but the backward pass used overrideable"
    assert judged(["aten::scaled_dot_product_attention", there, back], "")[1] == ""


UNKNOWN: dict[str, tuple[dict[str, Any], str]] = {
    "compile": ({"no_such_option": True}, "Unexpected optimization option no_such_option"),
    "compile_regional": ({"no_such_option": True}, "Unexpected optimization option no_such_option"),
    "compiled_autograd": ({"backend": "no_such_compiler"}, "Invalid backend: 'no_such_compiler'"),
    "aot_inductor": ({"no_such_option": True}, "no_such_option"),
    "sdpa": ({"kernel": "flash", "implementation": "none"}, "Unknown flash attention impl 'none'"),
    "flex": ({"mode": "no-such-mode"}, "Unrecognized mode=no-such-mode"),
}
"""What each backend hands on and torch does not know, and torch's words; ``eager`` hands nothing on."""
LOOKED_UP = {"executorch", "float8", "optim", "torchao"}
"""Their options name what a library may have in one version and not in another: see their own tests."""


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # inductor's own imports
@pytest.mark.parametrize("name", sorted({*registry.names(GROUP)} - {"eager", *LOOKED_UP}))
def test_what_torch_does_not_know_is_its_error(stack: Stack, name: str) -> None:
    """It raises, in its words and in its own code; nothing of ours calls that unsupported."""
    options, words = UNKNOWN[name]
    stack.module.flex_form = lambda _: stack.module
    with pytest.raises(Exception, match=re.escape(words)) as raised:
        stack.prepared("inductor" if name == "compile" else name, **options)
    assert not isinstance(raised.value, NotOfferedError)
    assert Path(torch.__file__).parent in Path(str(raised.traceback[-1].path)).parents


@pytest.fixture(scope="module")
def rows(make_sandbox) -> dict[str, Result]:
    """One run of a small transformer with the new backends, each row by its configuration."""
    sandbox = make_sandbox()
    names = "eager,sdpa,sdpa-math,sdpa-efficient,inductor-regional,aot-inductor"
    done = sandbox.measure("toy", "--models", "transformer", "--device", "cpu", "--config", names)
    assert "Traceback" not in done.stderr
    return {row.case.configuration.name: row for row in sandbox.rows()}


def test_a_package_is_measured_stage_by_stage(rows) -> None:
    """Export, compilation, load and size are in the row beside the step; the result was compared."""
    row = rows["aot-inductor"]
    assert row.status is Status.PASS, row.reason
    found = {each.metric: each.samples for each in row.measurements}
    for stage in ("export_time", "package_compile", "package_load", "package_size", "speedup"):
        assert min(found[stage]) > 0
    how = {each.metric: each.provenance for each in row.measurements}
    assert how["package_load"].endswith(
        "in the process that compiled and had already probed the vector instructions"
    )
    assert {"compiler_import", "vector_isa_probe"} <= dict(row.facts).keys()
    assert row.accuracy is not None
    assert row.accuracy.reference.startswith("eager and ")


def test_autocast_reaches_a_package_and_is_refused_by_torchao(make_sandbox) -> None:
    """Autocast is applied where a package is compiled; torchao's layers ignore it, and that is no fault."""
    pytest.importorskip("torchao")
    sandbox = make_sandbox()
    names = "eager,aot-inductor,torchao-int8-weight-only"
    words = ("--models", "mlp", "--device", "cpu", "--dtype", "amp", "--config", names)
    done = sandbox.measure("toy", *words)
    rows = {row.case.configuration.name: row for row in sandbox.rows()}
    assert {rows[name].status for name in ("eager", "aot-inductor")} == {Status.PASS}, done.stderr
    refused = rows["torchao-int8-weight-only"]
    assert refused.status is Status.UNSUPPORTED
    assert refused.reason == (
        "torchao's layers ignore autocast: they return torch.float32 instead of torch.bfloat16"
    )


def test_attention_by_name_is_a_case_like_any_other(rows) -> None:
    """What ran is in the row; a back end that the host has not is unsupported."""
    kernels = {name: dict(rows[name].facts).get("sdpa_kernels") for name in ("sdpa", "sdpa-math")}
    assert kernels == {"sdpa": "flash x1", "sdpa-math": "math x1"}
    assert {rows[name].status for name in ("eager", "sdpa", "sdpa-math")} == {Status.PASS}
    assert rows["sdpa-efficient"].status is Status.UNSUPPORTED
    assert rows["inductor-regional"].status is Status.UNSUPPORTED
    assert "no repeated blocks" in rows["inductor-regional"].reason
