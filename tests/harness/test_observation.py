"""What is compared: whole outputs, changed inputs and buffers, before and after timing; and who ran it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from torchgauge.records import Cause, Modifier, Phase, Result, Status

pytestmark = pytest.mark.torch
WORDS = ("observed", "--device", "cpu", "--config", "eager,aot_eager", "--mode", "inference,training,unseen")


@pytest.fixture(scope="module")
def rows(make_sandbox: Callable[[], Any]) -> dict[str, Result]:
    """Each model's row, by name, configuration and, unless it is inference, mode."""
    box = make_sandbox()
    done = box.measure(*WORDS)
    assert done.returncode == 1, done.stderr[-4000:]
    found = {}
    for each in box.rows():
        mark = "" if each.case.workload.mode == "inference" else f" {each.case.workload.mode}"
        found[f"{each.case.workload.model} {each.case.configuration.name}{mark}"] = each
    return found


def marks(row: Result) -> set[Modifier]:
    """The row's modifiers, but for what a busy machine adds."""
    return set(row.modifiers) - {Modifier.UNSTEADY}


def latency(row: Result) -> bool:
    """Whether the row has step times."""
    return any(each.metric == "latency" and each.samples for each in row.measurements)


@pytest.mark.parametrize(
    ("case", "elements"),
    [
        ("returns_a_box aot_eager", 4 * 64),
        ("writes_its_input aot_eager", 2 * 4 * 64),
        ("counts_in_a_buffer aot_eager", 4 * 64 + 3),
        ("wrong_later aot_eager", 4 * 64),
        ("one_small_break aot_eager", 4 * 64),
        ("finds_more_in_float64 aot_eager", 4 * 64 + 8 + 1),
        ("has_a_mask aot_eager training", 2 * (1 + 2 * (64 * 64 + 64) + 3 * 64 * 64 + 2 * 3)),
    ],
)
def test_a_row_says_how_much_was_compared(rows: dict[str, Result], case: str, elements: int) -> None:
    """What is right passes, in a box, through its input or its buffer, and every element of it counts."""
    row = rows[case]
    assert (row.status, row.reason, marks(row)) == (Status.PASS, "", set())
    assert dict(row.facts)["compared_elements"] == elements


@pytest.mark.parametrize("configuration", ["eager", "aot_eager"])
def test_what_cannot_be_compared_fails_with_its_path(rows: dict[str, Result], configuration: str) -> None:
    """A generator among the outputs was dropped, and what was left of them passed."""
    row = rows[f"returns_a_handle {configuration}"]
    assert (row.status, row.phase) == (Status.ERROR, Phase.EAGER)
    assert row.reason.startswith("out.more.0 is a builtins.generator, which cannot be compared; try: return")
    assert not latency(row)


def test_an_answer_from_memory_fails(rows: dict[str, Result]) -> None:
    """Every step has the same inputs, so it is right each time, and of no use."""
    assert rows["remembers_its_answer eager"].status is Status.PASS
    row = rows["remembers_its_answer aot_eager"]
    assert (row.status, row.phase, row.cause) == (Status.FAIL_ACCURACY, Phase.ACCURACY, Cause.TOLERANCE)
    assert row.reason == "out: the result is unchanged although the inputs changed"
    assert not latency(row)


@pytest.mark.parametrize("configuration", ["eager", "aot_eager"])
def test_an_observation_of_nothing_fails(rows: dict[str, Result], configuration: str) -> None:
    """Nothing is equal to nothing, and says nothing."""
    row = rows[f"returns_nothing {configuration}"]
    assert (row.status, row.phase) == (Status.ERROR, Phase.ACCURACY)
    assert row.reason.startswith("the model returned nothing that could be compared; try: return the result")
    assert dict(row.facts)["compared_elements"] == 0


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("wrong_in_a_box", "out.held.layers.0: largest error 0.5 "),
        ("wrong_in_words", "out.label: 'dog' instead of 'cat'"),
        ("writes_its_input_wrong", "after.args.0: largest error 1 "),
        ("counts_wrong", "after.buffer.model.seen: largest error 1 "),
    ],
)
def test_a_compiler_is_found_wrong_wherever_it_is(rows: dict[str, Result], model: str, path: str) -> None:
    """In an object, in text, in an input or in a buffer: eager passes, and the compiled case fails."""
    assert rows[f"{model} eager"].status is Status.PASS
    row = rows[f"{model} aot_eager"]
    assert (row.status, row.cause) == (Status.FAIL_ACCURACY, Cause.TOLERANCE)
    assert row.reason.startswith(path)


