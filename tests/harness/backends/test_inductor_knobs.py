"""Settings of inductor are read back: what was not done is degraded, and the row says what was done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torchgauge.devices.native_isa import FACT, native_isa
from torchgauge.harness.backends.backend import backend_named
from torchgauge.harness.backends.inductor_knobs import TEMPLATES, TUNED, Knobs
from torchgauge.harness.backends.prepared import BackendSession, prepare
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.harness.worker.compilation import counters, reset
from torchgauge.records import Configuration, Status

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of modules that torch imports
]
CONFIGURATIONS = """\
configurations:
  - {name: wide, doc: a width that no processor has, backend: inductor, options: {cpp.simdlen: 4096}}
  - {name: narrow, doc: a width that torch has no vectors of, backend: inductor, options: {cpp.simdlen: 128}}
  - {name: scalar, doc: no vectors, backend: inductor, options: {cpp.simdlen: 1}}
  - {name: package, doc: frozen, backend: aot_inductor, options: {freezing: true}}
  - {name: scalar-package, doc: no vectors, backend: aot_inductor, options: {cpp.simdlen: 1}}
"""


@pytest.fixture(scope="module")
def rows(make_sandbox, tmp_path_factory) -> dict[str, Any]:
    """One run of a small model in float16 with the knobs, each row by its configuration."""
    file = tmp_path_factory.mktemp("knobs") / "own.yaml"
    file.write_text(CONFIGURATIONS, encoding="utf-8")
    sandbox = make_sandbox()
    sandbox.measure(
        "features", "--models", "inductor.knobs-mlp", "--device", "cpu", "--config-file", str(file),
        "--config", "eager,wide,narrow,scalar,package,scalar-package,inductor-freezing,inductor-max-autotune,"
        "inductor-cpp-wrapper", "--dtype", "float16",
    )  # fmt: skip
    return {row.case.configuration.name: row for row in sandbox.rows()}


@pytest.mark.parametrize(
    ("name", "facts", "degraded"),
    [
        (
            "wide",
            {"simd_width": 1, "simd": "none"},
            "SIMD width 4096 was requested, but the code has no vectors",
        ),
        (
            "narrow",
            {"simd_width": 1, "simd": "none"},
            "SIMD width 128 was requested, but the code has no vectors: torch supports ",
        ),
        ("scalar", {"simd_width": 1, "simd": "none"}, ""),
        ("inductor-freezing", {"folded_parameters": 6}, ""),
        ("inductor-max-autotune", {"autotuned": 0, "cpp_templates": 0}, "max-autotune tuned nothing"),
        ("inductor-cpp-wrapper", {"calling_code": "C++"}, ""),
        ("package", {}, ""),
    ],
)
def test_a_setting_that_was_not_followed_is_degraded(rows, name, facts, degraded) -> None:
    """The evidence is in the row in either case; the numbers are right, so that the row is a pass."""
    row = rows[name]
    assert row.status is Status.PASS, row.reason
    found = dict(row.facts)
    assert {key: found.get(key) for key in facts} == facts
    assert found.get("degraded", "").startswith(degraded)
    assert bool(row.degraded) == bool(degraded)


def test_the_code_of_a_package_is_read_like_any_other(rows) -> None:
    """A package holds its sources: what vectors they are made of stands in its row as well."""
    plain, packed = (dict(rows[name].facts) for name in ("scalar", "scalar-package"))
    assert (packed["simd"], packed["simd_width"]) == (plain["simd"], plain["simd_width"]) == ("none", 1)
    assert packed["cpp_kernels"] == plain["cpp_kernels"] > 0
    frozen, package = (dict(rows[name].facts) for name in ("inductor-freezing", "package"))
    assert package["simd"] == frozen["simd"]
    assert package.get("cpp_kernels") == frozen.get("cpp_kernels")


def test_a_row_in_16_bits_says_what_the_processor_has(rows) -> None:
    """On every row of the dtype, eager's too; it is a fact and refuses nothing."""
    expected = native_isa("float16")
    assert {dict(row.facts).get(FACT, "") for row in rows.values()} == {expected}


