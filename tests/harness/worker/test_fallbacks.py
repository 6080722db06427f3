"""Operators that run on the host through a fallback are found, counted and shown, and cost no measurement."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from typing import Any

import pytest

from torchgauge.harness.worker import profiled_step
from torchgauge.harness.worker.closer_look import UNFINISHED
from torchgauge.harness.worker.fallbacks import FALLBACK_COPY, SWITCHED_OFF, UNKNOWN, read
from torchgauge.records import Modifier, Result, Status

DEVICE = "npusim"
FALLBACKS = "fallback_ops=aten::gelu+aten::gelu_backward"
needs_device = pytest.mark.skipif(
    importlib.util.find_spec("torchgauge_npusim") is None, reason="the simulated device is not installed"
)

# --- reading a profile ---------------------------------------------------------------------------


def nested(rows: list[tuple[int, int, int, str, bool]]) -> list[profiled_step.Event]:
    """Events of which the rest does not matter."""
    return profiled_step.nested(profiled_step.Span(*row) for row in rows)


def no_kernel(*names: str) -> Callable[[str], bool]:
    """A device that serves ``names`` by its backend's fallback only."""
    return lambda name: name in names


def test_a_fallback_is_the_operator_around_its_copies() -> None:
    """Two copies of one call are one call; names are sorted by time, and overlapping times count once."""
    ms = 1_000_000
    events = nested(
        [
            (1, 0, 10 * ms, "aten::layer", False),
            (1, 1 * ms, 3 * ms, "aten::topk", False),
            (1, 1 * ms, 2 * ms, FALLBACK_COPY, False),
            (1, 2 * ms, 3 * ms, FALLBACK_COPY, False),
            (1, 4 * ms, 8 * ms, "aten::sort", False),
            (1, 4 * ms, 5 * ms, FALLBACK_COPY, False),
            (2, 4 * ms, 7 * ms, "aten::topk", False),
            (2, 5 * ms, 6 * ms, FALLBACK_COPY, False),
        ]
    )
    found = read(events, 0.012, no_kernel())
    assert found.names == ("aten::topk", "aten::sort")
    assert found.calls == 3
    assert found.share == pytest.approx(0.5)  # 2 ms of topk, then 4 ms in which both run
    assert found.unproven == ()


def test_a_copy_without_an_operator_around_it_is_counted() -> None:
    """The step's own regions are no operators: the copy alone is charged, without a name."""
    events = nested(
        [(1, 0, 10_000, "autograd::engine::evaluate_function: X", False), (1, 10, 20, FALLBACK_COPY, False)]
    )
    found = read(events, 1.0, no_kernel())
    assert found.names == ("an operator without a name",)
    assert found.share == pytest.approx(1e-8)


@pytest.mark.parametrize(
    ("around", "copy", "converts", "proves"),
    [
        ("aten::_to_copy", "aten::_copy_from", False, True),
        ("aten::_to_copy", "aten::_copy_from", True, False),  # autocast converts on the device
        ("aten::clone", "aten::_copy_from", False, False),  # autograd keeps what is overwritten
        ("aten::to", "aten::_copy_from_and_resize", False, True),
    ],
)
def test_a_move_proves_only_what_has_no_kernel(around: str, copy: str, converts: bool, proves: bool) -> None:
    """Between devices it is the fallback's; within the device, or below another operator, it is not."""
    events = nested(
        [
            (1, 50, 90, "aten::erf", False),
            (1, 60, 70, around, False),
            (1, 62, 68, copy, converts),
        ]
    )
    assert bool(read(events, 1.0, no_kernel("aten::erf")).names) is proves
    assert read(events, 1.0, no_kernel()).names == ()


def test_a_registered_fallback_without_a_copy_accuses_nobody() -> None:
    """It is counted apart, and what it calls inside is not counted with it."""
    events = nested(
        [(1, 0, 40, "aten::erf", False), (1, 10, 20, "aten::add", False), (1, 50, 60, "aten::mm", False)]
    )
    found = read(events, 1.0, no_kernel("aten::erf", "aten::add"))
    assert (found.names, found.unproven, found.text) == ((), ("aten::erf",), "")
    assert found.facts == {
        "fallback_ops": 0,
        "fallback_calls": 0,
        "fallback_share": 0.0,
        "fallback_unproven": 1,
        "fallback_unproven_names": "aten::erf",
    }


def test_a_row_holds_the_largest_names_only() -> None:
    """However many operators fell back, the number is whole and the list is capped."""
    spans = [(1, 100 * n, 100 * n + 50 - n, f"aten::op{n}", False) for n in range(30)]
    copies = [(1, 100 * n + 1, 100 * n + 2, FALLBACK_COPY, False) for n in range(30)]
    found = read(nested(spans + copies), 1e-3, no_kernel())
    assert found.facts["fallback_ops"] == 30
    assert str(found.facts["fallback_names"]).split(", ") == [f"aten::op{n}" for n in range(10)]
    assert found.text.startswith("30 operators (under 1% of the step) ran on the host: aten::op0, ")


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
