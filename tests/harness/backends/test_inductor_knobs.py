"""Settings of inductor are read back: what was not done is degraded, and the row says what was done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torchgauge.devices.native_isa import FACT, native_isa
from torchgauge.harness.backends.inductor_knobs import TEMPLATES, TUNED, Knobs
from torchgauge.records import Status

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
CONFIGURATIONS = """\
configurations:
  - {name: wide, doc: a width that no processor has, backend: inductor, options: {cpp.simdlen: 4096}}
  - {name: scalar, doc: no vectors, backend: inductor, options: {cpp.simdlen: 1}}
  - {name: package, doc: frozen, backend: aot_inductor, options: {freezing: true}}
"""


@pytest.fixture(scope="module")
def rows(make_sandbox, tmp_path_factory) -> dict[str, Any]:
    """One run of a small model in float16 with the knobs, each row by its configuration."""
    file = tmp_path_factory.mktemp("knobs") / "own.yaml"
    file.write_text(CONFIGURATIONS, encoding="utf-8")
    sandbox = make_sandbox()
    sandbox.measure(
        "features", "--models", "inductor.knobs-mlp", "--device", "cpu", "--config-file", str(file),
        "--config", "eager,wide,scalar,package,inductor-freezing,inductor-max-autotune", "--dtype", "float16",
    )  # fmt: skip
    return {row.case.configuration.name: row for row in sandbox.rows()}


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "facts", "degraded"),
    [
        ("wide", {"simd_width": 1, "simd": "none"}, "asked for SIMD width 4096, the code has 1"),
        ("scalar", {"simd_width": 1, "simd": "none"}, ""),
        ("inductor-freezing", {"folded_parameters": 6}, ""),
        ("inductor-max-autotune", {"autotuned": 0, "cpp_templates": 0}, "max-autotune tuned nothing"),
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


@pytest.mark.long
def test_a_row_in_16_bits_says_what_the_processor_has(rows) -> None:
    """On every row of the dtype, eager's too; it is a fact and refuses nothing."""
    expected = native_isa("float16")
    assert {dict(row.facts).get(FACT, "") for row in rows.values()} == {expected}


@pytest.mark.parametrize(
    ("line", "dtype", "said"),
    [
        ("flags\t\t: fpu avx512_bf16 amx_bf16", "bfloat16", "avx512_bf16, amx_bf16"),
        ("flags\t\t: fpu avx512_bf16 avx512_vnni", "float16", "no avx512_fp16, no amx_fp16"),
        ("flags\t\t: fpu", "float32", ""),
        ("Features\t: fp asimd asimdhp bf16", "bfloat16", "bf16, no svebf16"),
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


def test_a_template_that_won_is_counted(monkeypatch) -> None:
    """Tuned is what had a choice; a template is told where one was the fastest."""
    from torch._dynamo.utils import counters

    monkeypatch.setitem(counters, "inductor", {TUNED: 3, TEMPLATES: 2})
    facts, missed = Knobs({"max_autotune": True}).seen()
    assert (facts["autotuned"], facts["cpp_templates"], missed) == (3, 2, [])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own import of the module
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