@pytest.mark.parametrize(
    ("line", "dtype", "said"),
    [
        ("flags\t\t: fpu avx512_bf16 amx_bf16", "bfloat16", "avx512_bf16, amx_bf16"),
        ("flags\t\t: fpu avx512_bf16 avx512_vnni", "float16", "no avx512_fp16, no amx_fp16"),
        ("Features\t: fp asimd", "float16", "no asimdhp"),
        ("bogomips\t: 12", "float16", ""),
    ],
)
def test_a_processor_without_the_instructions_says_so(tmp_path: Path, line, dtype, said) -> None:
    """From Linux's own list; what nobody lists is not claimed to be missing."""
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor\t: 0\n{line}\n", encoding="utf-8")
    assert native_isa(dtype, file) == said
    assert native_isa(dtype, tmp_path / "absent") == ""


class Wide:
    """Vector instructions of 512 bits."""

    def bit_width(self) -> int:
        """In bits."""
        return 512

    def __str__(self) -> str:
        return "wide"


VECTOR = 'extern "C"  void  kernel(const float* in_ptr0)\n{ at::vec::Vectorized<float>::loadu(in_ptr0); }'
SCALAR = 'extern "C"  void  kernel(const float* in_ptr0)\n{ auto tmp0 = in_ptr0[0]; }'
CALLED = "inductor_entry = CppWrapperCodeCache.load_pybinding(main_code=cpp_wrapper_src)"
NONE = "# Original ATen: [aten.addmm]\nextern_kernels.addmm(arg0, arg1)"


@pytest.mark.parametrize(
    ("asked", "code", "facts", "degraded"),
    [
        (512, [VECTOR, SCALAR], {"cpp_kernels": 2, "simd_width": 512, "simd": "wide"}, ""),
        (512, [NONE], {"simd": "no C++ kernel was generated"}, ""),
        (512, [], {}, ""),
        (
            512,
            [SCALAR],
            {"simd_width": 1},
            "SIMD width 512 was requested, but none of 1 C++ kernels has vectors",
        ),
        (
            128,
            [SCALAR],
            {"simd_width": 1},
            "SIMD width 128 was requested, but the code has no vectors: torch supports 512 here",
        ),
    ],
)
def test_a_width_is_that_of_the_generated_code(monkeypatch, asked, code, facts, degraded) -> None:
    """What was never generated has no width, and torch's vectors are no claim about the processor."""
    monkeypatch.setattr("torch._inductor.cpu_vec_isa.valid_vec_isa_list", lambda: [Wide()])
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    found, missed = Knobs({} if asked is None else {"cpp.simdlen": asked}, code=code).seen()
    assert {name: found.get(name) for name in facts} == facts
    assert ("simd_width" in found) is ("simd_width" in facts)
    assert len(missed) == bool(degraded)
    assert "".join(missed).startswith(degraded)


def test_calling_code_that_goes_back_to_python_is_found() -> None:
    """By who registered the kernel of what it calls by name; C++ of a library is none."""
    mine = torch.library.Library("torchgauge_knobs", "DEF")
    mine.define("scale(Tensor x) -> Tensor")
    mine.impl("scale", lambda x: x * 2, "CompositeExplicitAutograd")
    called = f'{CALLED}\naoti_torch_call_dispatcher("%s", "%s", dispatch_vars.data())'
    boxed = f'{CALLED}\nc10::Dispatcher::singleton().findSchemaOrThrow("%s", "%s");'
    through = f'{CALLED}\nPyTuple_SetItem(py_args_1, 0, PyUnicode_FromString("torch.ops.ns.op.default"))'
    said = "a C++ wrapper was requested, but it calls Python for"
    for code, names in (
        (called % ("torchgauge_knobs::scale", ""), "torchgauge_knobs::scale"),
        (boxed % ("torchgauge_knobs::scale", ""), "torchgauge_knobs::scale"),
        (called % ("aten::linalg_matrix_exp", ""), ""),
        (called % ("aten::add", "Tensor"), ""),
        (through, "torch.ops.ns.op.default"),
    ):
        found, missed = Knobs({"cpp_wrapper": True}, code=[code]).seen()
        assert found.get("python_operators", "") == names
        assert missed == ([f"{said} {names}"] if names else [])
        assert found["calling_code"] == "C++"


class Host:
    """The part of a device session that a backend needs."""

    torch_device = torch.device("cpu")

    def synchronize(self) -> None:
        """The host has nothing to wait for."""


