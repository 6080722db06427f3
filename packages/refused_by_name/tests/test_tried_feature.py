"""A device's name is let through in the functions that look at it, and nowhere else."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace

import pytest

from refused_by_name.command import try_features
from refused_by_name.tried_feature import FEATURES, TRIED, let_through

SOURCE = """
ALLOWED = 3

def of_a_list(x):
    allowed = {"cuda", "cpu"}
    if x.device.type not in allowed:
        raise ValueError(x.device.type)
    return ALLOWED

class Model:
    def of_one(self, x):
        return x.device.type == "cuda"
"""
NAMES = frozenset({"cuda", "xpu"})


def on(kind: str) -> SimpleNamespace:
    return SimpleNamespace(device=SimpleNamespace(type=kind))


def test_a_function_takes_the_device_beside_the_others(tmp_path, monkeypatch):
    """A list and a comparison let it through, whatever else is named stays out, and globals are its own."""
    (tmp_path / "lets_through.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("lets_through")
    with pytest.raises(ValueError, match="newcomer"):
        module.of_a_list(on("newcomer"))
    let_through("lets_through:of_a_list", "newcomer", NAMES)
    let_through("lets_through:Model.of_one", "newcomer", NAMES)
    assert module.of_a_list(on("newcomer")) == module.of_a_list(on("cuda")) == 3
    assert module.Model().of_one(on("newcomer"))
    assert module.Model().of_one(on("cuda"))
    assert not module.Model().of_one(on("cpu"))
    with pytest.raises(ValueError, match="another"):
        module.of_a_list(on("another"))


@pytest.mark.torch
def test_the_name_is_all_that_stands_between_flex_attention_and_a_device(monkeypatch):
    """As it is torch refuses the simulated accelerator; let through, the numbers are the host's."""
    assert set(FEATURES) == set(TRIED)
    monkeypatch.delenv("TORCH_DEVICE_BACKEND_AUTOLOAD", raising=False)  # torch registers the device by it
    monkeypatch.setattr(
        "refused_by_name.tried_feature.FEATURES", {"flex_attention": FEATURES["flex_attention"]}
    )
    (found,) = try_features(sys.executable, "npusim")
    assert found.as_it_is.startswith("ValueError: FlexAttention is only supported on")
    assert found.let_through == "works, as on the host"


def test_a_child_that_cannot_answer_says_so(tmp_path):
    """An interpreter that ends at once is told, and nothing is raised."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    ends = {row.as_it_is for row in try_features(str(python), "npusim")}
    assert ends == {"ended without an answer, with 3"}
