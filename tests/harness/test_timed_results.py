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
MEMORY = {
    "inference": (
        *(
            "by_version",
            "by_checksum",
            "by_sample",
            "by_content",
            "from_the_fourth_call",
            "from_the_200th_call",
        ),
        *("by_all", "by_all_again"),
    ),
    "training": ("trained_from_memory",),
}
LATER = "correct at first, wrong in a later step: "
OTHERS = {
    "strides_of_tenth": (
        Status.FAIL_ACCURACY,
        f"{LATER}out: strides (1, 32)",
    ),
    "in_one_memory": (
        Status.FAIL_ACCURACY,
        f"{LATER}out: memory of an earlier",
    ),
    "in_blocks": (Status.FAIL_ACCURACY, "out: the result is unchanged although the inputs changed"),
    "by_a_mode": (Status.FAIL_ACCURACY, LATER),
}
"""Other cheats in inference, with the status of their rows and the beginning of the reason."""
CASES = [
    *((mode, kind) for kinds in (LATE, MEMORY) for mode, names in kinds.items() for kind in names),
    *(("inference", kind) for kind in OTHERS),
]


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
        words = ("toy", "--models", "mlp", "--device", "cpu", "--mode", mode, "--store", str(box.store_path))
        done = box.run(
            *("run", *words, *box.quick, "--measure-seconds", "1"),
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
    """A row holds how many results were compared, and which rate of faults the random ones exclude."""
    row = rows[mode, name]
    facts = dict(row.facts)
    assert (row.status, row.reason) == (Status.PASS, "")
    assert facts["timed_results"] >= 10
    assert 3 / facts["timed_results"] < facts["fault_rate_below"] <= 1


@pytest.mark.parametrize(("mode", "kind"), [(mode, kind) for mode, kinds in LATE.items() for kind in kinds])
def test_a_wrong_result_between_the_checks_is_found(
    rows: dict[tuple[str, str], Result], mode: str, kind: str
) -> None:
    """Such code was right before timing and after it; now the step that was wrong is named."""
    row = rows[mode, kind]
    assert (row.status, row.cause is None) == (Status.FAIL_ACCURACY, False)
    assert row.reason.startswith("correct at first, wrong in a later step: ")
    assert " (step " in row.reason
    assert not any(each.metric == "latency" and each.samples for each in row.measurements)


@pytest.mark.parametrize(("mode", "kind"), [(mode, kind) for mode, kinds in MEMORY.items() for kind in kinds])
def test_answers_from_memory_are_found(rows: dict[tuple[str, str], Result], mode: str, kind: str) -> None:
    """Such code follows its inputs, and computes only where they are new."""
    row = rows[mode, kind]
    assert (row.status, row.cause) == (Status.FAIL_ACCURACY, Cause.TOLERANCE)
    assert "answers from memory: a step takes " in row.reason
    assert dict(row.facts)["new_over_repeated_inputs"] > 2


@pytest.mark.parametrize("kind", OTHERS)
def test_other_cheats_are_found(rows: dict[tuple[str, str], Result], kind: str) -> None:
    """Such code breaks eager's contract in some calls, or computes only what is checked or read."""
    row, (status, reason) = rows["inference", kind], OTHERS[kind]
    assert (row.status, row.reason[: len(reason)]) == (status, reason)


def test_remembered_answers_for_tokens_are_found(
    make_sandbox: Callable[[], Any], cheats: Callable[..., dict[str, Any]]
) -> None:
    """New tokens are random, so no memory holds their answers; rolled ones came back after a few rolls."""
    box = make_sandbox()
    setup = cheats(box, ("honest", "by_content"))
    box.measure(
        *("toy", "--models", "embedding", "--device", "cpu", "--mode", "inference"),
        *("--config", "eager,honest,by_content", "--config-file", setup["file"]),
        PYTHONPATH=setup["PYTHONPATH"],
    )
    reasons = {row.case.configuration.name: row.reason for row in box.rows()}
    assert reasons.pop("by_content").startswith("answers from memory: ")
    assert reasons == {"eager": "", "honest": ""}


@pytest.fixture(scope="module")
def states(make_sandbox: Callable[[], Any]) -> dict[str, Result]:
    """Return each row of programs of the suite ``states``, by model and configuration."""
    found = {}
    for mode, models, configurations, dtype in (
        ("training", "small_gradients", "eager,broken", "float32"),
        ("training", "one_late_variance", "eager,broken", "bfloat16"),
        ("inference", "compares_one_element", "eager,broken", "float32"),
        ("inference", "chooses_by_value", "eager,aot_eager", "float32"),
    ):
        box = make_sandbox()
        file = box.store_path.with_name("states.yaml")
        file.write_text("configurations:\n  - {name: broken, doc: x, backend: broken}\n", encoding="utf-8")
        box.measure(
            *("states", "--models", models, "--device", "cpu", "--mode", mode, "--config", configurations),
            *("--config-file", str(file), "--no-fallback-check", "--dtype", dtype),
        )
        found.update({f"{row.case.workload.model} {row.case.configuration.name}": row for row in box.rows()})
    return found


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("small_gradients", f"{LATER}iteration0.grad.linear."),
        ("compares_one_element", "correct at first, wrong "),
        ("one_late_variance", "correct at first, wrong in a later step: after.buffer.norm.1.running_var"),
    ],
)
def test_faults_that_a_tolerance_or_a_first_element_hides_are_found(
    states: dict[str, Result], model: str, reason: str
) -> None:
    """Timed gradients are judged on their own scale, and new inputs keep some of the elements."""
    assert states[f"{model} eager"].status is Status.PASS
    row = states[f"{model} broken"]
    assert (row.status, row.reason[: len(reason)]) == (Status.FAIL_ACCURACY, reason)