def test_code_from_a_cache_is_read_like_new_code(tmp_path: Path) -> None:
    """A layer that a library computes has no code of inductor's, and no width, whatever was asked for."""
    module, inputs = torch.nn.Linear(4, 4), torch.ones(2, 4)
    subject = Subject(module, module, (inputs,), {}, None, Host(), 0)
    session = BackendSession(Host(), lambda call: lambda: call(inputs), cache=str(tmp_path))
    configuration = Configuration("c", "inductor", (("cpp.simdlen", 512), ("max_autotune", True)))
    found = []
    for _ in range(2):
        with torch.no_grad():
            made = prepare(backend_named("inductor"), subject, configuration, session)
        made.judged()
        found.append((made.evidence["simd"], made.evidence["autotuned"], made.degraded))
    assert counters().cache_hits > 0
    tuned = ["max-autotune tuned nothing: no operator had a choice of kernels"]
    assert found == [("no C++ kernel was generated", 0, tuned)] * 2


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning")  # inductor's own
def test_a_choice_by_kept_times_is_a_choice(monkeypatch, tmp_path: Path) -> None:
    """Inductor keeps the times of candidates: another model with the same layer times nothing and chooses."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    settings = {"freezing": True, "max_autotune": True, "max_autotune_gemm_backends": "ATEN,CPP"}
    layer, inputs = torch.nn.Linear(64, 64).eval(), torch.ones(16, 64)
    found = []
    for model in (layer, torch.nn.Sequential(layer, torch.nn.Hardswish())):
        reset()
        knobs = Knobs(settings)
        with torch.no_grad(), knobs.watched():
            torch.compile(model, options=settings)(inputs)
        facts, missed = knobs.seen()
        found.append((facts.get("autotuned"), facts.get("autotune_kept"), knobs.choices, missed))
    assert found == [(1, None, 1, []), (None, 1, 1, [])]
    product = ["# Original ATen: [aten.addmm]"]  # a library's kernel, which was the fastest
    assert Knobs({"max_autotune": True}, code=product, choices=1).seen()[1] == []


def test_what_has_nothing_to_tune_is_not_accused(monkeypatch) -> None:
    """Max-autotune compares kernels of products and convolutions: without any there is nothing to miss."""
    from torch._dynamo.utils import counters as table

    monkeypatch.setitem(table, "inductor", {TUNED: 0, TEMPLATES: 0})
    settings = {"max_autotune": True}
    assert Knobs(settings, code=["# Original ATen: [aten.gelu, aten.mul]"]).seen()[1] == []
    for text in ("# Original ATen: [aten.gelu, aten.bmm]", "// Original ATen: [aten.convolution]"):
        assert len(Knobs(settings, code=["", text]).seen()[1]) == 1


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # inductor's own imports
@pytest.mark.parametrize(
    ("module", "grad", "counted"),
    [
        (torch.nn.GELU(), False, (0, 0)),
        (torch.nn.Linear(4, 4), False, (2, 2)),
        (torch.nn.Linear(4, 4), True, (2, 0)),
    ],
)
def test_what_has_nothing_to_freeze_is_not_accused(monkeypatch, tmp_path, module, grad, counted) -> None:
    """By the parameters that go into the graph, as its inputs where gradients keep it from being frozen."""
    reset()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    knobs = Knobs({"freezing": True})
    with torch.set_grad_enabled(grad), knobs.watched():
        torch.compile(module)(torch.ones(2, 4))
    facts, missed = knobs.seen()
    assert [(graph.parameters, facts["folded_parameters"]) for graph in knobs.graphs] == [counted]
    assert missed == (["freezing folded no parameter into the code"] if grad else [])


def test_freezing_is_put_back() -> None:
    """Whatever is raised inside, the process freezes nothing afterwards."""
    import torch._inductor.config as settings
    from torch._inductor import freezing

    before = freezing.freeze
    knobs = Knobs({"freezing": True})
    with pytest.raises(ZeroDivisionError), knobs.watched():
        int(settings.freezing) / 0
    assert (settings.freezing, freezing.freeze) == (False, before)
    assert knobs.seen()[1] == ["freezing folded no parameter into the code"]


def test_another_device_has_no_width_of_the_host() -> None:
    """Vector instructions of the processor say nothing of code for an accelerator."""
    assert Knobs({"cpp.simdlen": 4096}, device_type="meta").seen() == ({}, [])
