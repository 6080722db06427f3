"""``torchgauge check``: which checks there are, what a person types wrong, and the card."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from torchgauge.harness.checks.check_card import Card, Deviation

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


def test_list_shows_what_a_group_asks(invoke) -> None:
    """Each line has the name, the question and the part of torch."""
    done = invoke("check", "--list", "--group", "stream")
    assert done.exit_code == 0
    assert "stream.record_stream" in done.output
    assert "torch.Tensor.record_stream" in done.output
    assert "event.record" not in done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--device", "cpu", "--group", "streem"), "unknown group 'streem'; did you mean stream"),
        (
            ("--device", "cpu", "--checks", "tensor.copi"),
            "unknown check 'tensor.copi'; did you mean tensor.copy",
        ),
        ((), "no device is named"),
        (("--device", "cpu", "--tier", "smok"), "unknown tier 'smok'"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(tmp_path, words, message) -> None:
    """An unknown name ends with 2 and a suggestion."""
    done = check(tmp_path, *words)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert not (tmp_path / "store").exists()


def test_many_checks_of_one_reason_are_one_line_and_few_stay_in_their_group() -> None:
    """A device without torch had said the same reason 149 times."""
    names = ("a.x", "b.x", *(f"c.{number}" for number in range(5)), "d.x")
    reasons = ("alike", "other", *["many"] * 5, "alike")
    card = Card(
        "d", (), tuple(Deviation(n, "error", r, "api", True) for n, r in zip(names, reasons, strict=True))
    )
    assert [what for what, _ in card.alike] == [
        "a.x (api)",
        "b.x (api)",
        "5 checks: c.0, c.1, c.2 and 2 others",
        "d.x (api)",
    ]


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


@torch_here
@npusim_here
@pytest.mark.torch
@pytest.mark.full
def test_an_index_beyond_the_last_device_is_said_at_once(tmp_path) -> None:
    """With the exit code that nothing was checked, and without a row."""
    done = check(tmp_path, "--device", "npusim.5", "--checks", "tensor.copy")
    assert done.returncode == 3, done.stderr
    assert "has no index 5 here: it has 1 device" in done.stderr
    assert not (tmp_path / "store").exists()


@torch_here
@npusim_here
@pytest.mark.torch
@pytest.mark.full
def test_an_extension_that_raises_is_named_with_its_cause(tmp_path) -> None:
    """The driver's missing library is said, not the vague error around it."""
    done = check(
        tmp_path,
        "--device",
        "npusim",
        "--checks",
        "tensor.copy",
        TORCHGAUGE_NPUSIM_FAULT="raise_on_import",
    )
    assert done.returncode in (2, 3), done.stderr
    assert "driver.so" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


@torch_here
@npusim_here
@pytest.mark.torch
@pytest.mark.full
def test_a_hang_in_synchronize_costs_one_check(tmp_path) -> None:
    """The check that waits for the device is stopped and named; those beside it pass."""
    words = (
        "--device",
        "npu",
        "--checks",
        "device.context,device.synchronize,device.index",
        "--timeout",
        "10",
    )
    faults = {"TORCHGAUGE_NPUSIM_NAME": "npu", "TORCHGAUGE_NPUSIM_FAULT": "hang_in_synchronize"}
    done = check(tmp_path, *words, "--json", **faults)
    assert done.returncode == 1, done.stderr
    data = json.loads(done.stdout)
    assert data["counts"] == {"pass": 2, "timeout": 1}
    (found,) = data["cards"][0]["deviations"]
    assert found["check"] == "device.synchronize"
    assert "took longer than 10 s" in found["reason"]


@torch_here
@npusim_here
@pytest.mark.torch
@pytest.mark.full
def test_wrong_numbers_in_one_dtype_are_found(tmp_path) -> None:
    """A device that computes wrongly in bfloat16 fails where bfloat16 is checked and nowhere else."""
    words = ("--device", "npusim", "--group", "numerics", "--tier", "full", "--json")
    done = check(tmp_path, *words, TORCHGAUGE_NPUSIM_FAULT="wrong_in_bf16")
    assert done.returncode == 1, done.stderr
    unexpected = {each["check"] for each in json.loads(done.stdout)["cards"][0]["deviations"]}
    assert unexpected == {"numerics.product_bfloat16", "numerics.pointwise_bfloat16"}