DEEP = """import torch

def model():
    torch.manual_seed(0)
    layers = []
    for _ in range(30):
        layers += [torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers), (torch.randn(2, 16, 2, 2),)

def loss(output, *inputs):
    return output.float().pow(2).mean()
"""


def test_state_of_low_precision_is_judged_by_float64_too(make_sandbox: Callable[[], Any]) -> None:
    """Deep batch norms in bfloat16 are farther from float64 than the tolerance, in eager too."""
    box = make_sandbox()
    file = box.store_path.with_name("deep.py")
    file.write_text(DEEP)
    box.measure(
        *(str(file), "--device", "cpu", "--mode", "training", "--dtype", "bfloat16"),
        *("--config", "eager,inductor", "--no-fallback-check"),
    )
    assert {row.status for row in box.rows()} == {Status.PASS}, [row.reason for row in box.rows()]


OVERFLOWS = """import torch

class Overflows(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)
        self.register_buffer("scale", torch.ones(()))

    def forward(self, x):
        self.scale.mul_(1e10)
        return self.layer(x) * self.scale

class Overwrites(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)
        self.register_buffer("position", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.position += 1
        return self.layer(x).masked_fill(torch.arange(16) == self.position % 16, -torch.inf)

def overflows():
    return Overflows(), torch.randn(4, 16)

def overwrites():
    return Overwrites(), torch.randn(4, 16)
"""


def test_equal_infinities_of_later_steps_check_nothing(make_sandbox: Callable[[], Any]) -> None:
    """A result of eager that overflows from the fourth step on is no pass; an infinity that moves is one."""
    box = make_sandbox()
    file = box.store_path.with_name("overflows.py")
    file.write_text(OVERFLOWS)
    box.measure(str(file), "--device", "cpu", "--config", "eager,inductor", "--no-fallback-check")
    rows = {row.case.configuration.name + row.case.workload.model: row for row in box.rows()}
    assert len(rows) == 4
    for name, row in rows.items():
        reason = str(dict(row.facts).get("unchecked", ""))
        overflows = "overflows" in name
        assert (row.status, row.reason, row.counted) == (Status.PASS, "", not overflows)
        assert reason == ("eager returned NaN or infinity in out in a later step" if overflows else "")


