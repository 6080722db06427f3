"""``torchgauge check``: what a person types wrong, and the card."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest

torch_here = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
npusim_here = pytest.mark.skipif(
    importlib.util.find_spec("torchgauge_npusim") is None, reason="the simulated device is not installed"
)


def check(folder, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ``torchgauge check`` with a store in ``folder``."""
    command = [sys.executable, "-m", "torchgauge.cli.main", "check", *arguments]
    return subprocess.run(
        [*command, "--store", str(folder / "store"), "--threads", "1"],
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--device", "cpu", "--group", "streem"), "unknown group 'streem'; did you mean stream"),
        (
            ("--device", "cpu", "--checks", "tensor.copi"),
            "unknown check 'tensor.copi'; did you mean tensor.copy",
        ),
        ((), "no device was given"),
        (("--device", "cpu", "--tier", "smok"), "unknown tier 'smok'"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(tmp_path, words, message) -> None:
    """An unknown name ends with 2 and a suggestion."""
    done = check(tmp_path, *words)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert not (tmp_path / "store").exists()


@torch_here
@pytest.mark.torch
def test_the_card_of_the_host_has_nothing_unexpected(tmp_path) -> None:
    """The quick tier passes or says why not, with an exit code of 0; every deviation has a reason."""
    done = check(tmp_path, "--device", "cpu", "--tier", "smoke", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    (card,) = data["cards"]
    assert data["unexpected"] == []
    assert sum(group["passed"] for group in card["groups"]) >= 30
    assert {each["status"] for each in card["deviations"]} == {"unsupported"}
    assert all(each["reason"] for each in card["deviations"])


@torch_here
@npusim_here
@pytest.mark.torch
def test_the_card_of_a_device_names_what_it_lacks(tmp_path) -> None:
    """A device without memory statistics and without an operator: both are in the card, by name."""
    words = ("--device", "npusim", "--checks", "allocator.allocated,operators.basics,tensor.copy")
    faults = {"TORCHGAUGE_NPUSIM_MISSING_OPS": "aten::gelu", "TORCHGAUGE_NPUSIM_FAULT": "no_memory_stats"}
    done = check(tmp_path, *words, **faults)
    assert done.returncode in (0, 1), done.stderr
    assert "npusim: 1 of 3 checks pass" in done.stdout
    assert "aten::gelu" in done.stdout
    assert "torch.accelerator.memory_allocated" in done.stdout
