"""Every fault that can be planted in the simulated device is found and named by `torchgauge check`.

The quick table plants the gentle faults together, as each is looked for by a check of its own, and those that
take the device away one by one. The full one runs the whole card once for each fault.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch
DRIVER = "lib{device}_driver.so"


@dataclass(frozen=True)
class Planted:
    """A fault, the check that must find it, and the status and words that must name it."""

    check: str
    status: str
    words: str
    fault: str = ""
    missing: str = ""
    exit_code: int = 1


GENTLE = {
    "missing operator": Planted(
        "operators.data_dependent", "unsupported", "aten::topk", missing="aten::topk", exit_code=0
    ),
    "wrong result in bf16": Planted(
        "numerics.product_bfloat16", "error", "bfloat16 matmul", fault="wrong_in_bf16"
    ),
    "missing events": Planted(
        "event.record", "unsupported", "doesn't support events", fault="no_events", exit_code=0
    ),
    "no memory statistics": Planted(
        "allocator.allocated",
        "unsupported",
        "there is no torch.npu.memory_allocated",
        fault="no_memory_stats",
        exit_code=0,
    ),
    "nondeterminism": Planted("numerics.repeatable", "error", "differ bitwise", fault="nondeterministic"),
    "wrong device index": Planted(
        "device.index",
        "error",
        "the current index is 1, but a new tensor is on npu:0",
        fault="wrong_device_index",
    ),
    "fallback for a family in a training step": Planted(
        "operators.fallback", "error", "fell back to the host: aten::gelu", fault="fallback_ops=aten::*gelu*"
    ),
    "fallback for another family": Planted(
        "operators.fallback_families",
        "error",
        "fell back to the host: aten::_linalg_solve_ex, aten::linalg_vector_norm",
        fault="fallback_ops=aten::*linalg*",
    ),
}
SEVERE = {
    "raising autoload": Planted(
        "autoload.fresh_import",
        "infra",
        "caused by OSError: libnpu_driver.so: cannot open",
        fault="raise_on_import",
        exit_code=3,
    ),
    "import fails without the driver": Planted(
        "autoload.import_without_stack",
        "error",
        "OSError: libnpu_driver.so: cannot open",
        fault="raise_without_driver",
    ),
    "hang in synchronize": Planted(
        "device.synchronize", "timeout", "phase check took longer than", fault="hang_in_synchronize"
    ),
    "full memory": Planted(
        "allocator.allocated", "oom", "npu out of memory", fault="oom_after_bytes=1000000"
    ),
    "lost device": Planted(
        "operators.basics", "infra", "device lost", fault="vanish_after_calls=30", exit_code=3
    ),
}


def run_check(
    folder: Path, *words: str, faults: str = "", missing: str = "", **variables: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run the checks that ``words`` choose; the finished process and what it printed as JSON."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("TORCHGAUGE_NPUSIM_")}
    (folder / DRIVER.format(device="npu")).touch()
    fixed = ("--json", "--store", str(folder / "store"), "--threads", "1")
    done = subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", "check", *words, *fixed],
        env={
            "TORCHGAUGE_NPUSIM_NAME": "npu",
            **inherited,
            "OMP_NUM_THREADS": "1",
            "LD_LIBRARY_PATH": str(folder),
            "TORCHGAUGE_NPUSIM_FAULT": faults,
            "TORCHGAUGE_NPUSIM_MISSING_OPS": missing,
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.stdout, done.stderr
    return done, json.loads(done.stdout)


def deviations(data: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Status and reason of each check that did not pass."""
    (card,) = data["cards"]
    return {each["check"]: (each["status"], each["reason"]) for each in card["deviations"]}


def assert_named(found: dict[str, tuple[str, str]], planted: Planted) -> None:
    """The check that looks for the fault deviates, and its reason says what was planted."""
    status, reason = found.get(planted.check, ("pass", ""))
    assert status == planted.status, found
    assert planted.words in reason


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """Deviations of one run with all gentle faults, only the checks that look for them."""
    # The two fallbacks are one fault with two families.
    handed = [each.fault for each in GENTLE.values() if "fallback_ops" in each.fault]
    families = "+".join(fault.partition("=")[2] for fault in handed)
    others = [each.fault for each in GENTLE.values() if each.fault and "=" not in each.fault]
    _, data = run_check(
        tmp_path_factory.mktemp("together"),
        *("--device", "npu", "--checks", ",".join(each.check for each in GENTLE.values())),
        faults=",".join([*others, f"fallback_ops={families}"]),
        missing=",".join(each.missing for each in GENTLE.values() if each.missing),
    )
    return deviations(data)


