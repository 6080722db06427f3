"""All state is restored before every compared run, and a back end that changes it is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from torchgauge.records import Cause, Result, Status

pytestmark = pytest.mark.torch
RIGHT = {
    "inference": (
        "hook_writes",
        "averages",
        "averages_in_data",
        "averages_each_tenth",
        "caches_each_tenth",
        "caches_in_a_layer",
        "toggles",
        "flips_a_flag",
        "flips_a_sign",
        "settles",
        "norms",
        "tokens",
        "offsets",
        "refuses",
        "overflows",
        "large_cache",
        "large_position",
        "large_places",
        "large_padded",
        "large_zeros",
    ),
    "training": (
        "averages",
        "caches_each_tenth",
        "toggles",
        "flips_a_flag",
        "norms",
        "gradients",
        "tokens",
        "offsets",
        "large_cache",
        "large_position",
    ),
}
WRONG = {
    "inference": {
        "stale_tokens": "out: the result is unchanged although the inputs changed",
        "counts_in_a_layer": "after.attribute.linear.calls: 0 instead of 1",
        "notes_in_a_layer": "after.attribute.linear.notes.calls: 0 instead of 1",
        "hook_writes": "structure differs: after.attribute.linear.last",
        "averages": "after.parameter.model.mean: largest error",
        "averages_in_data": "after.parameter.model.mean: largest error",
        "toggles": "after.parameter.other.",
        "flips_a_flag": "after.attribute.model.flag: False instead of True",
        "flips_a_sign": "after.parameter.linear.weight: largest error",
        "permutes": "compiled code, unlike eager, changes state: parameter.linear.weight",
        "freezes": "compiled code, unlike eager, changes state: parameter.linear.bias.requires_grad",
        "scales": "compiled code, unlike eager, changes state: attribute.model.scale",
        "scales_a_tensor": "compiled code, unlike eager, changes state: attribute.model.scale",
        "replaces": "compiled code, unlike eager, changes state: parameter.linear.weight",
        "writes_late": "correct at first, ",
        "counts_twice": "correct at first, wrong in a later step: after.attribute.model.calls: ",
        "stale": "out: the result is unchanged although the inputs changed",
        "stale_mask": "out: the result is unchanged although the inputs changed",
        "stale_norm": "out: the result is unchanged although the inputs changed",
        "stale_choice": "out: the result is unchanged although the inputs changed",
        "specialised": "wrong with other inputs: out: largest error",
        "specialised_in_a_range": "wrong with other inputs: out: largest error",
        "calibrated_in_a_buffer": "wrong with other inputs: ",
        "calibrated": "wrong with other inputs: out: largest error",
        "large_lost": "after.attribute.model.cache: largest error",
        "large_wrong": "after.attribute.model.cache: largest error",
        "large_elsewhere": "after.attribute.model.cache.elsewhere: largest error",
        "large_baked": (  # which one is found depends on the new inputs, which are random
            "wrong with other inputs: after.attribute.model.cache",
            "after.attribute.model.cache: the result is unchanged although the inputs changed",
        ),
        "named_elsewhere": "structure differs: ",
        "large_late": "correct at first, wrong in a later step: after.attribute.model.cache",
    },
    "training": {
        "averages": "iteration0.change.mean: largest error",
        "toggles": "structure differs: iteration0.",
        "permutes": "iteration0.change.linear.weight: largest error",
        "freezes": "compiled code, unlike eager, changes state: parameter.linear.bias.requires_grad",
        "evaluates": "compiled code, unlike eager, changes state: attribute.norm.training",
        "scales": "compiled code, unlike eager, changes state: attribute.model.scale",
        "counts_twice": "correct at first, wrong in a later step: after.attribute.model.calls: ",
        "moves_its_mean": "correct at first, wrong in a later step: after.buffer.norm.running_mean: ",
        "wrong_slope": "correct at first, wrong in a later step: iteration0.input_grad.args.1: ",
        "stale_training": "iteration0.",
        "specialised": "wrong with other inputs: iteration0.",
    },
}
"""Programs whose back end is wrong, and its reason."""
FILE = "configurations:\n  - {name: broken, doc: x, backend: broken}\n"
Rows = dict[str, Result]


@pytest.fixture(scope="module")
def rows(make_sandbox: Callable[[], Any]) -> Rows:
    """Return each row by model, configuration and mode."""
    found: Rows = {}
    for mode, wrong in WRONG.items():
        box = make_sandbox()
        file = box.store_path.with_name("states.yaml")
        file.write_text(FILE, encoding="utf-8")
        models = ",".join(dict.fromkeys([*wrong, *RIGHT[mode]]))
        done = box.measure(
            *("states", "--models", models, "--device", "cpu", "--config", "eager,broken,aot_eager"),
            *("--mode", mode, "--config-file", str(file), "--no-fallback-check", "--measure-seconds", "0.2"),
        )
        assert done.returncode == 1, done.stderr[-4000:]
        for one in box.rows():
            found[f"{one.case.workload.model} {one.case.configuration.name} {mode}"] = one
    return found


@pytest.mark.parametrize(("mode", "model"), [(mode, model) for mode in RIGHT for model in RIGHT[mode]])
def test_a_program_with_state_passes(rows: Rows, mode: str, model: str) -> None:
    """The kind of state and the call that changes it do not matter, in eager and in compiled code."""
    for name in ("eager", "aot_eager", *(["broken"] if model not in WRONG[mode] else [])):
        row = rows[f"{model} {name} {mode}"]
        assert (row.status, row.reason) == (Status.PASS, ""), name


@pytest.mark.parametrize(("mode", "model"), [(mode, model) for mode in WRONG for model in WRONG[mode]])
def test_the_back_end_that_is_wrong_is_named(rows: Rows, mode: str, model: str) -> None:
    """A back end adds or loses a change of state, or does not follow its inputs; eager passes."""
    assert (rows[f"{model} eager {mode}"].status, rows[f"{model} eager {mode}"].reason) == (Status.PASS, "")
    row = rows[f"{model} broken {mode}"]
    assert (row.status, row.cause) == (Status.FAIL_ACCURACY, Cause.TOLERANCE)
    assert row.reason.startswith(WRONG[mode][model])


VIEWS = """import torch

