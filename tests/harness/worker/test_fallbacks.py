"""Operators that run on the host through a fallback are found, counted and shown, and cost no measurement."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from typing import Any

import pytest

from torchgauge.harness.worker.closer_look import UNFINISHED
from torchgauge.harness.worker.fallbacks import SWITCHED_OFF, UNKNOWN
from torchgauge.records import Modifier, Result, Status

DEVICE = "npusim"
FALLBACKS = "fallback_ops=aten::gelu+aten::gelu_backward"
needs_device = pytest.mark.skipif(
    importlib.util.find_spec("torchgauge_npusim") is None, reason="the simulated device is not installed"
)

# --- one step of a real device -------------------------------------------------------------------


@pytest.fixture(scope="module")
def looked(child: Callable[..., Any]) -> dict[str, Any]:
    """What was found in each step of the child."""
    if importlib.util.find_spec("torchgauge_npusim") is None:
        pytest.skip("the simulated device is not installed")
    found: dict[str, Any] = child("child_fallbacks.py")
    return found


@pytest.mark.torch
@pytest.mark.parametrize("step", ["plain", "copied", "overwritten", "autocast"])
def test_no_fallback_is_invented(looked: dict[str, Any], step: str) -> None:
    """Computing in place, a copy that the model asks for, a kept clone and a conversion are no fallback."""
    assert looked[step]["fallback_ops"] == 0, looked[step]
    assert looked[step]["fallback_unproven"] > 0


@pytest.mark.torch
@pytest.mark.parametrize("step", ["backward", "again"])
def test_a_real_fallback_is_found(looked: dict[str, Any], step: str) -> None:
    """Both operators are named with their part of the step, also after a look that failed."""
    found = looked[step]
    assert set(found["fallback_names"].split(", ")) == {"aten::topk", "aten::sort"}
    assert (found["fallback_ops"], found["fallback_calls"]) == (2, 2)
    assert 0 < found["fallback_share"] <= 1
    assert "ran on the host" in found["text"]


@pytest.mark.torch
def test_a_fallback_that_hides_is_found_by_its_moves(looked: dict[str, Any]) -> None:
    """One that copies in its own way, without PyTorch's, is seen by what crosses between the devices."""
    assert looked["hidden"]["fallback_names"] == "aten::erf"
    assert looked["hidden"]["fallback_calls"] == 2


@pytest.mark.torch
def test_a_look_that_fails_gives_its_reason(looked: dict[str, Any]) -> None:
    """A step that raises under the profiler raises nothing here."""
    assert looked["raises"] == "ValueError: no more"


# --- whole runs ----------------------------------------------------------------------------------


def fallback_facts(row: Result) -> dict[str, Any]:
    """The facts of ``row`` that speak of fallbacks."""
    return {name: value for name, value in row.facts if name.startswith("fallback_")}


@pytest.fixture(scope="module")
def transformer(make_sandbox: Callable[[], Any]) -> tuple[Any, str, dict[tuple[str, str], Result]]:
    """A model on a device with fallbacks and on the host: sandbox, last words, rows by device and config."""
    sandbox = make_sandbox()
    done = sandbox.measure(
        *("toy/transformer", "--device", f"{DEVICE},cpu", "--config", "eager,aot_eager"),
        TORCHGAUGE_NPUSIM_FAULT=FALLBACKS,
    )
    assert done.returncode == 0, done.stderr
    rows = {(row.case.device.name, row.case.configuration.name): row for row in sandbox.rows()}
    return sandbox, done.stderr, rows


@needs_device
@pytest.mark.torch
@pytest.mark.parametrize("configuration", ["eager", "aot_eager"])
def test_a_pass_with_fallbacks_is_degraded(transformer: Any, configuration: str) -> None:
    """It stays a pass with all its numbers, is marked, and names the operator and its part of the step."""
    row = transformer[2][DEVICE, configuration]
    assert row.status is Status.PASS
    assert Modifier.DEGRADED in row.modifiers
    facts = fallback_facts(row)
    assert (facts["fallback_ops"], facts["fallback_names"]) == (1, "aten::gelu")
    assert 0 < facts["fallback_share"] < 1
    assert "ran on the host: aten::gelu" in row.degraded
    assert any(each.metric == "latency" and each.samples for each in row.measurements)
    assert UNKNOWN not in facts


