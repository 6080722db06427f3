"""The data files that ship: valid, complete, and true of the installed libraries."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

from torchgauge import registry
from torchgauge.harness.planning.selection import TIERS, select_models
from torchgauge.records import Workload
from torchgauge.suites.catalog import YamlSuite, workload_for
from torchgauge.suites.tolerances import tolerance_for

SUITES = ("toy", "timm", "huggingface")
OURS = {
    "timm": {"resnet18"},
    "huggingface": {
        "ModernBertForMaskedLM",
        "Phi3ForCausalLM",
        "Qwen2ForCausalLM-0.5B",
        "Qwen3MoeForCausalLM-tiny",
        "DeepseekV3ForCausalLM-tiny",
        "MambaForCausalLM-130m",
        "Mamba2ForCausalLM-tiny",
        "SmolLM3ForCausalLM",
        "ViTForImageClassification",
        "SwinForImageClassification",
        "CLIPModel",
        "Wav2Vec2ForCTC",
    },
}
"""Models that upstream's lists do not have."""
needs_libraries = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "timm", "transformers")),
    reason="needs torch, timm and transformers",
)


def suite(name: str) -> YamlSuite:
    found = registry.load("torchgauge.suites", name)
    assert isinstance(found, YamlSuite)
    return found


@pytest.mark.parametrize("name", SUITES)
def test_every_entry_makes_workloads_with_tolerances(name: str) -> None:
    """Each model, mode and size has a workload, and each workload a tolerance."""
    entries = suite(name).models()
    assert entries
    for entry in entries:
        for mode in entry.batch:
            for size in entry.sizes:
                workload = workload_for(name, entry, mode, size=size)
                assert isinstance(workload, Workload)
                assert tolerance_for(workload, entry).absolute > 0


def test_the_tiers_hold_what_they_promise() -> None:
    """Smoke is six models of each library and every toy; standard adds upstream's, full everything else."""

    def count(name: str, tier: str) -> int:
        return len(select_models(name, suite(name).models(), (), tier))

    assert [count("timm", tier) for tier in TIERS] == [6, 21, 66]
    assert [count("huggingface", tier) for tier in TIERS] == [6, 30, 68]
    assert count("toy", "smoke") == len(suite("toy").models())
    assert {entry.name for entry in suite("toy").models() if entry.framework == "python"} == {"noop", "sum"}


@pytest.mark.parametrize(("name", "live", "classic"), [("timm", 18, 65), ("huggingface", 30, 56)])
def test_the_lists_are_those_of_upstream(name: str, live: int, classic: int) -> None:
    """All of upstream's names are there; those that it still runs are marked, and are the standard tier."""
    entries = suite(name).models()
    assert sum(entry.live for entry in entries) == live
    assert all(entry.live is ("standard" in entry.tiers) for entry in entries)
    assert sum(entry.name not in OURS[name] for entry in entries) == classic
    assert OURS[name] <= {entry.name for entry in entries}


@pytest.mark.parametrize("name", sorted(OURS))
def test_upstreams_batch_is_known_for_all_of_its_models(name: str) -> None:
    """Only our own additions, and Reformer, of which upstream states none, have no batch of upstream."""
    unknown = {entry.name for entry in suite(name).models() if not entry.upstream_batch}
    assert unknown == OURS[name] | ({"Reformer"} if name == "huggingface" else set())


@pytest.mark.parametrize(
    ("name", "model", "small", "upstream"),
    [
        ("timm", "mobilenetv2_100", 2, 128),
        ("timm", "beit_base_patch16_224", 2, 64),  # 128 in its list, which its runner halves
        ("timm", "resnet18", 2, 2),  # not in upstream's list
        ("huggingface", "DistilBertForQuestionAnswering", 1, 512),
    ],
)
def test_the_batch_profile_decides_the_batch_at_both_sizes(
    name: str, model: str, small: int, upstream: int
) -> None:
    """``pytorch`` is upstream's batch with the small model too, ``small`` a laptop's with the full one."""
    entry = next(entry for entry in suite(name).models() if entry.name == model)
    for size in ("small", "full"):
        for profile, batch in (("small", small), ("pytorch", upstream)):
            workload = workload_for(name, entry, "inference", size=size, batch_profile=profile)
            assert (workload.batch, workload.size) == (batch, size)
    assert workload_for(name, entry, "training").batch == small
    assert workload_for(name, entry, "training", size="full").batch == upstream


def test_every_published_model_has_its_parameter_count() -> None:
    """A count is what a full model is checked against (see ``test_build``)."""
    counts = {
        f"{name}/{entry.name}": entry.parameters for name in sorted(OURS) for entry in suite(name).models()
    }
    assert [name for name, count in counts.items() if count is None] == []
    published = {  # in millions, as the papers and model cards say
        "timm/mobilenetv2_100": 3.5,
        "timm/resnet18": 11.7,
        "timm/cait_m36_384": 271.2,
        "timm/swin_base_patch4_window7_224": 87.8,
        "huggingface/BertForMaskedLM": 109.5,
        "huggingface/meta-llama/Llama-3.2-1B": 1235.8,
        "huggingface/openai/gpt-oss-20b": 20914.8,
    }
    assert {name: round(counts[name] / 1e6, 1) for name in published} == published


@pytest.mark.torch
@needs_libraries
def test_names_exist_in_the_installed_libraries(child: Callable[..., Any]) -> None:
    """Every timm name, every transformers class and every overridden field exists."""
    assert child("child_names.py") == {"timm": [], "transformers": [], "fields": []}
