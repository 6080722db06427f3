"""``torchgauge results scorecard`` on rows of a real device, measured twice by two operators."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from torchgauge.cli.main import cli

CHECKS = "quantization.float8,quantization.int4,quantization.float4,tensor.dtypes,profiler.host_side"


def measured(store: Path) -> Path:
    """The checks on the simulated accelerator, in a store of their own."""
    command = [sys.executable, "-m", "torchgauge", "check", "--device", "npusim", "--checks", CHECKS]
    subprocess.run([*command, "--store", str(store)], check=False, capture_output=True, timeout=600)
    return store


@pytest.mark.torch
def test_two_operators_of_a_device_get_the_same_points(tmp_path):
    """Two stores that were measured one after the other, with times of their own."""
    cards = []
    for name in ("one", "other"):
        store = measured(tmp_path / name)
        command = [sys.executable, "-m", "torchgauge", "results", "scorecard", "--device", "npusim", "--json"]
        done = subprocess.run(
            [*command, "--store", str(store)], check=False, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        (found,) = json.loads(done.stdout)["devices"]
        cards.append(found)
    points = [[(each["item"], each["evidence"], each["points"]) for each in card["items"]] for card in cards]
    assert points[0] == points[1]
    assert cards[0]["points"]["measured"] >= 3
    decided = {item for item, evidence, _ in points[0] if evidence == "measured"}
    assert {"features.float8", "features.float4", "features.int4", "features.profiling"} <= decided


def test_a_store_that_is_not_there_is_a_users_mistake(tmp_path):
    """Exit 2, as of every command."""
    from torchgauge.errors import UsageError

    with pytest.raises(UsageError):
        cli.main(["results", "scorecard", "--store", str(tmp_path / "none")], standalone_mode=False)