@pytest.mark.parametrize("name", GENTLE)
def test_a_fault_is_found_and_named(together: dict[str, tuple[str, str]], name: str) -> None:
    """The row of the check that looks for it says what is wrong."""
    assert_named(together, GENTLE[name])


@pytest.mark.parametrize("name", SEVERE)
def test_a_fault_that_takes_the_device_is_found_and_named(tmp_path: Path, name: str) -> None:
    """Its row says so, and the exit code that something is wrong or incomplete."""
    planted = SEVERE[name]
    words = ("--device", "npu", "--checks", planted.check, "--timeout", "10" if "hang" in name else "120")
    done, data = run_check(tmp_path, *words, faults=planted.fault)
    assert_named(deviations(data), planted)
    assert done.returncode == planted.exit_code, done.stderr


def test_without_a_fault_none_of_these_checks_finds_one(tmp_path: Path) -> None:
    """The healthy device passes every check of the tables."""
    checks = {each.check for each in (*GENTLE.values(), *SEVERE.values())}
    done, data = run_check(tmp_path, "--device", "npu", "--checks", ",".join(sorted(checks)))
    assert (done.returncode, deviations(data)) == (0, {}), done.stderr


@pytest.mark.full
@pytest.mark.parametrize("name", [*GENTLE, *SEVERE])
def test_the_whole_card_finds_each_fault(tmp_path: Path, healthy: dict[str, Any], name: str) -> None:
    """The whole card differs from the healthy one, and there too the row names the fault."""
    planted = {**GENTLE, **SEVERE}[name]
    fault = planted.fault.replace("vanish_after_calls=30", "vanish_after_calls=500")
    timeout = "10" if "hang" in name else "120"
    done, data = run_check(
        tmp_path, "--device", "npu", "--timeout", timeout, faults=fault, missing=planted.missing
    )
    found, usual = deviations(data), deviations(healthy)
    new = {check: found[check] for check in found if found[check] != usual.get(check)}
    assert any(status == planted.status and planted.words in reason for status, reason in new.values()), new
    assert done.returncode == planted.exit_code, done.stderr


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The whole card of the device without a fault."""
    _, data = run_check(tmp_path_factory.mktemp("healthy"), "--device", "npu")
    return data


@pytest.mark.full
@pytest.mark.parametrize("device", ["npu", "cpu"])
def test_a_healthy_device_raises_no_alarm(tmp_path: Path, device: str) -> None:
    """The whole card: nothing is unexpected, and every deviation carries its reason."""
    done, data = run_check(tmp_path, "--device", device)
    assert (done.returncode, data["unexpected"]) == (0, []), done.stderr
    assert all(status == "unsupported" and reason for status, reason in deviations(data).values())


def test_a_package_without_an_entry_point_is_missing_and_says_so(
    tmp_path: Path, without_entry: Callable[[Path], str]
) -> None:
    """Installed but not loaded by import torch: the error names the package, the group and what to add."""
    folder = without_entry(tmp_path / "site")
    words = ("--device", "npusim", "--checks", "tensor.copy", "--store", str(tmp_path / "store"))
    done = subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", "check", *words],
        env={**os.environ, "PYTHONPATH": folder},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "torchgauge-npusim 0.1.0 is installed without an entry point in torch.backends" in done.stderr
    assert 'add [project.entry-points."torch.backends"]' in done.stderr
    assert "Traceback" not in done.stderr


def test_a_package_that_only_its_adapter_imports_fails_the_check_of_the_entry(
    tmp_path: Path, without_entry: Callable[[Path], str], by_name: Callable[[Path], Path]
) -> None:
    """Where a session imports the package by name the device works, and users of plain torch have none."""
    path = os.pathsep.join([without_entry(tmp_path / "site"), str(by_name(tmp_path / "adapter"))])
    _, data = run_check(
        tmp_path,
        *("--device", "byname", "--checks", "autoload.entry_point,autoload.fresh_import,tensor.copy"),
        PYTHONPATH=path,
        TORCHGAUGE_NPUSIM_NAME="byname",
    )
    found = deviations(data)
    assert set(found) == {"autoload.entry_point", "autoload.fresh_import"}
    assert "no installed package declares a torch.backends entry point" in found["autoload.entry_point"][1]