CHANGES = """import torch

class Changes(torch.nn.Module):
    def __init__(self, wrong, drops):
        super().__init__()
        self.layer, self.wrong, self.drops = torch.nn.Linear(16, 16), wrong, drops
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        result = self.layer(x)
        if self.drops:
            result = torch.nn.functional.dropout(result, 0.2)
        result = result + 0.01 * self.count
        if torch.compiler.is_compiling():
            return torch.where(self.count == self.wrong, 1.05 * result, result)
        return result

def right():
    return Changes(0, False), torch.randn(8, 16)

def right_beside_draws():
    return Changes(0, True), torch.randn(8, 16)

class Trains(torch.nn.Module):
    def __init__(self, wrong):
        super().__init__()
        self.layer, self.wrong = torch.nn.Linear(16, 16), wrong
        self.optimizer = torch.optim.SGD(self.layer.parameters(), lr=1e-4)

    def forward(self, x):
        with torch.enable_grad():
            loss = self.layer(x).square().mean()
            loss.backward()
        if not (self.wrong and torch.compiler.is_compiling()):
            self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

def right_step():
    return Trains(False), torch.randn(8, 16)

def wrong_step():
    return Trains(True), torch.randn(8, 16)

def wrong_once():
    return Changes(20, False), torch.randn(8, 16)

def wrong_once_beside_draws():
    return Changes(5, True), torch.randn(8, 16)
"""


def test_one_wrong_step_among_different_results_is_found(make_sandbox: Callable[[], Any]) -> None:
    """Results that change from step to step, also by random numbers, are compared with eager's one by one."""
    box = make_sandbox()
    file = box.store_path.with_name("changes.py")
    file.write_text(CHANGES)
    words = (str(file), "--device", "cpu", "--store", str(box.store_path), "--no-fallback-check")
    done = box.run("run", *words, *box.quick, "--config", "eager,aot_eager,inductor")
    assert done.returncode == 1, done.stderr[-4000:]
    rows = {f"{row.case.workload.model} {row.case.configuration.name}": row for row in box.rows()}
    assert len(rows) == 18
    sentence = "compiled code, unlike eager, changes no parameter: after.parameter.layer."
    for configuration in ("aot_eager", "inductor"):
        row = rows.pop(f"wrong_step {configuration}")
        assert (row.status, row.reason[: len(sentence)]) == (Status.FAIL_ACCURACY, sentence)
    assert rows.pop("wrong_step eager").status is Status.PASS
    for name, row in rows.items():
        found = row.reason.removeprefix(LATER).startswith("out: largest error")
        wrong = name.startswith("wrong") and not name.endswith(" eager")
        assert (row.status is Status.FAIL_ACCURACY, found) == (wrong, wrong), (name, row.reason)
        assert wrong or row.status is Status.PASS, (name, row.reason)
        assert (f"(step {5 if 'draws' in name else 20} of " in row.reason) is wrong, (name, row.reason)


def test_new_inputs_do_not_degrade_a_case(states: dict[str, Result]) -> None:
    """A program that is compiled anew for each value passes, and its time with new inputs says nothing."""
    row = states["chooses_by_value aot_eager"]
    assert (row.status, row.reason, row.degraded) == (Status.PASS, "", "")
    assert "new_over_repeated_inputs" not in dict(row.facts)


def test_steps_that_are_faster_than_the_peak_are_marked(
    make_sandbox: Callable[[], Any], cheats: Callable[..., dict[str, Any]]
) -> None:
    """Such code computes whenever it is judged, and not in the rounds; its times enter no mean."""
    box = make_sandbox()
    kinds = ("honest", "in_rounds")
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
    assert {row.case.configuration.name for row in found} == {"in_rounds"}
    assert 2048 in {dict(row.case.workload.shape)["n"] for row in found}
    for row in found:
        assert row.status is Status.PASS
        assert not times_count(row.status.value, row.modifiers)
        assert " times the peak rate" in row.faster_than_peak
        assert f"faster_than_peak: {row.case_id}: {row.faster_than_peak}" in done.stdout + done.stderr
