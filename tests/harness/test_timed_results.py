"""The results of timed steps are judged, and a step that answers from memory is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from torchgauge.records import Cause, Result, Status, times_count

pytestmark = pytest.mark.torch
LATE = {
    "inference": ("seventh", "calls_51_to_60", "second_after_tenth", "nan_on_fifth"),
    "training": ("seventh", "nan_on_fifth", "gradient_of_ninth"),
}
MEMORY = {"inference": ("by_version", "by_checksum", "by_sample"), "training": ("trained_from_memory",)}
CASES = [(mode, kind) for kinds in (LATE, MEMORY) for mode, names in kinds.items() for kind in names]


@pytest.fixture(scope="module")
def rows(
    make_sandbox: Callable[[], Any], cheats: Callable[..., dict[str, Any]]
) -> dict[tuple[str, str], Result]:
    """Return each row of a run with cheating code, by mode and configuration."""
    found = {}
    for mode in LATE:
        box = make_sandbox()
        kinds = ("honest", *(kind for at, kind in CASES if at == mode))
        setup = cheats(box, kinds)
        words = ("toy", "--models", "mlp", "--device", "cpu", "--mode", mode, "--measure-seconds", "1")
        done = box.measure(
            *words,
            *("--config", ",".join(("eager", *kinds)), "--config-file", setup["file"]),
            PYTHONPATH=setup["PYTHONPATH"],
        )
        assert done.returncode == 1, done.stderr[-4000:]
        found.update({(mode, row.case.configuration.name): row for row in box.rows()})
    return found


@pytest.mark.parametrize("mode", ["inference", "training"])
@pytest.mark.parametrize("name", ["eager", "honest"])
def test_right_results_pass_with_their_number(
    rows: dict[tuple[str, str], Result], mode: str, name: str
) -> None:
    """A row holds how many results were compared, and which rate of faults that excludes."""
    row = rows[mode, name]
    facts = dict(row.facts)
    assert (row.status, row.reason) == (Status.PASS, "")
    assert facts["timed_results"] >= 10
    assert facts["fault_rate_below"] == pytest.approx(3 / facts["timed_results"], rel=0.01)


@pytest.mark.parametrize(("mode", "kind"), [(mode, kind) for mode, kinds in LATE.items() for kind in kinds])
def test_a_wrong_result_between_the_checks_is_found(
    rows: dict[tuple[str, str], Result], mode: str, kind: str
) -> None:
    """Such code was right before timing and after it; now the step that was wrong is named."""
    row = rows[mode, kind]
    assert (row.status, row.cause is None) == (Status.FAIL_ACCURACY, False)
    assert row.reason.startswith("right before timing, wrong while timed: ")
    assert " (step " in row.reason
    assert not any(each.metric == "latency" and each.samples for each in row.measurements)


@pytest.mark.parametrize(("mode", "kind"), [(mode, kind) for mode, kinds in MEMORY.items() for kind in kinds])
def test_answers_from_memory_are_found(rows: dict[tuple[str, str], Result], mode: str, kind: str) -> None:
    """Such code follows its inputs, and computes only where they are new."""
    row = rows[mode, kind]
    assert (row.status, row.cause) == (Status.FAIL_ACCURACY, Cause.TOLERANCE)
    assert "answers from memory: a step takes " in row.reason
    assert dict(row.facts)["new_over_repeated_inputs"] > 2


def test_steps_that_are_faster_than_the_peak_are_marked(
    make_sandbox: Callable[[], Any], cheats: Callable[..., dict[str, Any]]
) -> None:
    """Such code answers from memory only after nine calls; its times enter no mean."""
    box = make_sandbox()
    kinds = ("honest", "from_the_tenth_call")
    setup = cheats(box, kinds)
    done = box.run(
        *("run", "micro", "--models", "matmul", "--device", "cpu", "--measure-seconds", "0.3"),
        *("--no-memory-probe", "--config", ",".join(("eager", *kinds)), "--config-file", setup["file"]),
        *("--store", str(box.store_path)),
        PYTHONPATH=setup["PYTHONPATH"],
    )
    rows = [row for row in box.rows() if dict(row.case.workload.shape)["n"] >= 512]
    found = [row for row in rows if row.faster_than_peak]
    assert len(rows) == 6
    assert {row.case.configuration.name for row in found} == {"from_the_tenth_call"}
    assert 2048 in {dict(row.case.workload.shape)["n"] for row in found}
    for row in found:
        assert row.status is Status.PASS
        assert not times_count(row.status.value, row.modifiers)
        assert " times the peak rate" in row.faster_than_peak
        assert f"faster_than_peak: {row.case_id}: {row.faster_than_peak}" in done.stdout + done.stderr
