"""Language models: the loop's ids are those of transformers' own generate, for each architecture."""

from __future__ import annotations

import copy
import importlib.util
from typing import Any

import pytest

from torchgauge.errors import TooLargeError
from torchgauge.records import PRETRAINED, Workload
from torchgauge.suites.llm.architectures import ARCHITECTURES

SIZES = (("output", 24), ("prompt", 12))


needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="needs transformers"
)


def built(architecture: str, *, batch: int = 3, **fields: Any) -> Any:
    """The tiny model of ``architecture``, with sequences that end at different lengths."""
    from torchgauge.suites.llm.models import build

    workload = Workload("llm", architecture, mode="generate", batch=batch, shape=SIZES, **fields)
    return build(workload, {"architecture": architecture, "tiny": True, "unequal": True})


class HostSeed:
    """The part of a session that an observation needs."""

    def seed(self, seed: int) -> None:
        """Seed the host's generator."""
        import torch

        torch.manual_seed(seed)


@pytest.mark.torch
@needs_transformers
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_ids_and_logits_are_those_of_transformers(architecture: str) -> None:
    """Greedy ids are equal to the last one after every end, logits over the text up to rounding, twice."""
    import torch

    from torchgauge.harness.scenarios.generate_steps import observe, reference
    from torchgauge.harness.scenarios.scenario import Subject

    model = built(architecture)
    subject = Subject(model.module, model.module, (), model.kwargs, None, HostSeed(), seed=0, built=model)
    with torch.no_grad():
        right, first, again = reference(subject), observe(subject), observe(subject)
    for seen in (first, again):
        assert torch.equal(seen["out.ids"], right["out.ids"])
        assert torch.allclose(seen["out.logits"], right["out.logits"], atol=1e-5)
    assert right["out.ids"].shape == (3, 24)
    assert right["out.logits"].shape[1] == 24  # after the prompt, and after 23 tokens of the text
    ends = [8, 16, 24]
    assert [int(row.count_nonzero()) for row in right["out.ids"]] == ends
    assert model.items_per_step == sum(ends)


@pytest.mark.torch
@needs_transformers
def test_experts_have_a_reference_in_float64() -> None:
    """Their grouped kernels take no such numbers; the loop runs those kernels all the same, and agrees."""
    import torch

    model = built("mixtral")
    config, prompt = model.module.config, model.kwargs["input_ids"]
    used = config._experts_implementation
    assert used != "eager"
    wide = copy.deepcopy(model.module).double()
    with torch.no_grad():
        decoder = model.abilities["generate"](wide)
        truth = decoder.peer_logits(decoder.text(prompt.shape[1], 4), prompt.shape[1] - 1)
        assert decoder.peer_ids(prompt).shape == (3, 24)
        assert wide.config._experts_implementation == used
        near = model.abilities["generate"](model.module)
        ours = near.prefill(near.text(prompt.shape[1], 4)[:, : prompt.shape[1]])
    assert truth.dtype is torch.float64
    assert torch.allclose(ours.double(), truth[:, 0], atol=1e-5)


@pytest.mark.torch
@needs_transformers
def test_bytes_of_weights_and_cache_are_counted() -> None:
    """No embedding, the head that shares it once, and of the experts what one token is sent to."""
    import torch

    for architecture in ("llama", "mixtral"):
        model = built(architecture, batch=2)
        decoder = model.abilities["generate"](model.module)
        assert decoder.cache_bytes == 0
        with torch.no_grad():
            decoder.prefill(model.kwargs["input_ids"])
        assert decoder.cache_bytes == 2 * 2 * 2 * 2 * 36 * 16 * 4  # pairs, layers, batch, heads, places, ...
        sizes = {name: each.nbytes for name, each in model.module.named_parameters()}
        embedding = sizes["model.embed_tokens.weight"]
        if architecture == "llama":
            assert decoder.weight_bytes == sum(sizes.values())  # the embedding is the head
        else:
            experts = sum(size for name, size in sizes.items() if ".experts." in name)
            assert experts > 0
            assert decoder.weight_bytes == sum(sizes.values()) - embedding - experts // 2


@pytest.mark.torch
@needs_transformers
@pytest.mark.filterwarnings("ignore")
def test_a_quantised_weight_is_read_as_it_is_kept() -> None:
    """Its ``nbytes`` are those of the numbers that it stands for, four times as many."""
    quantization = pytest.importorskip("torchao.quantization")
    model = built("mixtral")
    before = model.abilities["generate"](model.module).weight_bytes
    quantization.quantize_(model.module.lm_head, quantization.Int8WeightOnlyConfig())
    after = model.abilities["generate"](model.module).weight_bytes
    words = model.module.config.vocab_size
    assert words * (64 * 3 - 8) <= before - after < words * 64 * 3  # a scale and a zero point by row


@pytest.mark.torch
@needs_transformers
def test_a_model_that_does_not_fit_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal has both numbers; one byte more would do."""
    from torchgauge.suites.llm import models

    needed = 2 * 4 * 106_816 + 2 * 2 * 3 * 2 * 36 * 16 * 4
    monkeypatch.setattr(models, "available_memory", lambda: needed)
    built("llama")
    monkeypatch.setattr(models, "available_memory", lambda: needed - 1)
    with pytest.raises(TooLargeError, match=f"{needed:,} bytes are needed .* {needed - 1:,} bytes are free"):
        built("llama")
    with pytest.raises(TooLargeError, match="1,235,814,400 parameters"):  # as published: nothing is fetched
        built("llama", weights=PRETRAINED)


@pytest.mark.torch
@needs_transformers
def test_a_profiler_is_given_the_first_tokens_of_a_long_generation() -> None:
    """Of 24 tokens 16 are generated, whose time is no sample; a whole one has 23 calls after the prompt."""
    import torch

    from torchgauge.harness.scenarios.generate_steps import GLANCE, step
    from torchgauge.harness.scenarios.scenario import Subject

    model, calls = built("llama"), []

    def counted(**given: Any) -> Any:
        calls.append(given["input_ids"].shape)
        return model.module(**given)

    generation = step(Subject(model.module, counted, (), model.kwargs, None, HostSeed(), 0, built=model))
    with torch.no_grad():
        generation.glance()
        assert (len(calls), len(generation.times)) == (GLANCE - 1, 0)
        generation()
    assert (len(calls), len(generation.times)) == (GLANCE - 1 + 23, 1)
    assert set(calls) == {(3, 1)}
