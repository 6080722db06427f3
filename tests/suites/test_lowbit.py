"""The suite of training in few bits: nothing that the installed torchao offers is left out."""

from __future__ import annotations

import importlib.util

import pytest

from torchgauge.harness.planning.configurations import bundled
from torchgauge.registry import load

needs_torchao = pytest.mark.skipif(importlib.util.find_spec("torchao") is None, reason="needs torchao")


def offered(backend: str, option: str) -> dict[str, str]:
    """What the configurations of ``backend`` have as ``option``, with the first one's name."""
    found: dict[str, str] = {}
    for name, each in bundled().items():
        if each.configuration.backend == backend:
            found.setdefault(str(dict(each.configuration.options)[option]), name)
    return found


def run_by_the_suite() -> set[str]:
    """The configurations that an entry of the suite names."""
    return {name for entry in load("torchgauge.suites", "lowbit").models() for name in entry.configurations}


@pytest.mark.torch
@needs_torchao
def test_every_optimizer_of_torchao_has_a_configuration_that_runs() -> None:
    """Its public classes, found among what it exports."""
    import torchao.optim
    from torch.optim import Optimizer

    there = {
        name
        for name, each in vars(torchao.optim).items()
        if isinstance(each, type) and issubclass(each, Optimizer) and not name.startswith("_")
    }
    ours = offered("low_bit_optimizer", "optimizer")
    assert there == set(ours)
    assert set(ours.values()) <= run_by_the_suite()


@pytest.mark.torch
@needs_torchao
def test_every_recipe_of_torchao_has_a_configuration_that_runs() -> None:
    """Those of its enum, eager and compiled."""
    from torchao.float8.config import Float8LinearRecipeName

    ours = offered("float8_training", "recipe")
    assert {each.value for each in Float8LinearRecipeName} == set(ours)
    names = {name for first in ours.values() for name in (first, f"{first}-inductor")}
    assert names <= run_by_the_suite()


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