@pytest.mark.parametrize(
    "case", ["wrong_later eager", "wrong_later eager training", "wrong_after_recompiling aot_eager"]
)
def test_what_goes_wrong_while_it_is_timed_fails(rows: dict[str, Result], case: str) -> None:
    """It was right before the rounds: a result of a timed step, or an observation after them, was wrong."""
    row = rows[case]
    assert (row.status, row.cause, row.phase) == (Status.FAIL_ACCURACY, Cause.TOLERANCE, Phase.ACCURACY)
    assert row.reason.startswith("correct at first, ")
    assert re.search(r", wrong [0-9,]+ steps? later: |wrong in a later step: .* \(step ", row.reason)
    assert not latency(row)


@pytest.mark.parametrize("mark", ["", " training"])
def test_a_body_beside_one_small_graph_is_degraded(rows: dict[str, Result], mark: str) -> None:
    """One graph was captured, and nearly all of the step runs operator by operator."""
    row = rows[f"one_small_graph aot_eager{mark}"]
    values = {each.metric: each for each in row.measurements}
    assert values["graph_count"].samples[0] >= 1
    assert (row.status, marks(row)) == (Status.PASS, {Modifier.DEGRADED})
    share = dict(row.facts)["compiled_share"]
    assert isinstance(share, float)
    assert share < 0.2
    assert f"{share:.0%} of the step ran in compiled code" in row.degraded


@pytest.mark.parametrize("mark", ["", " training"])
def test_a_graph_break_alone_degrades_nothing(rows: dict[str, Result], mark: str) -> None:
    """What is on both sides of it is compiled, forward and backward."""
    row = rows[f"one_small_break aot_eager{mark}"]
    assert marks(row) == set()
    share = dict(row.facts)["compiled_share"]
    assert isinstance(share, float)
    assert share > 0.9


@pytest.mark.parametrize("configuration", ["eager", "aot_eager"])
def test_a_scenario_without_an_oracle_has_no_passes(rows: dict[str, Result], configuration: str) -> None:
    """A third party's that has no observe() is measured, and nobody says that it is right."""
    row = rows[f"returns_a_box {configuration} unseen"]
    assert (row.status, marks(row), row.counted) == (Status.PASS, {Modifier.UNCHECKED}, False)
    assert row.unchecked == "the scenario unseen has no observe(), so results are not compared"


@pytest.fixture(scope="module")
def unchecked(make_sandbox: Callable[[], Any]) -> tuple[str, dict[str, Result]]:
    """What a run without checks says at its end, and its rows by configuration."""
    box = make_sandbox()
    done = box.measure("observed", "--models", "wrong_in_words", *WORDS[1:5], "--no-accuracy")
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout + done.stderr, {each.case.configuration.name: each for each in box.rows()}


@pytest.mark.parametrize("configuration", ["eager", "aot_eager"])
def test_what_nothing_checked_is_no_pass(
    unchecked: tuple[str, dict[str, Result]], configuration: str
) -> None:
    """The row keeps its numbers, says that nobody knows whether they are right, and is not counted."""
    said, rows = unchecked
    row = rows[configuration]
    assert (row.status, marks(row), row.counted) == (Status.PASS, {Modifier.UNCHECKED}, False)
    assert row.unchecked == "--no-accuracy turned the check off"
    assert "compared_elements" not in dict(row.facts)
    assert latency(row)
    assert "0/2 pass: 2 pass (2 not counted)" in said


def test_each_of_many_configurations_runs_compiled(sandbox: Any) -> None:
    """Dynamo keeps eight codes of a function at most, and each configuration has its own."""
    names = [f"fused_{size}" for size in range(60, 69)]
    lines = [
        f"  - {{name: {name}, doc: x, backend: inductor, options: {{max_fusion_size: {name[6:]}}}}}\n"
        for name in names
    ]
    file = sandbox.store_path.with_name("many.yaml")
    file.write_text("configurations:\n" + "".join(lines), encoding="utf-8")
    words = ("toy", "--models", "mlp", "--device", "cpu", "--mode", "inference", "--config-file", str(file))
    done = sandbox.measure(*words, "--config", ",".join(["eager", *names]))
    assert done.returncode == 0, done.stderr[-4000:]
    rows = {row.case.configuration.name: row for row in sandbox.rows()}
    assert rows.keys() == {"eager", *names}
    for row in rows.values():
        assert (row.status, row.reason, row.degraded) == (Status.PASS, "", "")
