"""The suite of training in few bits: nothing that the installed torchao offers is left out."""

from __future__ import annotations

import importlib.util

import pytest

from torchgauge.suites.lowbit.suite import SUITE
from torchgauge.suites.quant.offered import COMPILED

needs_torchao = pytest.mark.skipif(importlib.util.find_spec("torchao") is None, reason="needs torchao")


@needs_torchao
def test_every_optimizer_of_torchao_runs() -> None:
    """Its public classes: all in the larger model, those of AdamW in the small one."""
    small, large = (planned(name) for name in ("optim-bytes2", "optim-bytes4"))
    adamw = {"optim-adamw-8bit", "optim-adamw-4bit", "optim-adamw-fp8", "optim-cpu-offload"}
    assert small == {"eager", *adamw}
    assert large >= {*small, "optim-adam-8bit", "optim-adam-4bit", "optim-adam-fp8"}


@needs_torchao
def test_every_recipe_of_torchao_runs() -> None:
    """Those of its enum, as they are and compiled: all in the larger model, the first in the small one."""
    words = {each.word for each in SUITE.offers.offers if each.backend == "float8"}
    plain = {word for word in words if not word.endswith(COMPILED)}
    assert {f"{word}{COMPILED}" for word in plain} == words - plain
    assert plain >= {"tensorwise", "rowwise", "rowwise-with-gw-hp"}
    assert planned("float8-bytes4") == {"eager", "inductor", *(f"float8-{word}" for word in words)}
    small = {"eager", "inductor", "float8-tensorwise", "float8-tensorwise-inductor"}
    assert planned("float8-bytes2") == small


def planned(model: str) -> set[str]:
    """The configurations of a model of the suite."""
    (entry,) = [each for each in SUITE.models() if each.name == model]
    return set(entry.configurations)


@pytest.mark.torch
def test_batches_differ_by_step_and_are_the_same_again() -> None:
    """Each step has its own, of the text; the first one is what is timed."""
    import torch

    from torchgauge.records import Workload
    from torchgauge.suites.llm.text import FIRST_ID, IDS
    from torchgauge.suites.lowbit.models import VOCABULARY, build

    sizes = (("blocks", 1), ("heads", 2), ("seq", 16), ("width", 32))
    workload = Workload("lowbit", "m", mode="loss_curve", batch=3, shape=sizes)
    built, again = build(workload, {}), build(workload, {})
    batches = [built.abilities["batches"](step)[0][0] for step in range(3)]
    assert torch.equal(batches[0], built.args[0])
    assert torch.equal(batches[2], again.abilities["batches"](2)[0][0])
    assert not torch.equal(batches[1], batches[2])
    assert batches[0].shape == (3, 17)
    assert int(min(each.min() for each in batches)) >= FIRST_ID
    assert int(max(each.max() for each in batches)) < FIRST_ID + IDS <= VOCABULARY
    assert VOCABULARY % 16 == 0