IMAGES = torch.rand(8, 1 << 19)
SHOWN = [IMAGES[number % 8] for number in range(4000)]


class Reads(torch.nn.Module):
    def forward(self, x):
        return x + SHOWN[3][:64]


def reads():
    return Reads(), (torch.randn(8, 64),)
"""
"""A program that holds 8 GiB if each of its views is counted, and 16 MiB of memory."""
CACHE = """import torch


class Caches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = torch.zeros(1 << 17, 1 << 10)

    def forward(self, x):
        self.cache[:8] = x
        return self.cache[:16].softmax(-1)


def caches():
    return Caches(), (torch.randn(8, 1 << 10),)
"""
"""A program with a cache of 512 MiB, of which a call writes 32 KiB."""


@pytest.mark.parametrize(("program", "limit"), [(VIEWS, "2500M"), (CACHE, "3000M")], ids=["views", "cache"])
def test_copies_of_state_do_not_exhaust_memory(
    make_sandbox: Callable[[], Any], program: str, limit: str
) -> None:
    """TorchBench's LearningToPaint and llama ended in `oom` because of copies that the checks made.

    The one holds 2,000 images 100 times, the other 2 GB of caches that each observation copied.
    """
    box = make_sandbox()
    file = box.store_path.with_name("mine.py")
    file.write_text(program, encoding="utf-8")
    limited = ("--memory-limit", limit, "--no-memory-probe", "--no-fallback-check")
    done = box.measure(str(file), "--device", "cpu", "--config", "eager", "--mode", "inference", *limited)
    assert [(row.status, row.reason) for row in box.rows()] == [(Status.PASS, "")], done.stderr[-4000:]