@needs_device
@pytest.mark.torch
@pytest.mark.parametrize("configuration", ["eager", "aot_eager"])
def test_the_host_is_not_looked_at(transformer: Any, configuration: str) -> None:
    """There is nothing that it could fall back to: no fact, no mark."""
    row = transformer[2]["cpu", configuration]
    assert fallback_facts(row) == {}
    assert Modifier.DEGRADED not in row.modifiers


@needs_device
@pytest.mark.torch
def test_a_person_is_told(transformer: Any) -> None:
    """The run's last words, its rows and its reports all say that the pass is none by the path asked for."""
    sandbox, last_words, rows = transformer
    assert "2 of them degraded" in last_words
    store = ("--store", str(sandbox.store_path))
    run_id = sandbox.folder().run_id
    words = "pass, but 1 operator ("
    assert words in last_words
    assert words in sandbox.run("results", "show", run_id, *store).stdout
    assert words in sandbox.run("results", "show", rows[DEVICE, "eager"].case_id, *store).stdout
    markdown = sandbox.run("report", run_id, *store).stdout
    assert "**Degraded passes: 2**" in markdown
    assert "ran on the host: aten::gelu" in markdown
    junit = sandbox.run("report", run_id, "--format", "junit", *store).stdout
    assert junit.count(f'<skipped message="{words}') == 2
    told = json.loads(sandbox.run("report", run_id, "--format", "json", *store).stdout)
    assert sum("ran on the host" in each["degraded"] for each in told["cases"]) == 2
    site = sandbox.store_path.parent / "site"
    built = sandbox.run("dashboard", "build", str(sandbox.store_path), "--out", str(site))
    assert built.returncode == 0, built.stderr
    pages = {path.name: path.read_text() for path in site.rglob("*.html")}
    assert "1 op on host, " in pages["compatibility.html"]
    assert any("ran on the host: aten::gelu" in text for text in pages.values())


@needs_device
@pytest.mark.torch
@pytest.mark.full
def test_it_can_be_switched_off(sandbox: Any) -> None:
    """The row says so, and its command repeats it."""
    done = sandbox.measure(
        *("toy/transformer", "--device", DEVICE, "--config", "eager", "--no-fallback-check"),
        TORCHGAUGE_NPUSIM_FAULT=FALLBACKS,
    )
    assert done.returncode == 0, done.stderr
    (row,) = sandbox.rows()
    assert fallback_facts(row) == {UNKNOWN: SWITCHED_OFF}
    assert Modifier.DEGRADED not in row.modifiers
    assert "--no-fallback-check" in row.reproduce


@needs_device
@pytest.mark.torch
def test_a_step_that_dies_under_the_profiler_takes_nothing_with_it(sandbox: Any) -> None:
    """Raising, hanging or crashing there leaves a pass with its numbers, and what is not known and why."""
    names = ("raises_while_profiled", "hangs_while_profiled", "segfault_while_profiled")
    done = sandbox.measure(
        *("faults", "--device", DEVICE, "--config", "eager", "--timeout", "10"),
        *("--models", ",".join((*names, "after_segfault_while_profiled"))),
    )
    assert done.returncode == 0, done.stderr
    rows = {row.case.workload.model: row for row in sandbox.rows()}
    for name in names:
        row = rows[name]
        assert row.status is Status.PASS, row.reason
        assert set(row.modifiers) <= {Modifier.UNSTEADY}  # which a busy machine may add
        assert any(each.metric == "latency" and each.samples for each in row.measurements)
    unknown = {name: fallback_facts(rows[name]) for name in names}
    assert unknown == {
        "raises_while_profiled": {UNKNOWN: "ValueError: not while somebody looks"},
        "hangs_while_profiled": {UNKNOWN: UNFINISHED},
        "segfault_while_profiled": {UNKNOWN: UNFINISHED},
    }
    assert rows["raises_while_profiled"].teardown == ""
    assert rows["hangs_while_profiled"].teardown.startswith("hung in phase check and was killed")
    assert "SIGSEGV" in rows["segfault_while_profiled"].teardown
    assert fallback_facts(rows["after_segfault_while_profiled"])["fallback_ops"] == 0
