"""Whole models on the simulated device, against the CPU."""

from __future__ import annotations

import copy
import importlib.util
import unittest

import torch

from torchgauge.suites.torchvision_schemas import define_missing_schemas

DEVICE = torch.device("npusim")


def require(module: str) -> None:
    """Skip the check where a model library is not installed."""
    if importlib.util.find_spec(module) is None:
        raise unittest.SkipTest(f"{module} is not installed")


def resnet18() -> torch.nn.Module:
    """Return a ResNet-18 with seeded random weights."""
    require("timm")
    define_missing_schemas()
    import timm

    torch.manual_seed(0)
    return timm.create_model("resnet18", pretrained=False)


def tiny_bert() -> tuple[torch.nn.Module, torch.Tensor]:
    """Return a two-layer BERT and a batch of tokens."""
    require("transformers")
    define_missing_schemas()
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64
    )
    return BertForSequenceClassification(config), torch.randint(0, 100, (2, 16))


def check_resnet18_is_bit_equal() -> None:
    """ResNet-18 in eval mode gives the CPU's output to the last bit."""
    model = resnet18().eval()
    batch = torch.randn(2, 3, 96, 96)
    with torch.inference_mode():
        expected = model(batch)
        assert torch.equal(model.to(DEVICE)(batch.to(DEVICE)).cpu(), expected)


def check_bert_forward_and_backward() -> None:
    """A tiny BERT gives the CPU's logits and gradients."""
    model, tokens = tiny_bert()
    twin = copy.deepcopy(model).to(DEVICE)
    for network, place in ((model.eval(), "cpu"), (twin.eval(), DEVICE)):
        network(input_ids=tokens.to(place), labels=torch.tensor([0, 1], device=place)).loss.backward()
    for host, device in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(device.grad.cpu(), host.grad, rtol=1e-4, atol=1e-6)
    with torch.no_grad():
        torch.testing.assert_close(
            twin(tokens.to(DEVICE)).logits.cpu(), model(tokens).logits, rtol=1e-5, atol=1e-6
        )


def check_gpt2_generates_the_same() -> None:
    """A tiny GPT-2 generates the CPU's tokens."""
    require("transformers")
    define_missing_schemas()
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=100, n_positions=64, n_embd=32, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2
    )
    model = GPT2LMHeadModel(config).eval()
    prompt = torch.randint(3, 100, (1, 8))
    options = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    expected = model.generate(prompt, attention_mask=torch.ones_like(prompt), **options)
    prompt = prompt.to(DEVICE)
    actual = model.to(DEVICE).generate(prompt, attention_mask=torch.ones_like(prompt), **options)
    assert torch.equal(actual.cpu(), expected)
