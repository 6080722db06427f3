"""Whatever a model does to its process, its case ends in one row that says so and the run goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from torchgauge.records import Modifier, Result

pytestmark = pytest.mark.torch

FLOOD = "300000000"
DEADLINE_S = "12"
MEMORY_LIMIT = "1200000000"
DESTRUCTIVE = (
    "allocates_without_end",
    "segfault_in_build",
    "segfault_in_step",
    "segfault_while_measured",
    "hangs_in_c",
    "wakes_when_killed",
    "hangs_at_exit",
    "os_exit",
    "exits_zero",
    "sys_exit",
    "result_then_crash",
    "prints_without_end",
    "daemon_child",
    "closes_stdout",
    "kills_itself",
)
MILD = (
    "healthy",
    "raises",
    "raises_in_training",
    "raises_while_measured",
    "nan_eager",
    "nondeterministic",
    "device_oom",
    "missing_package",
    "unsupported",
    "unfinished",
)
EAGER = {
    ("healthy", "inference"): ("pass", None, "done"),
    ("healthy", "training"): ("pass", None, "done"),
    ("raises", "inference"): ("error", None, "eager"),
    ("raises_in_training", "inference"): ("pass", None, "done"),
    ("raises_in_training", "training"): ("error", None, "eager"),
    ("raises_while_measured", "inference"): ("error", None, "measure"),
    ("nan_eager", "inference"): ("fail_accuracy", "nonfinite", "accuracy"),
    ("nondeterministic", "inference"): ("fail_accuracy", "nondeterministic_eager", "accuracy"),
    ("allocates_without_end", "inference"): ("oom", "host_limit", "eager"),
    ("segfault_in_build", "inference"): ("crash", "signal", "build"),
    ("segfault_in_step", "inference"): ("crash", "signal", "eager"),
    ("segfault_while_measured", "inference"): ("crash", "signal", "measure"),
    ("hangs_in_c", "inference"): ("timeout", None, "eager"),
    ("wakes_when_killed", "inference"): ("timeout", None, "measure"),
    ("hangs_at_exit", "inference"): ("pass", None, "done"),
    ("os_exit", "inference"): ("crash", "exit", "eager"),
    ("exits_zero", "inference"): ("crash", "exit", "eager"),
    ("sys_exit", "inference"): ("crash", "exit", "eager"),
    ("result_then_crash", "inference"): ("pass", None, "done"),
    ("prints_without_end", "inference"): ("pass", None, "done"),
    ("daemon_child", "inference"): ("pass", None, "done"),
    ("closes_stdout", "inference"): ("pass", None, "done"),
    ("device_oom", "inference"): ("oom", "device", "eager"),
    ("missing_package", "inference"): ("skipped", "missing_package", "build"),
    ("unsupported", "inference"): ("unsupported", None, "build"),
    ("unfinished", "inference"): ("error", None, "build"),
    ("kills_itself", "inference"): ("infra", "killed", "eager"),
}
COMPILED = {
    "healthy": (("pass", None, "done"), ("pass", None, "done")),
    "nan_compiled": (("pass", None, "done"), ("fail_accuracy", "nonfinite", "accuracy")),
    "wrong_compiled": (("pass", None, "done"), ("fail_accuracy", "tolerance", "accuracy")),
    "segfault_in_compiler": (("pass", None, "done"), ("crash", "signal", "compile")),
    "segfault_while_measured": (("crash", "signal", "measure"), ("pass", None, "done")),
    "raises_while_measured": (("error", None, "measure"), ("pass", None, "done")),
    "recompiles_every_call": (("pass", None, "done"), ("pass", None, "done")),
    "captures_no_graph": (("pass", None, "done"), ("error", None, "accuracy")),
    "runs_a_rnn": (("pass", None, "done"), ("pass", None, "done")),
    "caches_a_norm": (("pass", None, "done"), ("pass", None, "done")),
}
COLD = {
    "segfault_in_step": ("crash", "signal", "eager"),
    "daemon_child": ("pass", None, "done"),
    "after_daemon_child": ("pass", None, "done"),
}


@dataclass
class Finished:
    """A campaign that has ended, looked at at once."""

    done: Any
    sandbox: Any
    rows: list[Result]
    survivors: list[str]

    def row(self, model: str, mode: str = "inference", configuration: str = "eager") -> Result:
        """The only row of a case."""
        (found,) = [
            row
            for row in self.rows
            if (row.case.workload.model, row.case.workload.mode) == (model, mode)
            and row.case.configuration.name == configuration
        ]
        return found

    def ending(self, *case: str) -> tuple[str, str | None, str]:
        """Status, cause and phase of a case."""
        row = self.row(*case)
        return row.status.value, row.cause.value if row.cause else None, row.phase.value


def finish(sandbox: Any, *arguments: str) -> Finished:
    """Run the faults suite with ``arguments`` to its end."""
    flood = {"TORCHGAUGE_FAULTS_FLOOD_BYTES": FLOOD}
    done = sandbox.measure("faults", "--memory-limit", MEMORY_LIMIT, *arguments, **flood)
    survivors = sandbox.survivors()
    assert sandbox.store_path.exists(), done.stderr
    return Finished(done, sandbox, sandbox.rows(), survivors)


@pytest.fixture(scope="session")
def eager(make_sandbox: Callable[[], Any]) -> Finished:
    """Every fault that eager can show in one run of forked workers, the hard ones with a healthy follower."""
    models = ",".join((*MILD, *DESTRUCTIVE, *(f"after_{name}" for name in DESTRUCTIVE)))
    words = ("--device", "cpu", "--mode", "inference,training", "--config", "eager", "--timeout", DEADLINE_S)
    return finish(make_sandbox(), *words, "--models", models)


@pytest.fixture(scope="session")
def compiled(make_sandbox: Callable[[], Any]) -> Finished:
    """Faults that a compiler brings out, eager beside it."""
    words = ("--device", "cpu", "--config", "eager,aot_eager", "--no-warm-compile")
    return finish(make_sandbox(), *words, "--models", ",".join(COMPILED))


@pytest.fixture(scope="session")
def cold(make_sandbox: Callable[[], Any]) -> Finished:
    """A device of the same package that does not allow a fork: every worker is a fresh interpreter."""
    return finish(make_sandbox(), "--device", "coldcpu", "--config", "eager", "--models", ",".join(COLD))


@pytest.fixture(params=["eager", "compiled", "cold"])
def campaign(request: pytest.FixtureRequest) -> Finished:
    """Each of the campaigns."""
    return request.getfixturevalue(request.param)


# --- every campaign ------------------------------------------------------------------------------


def test_every_planned_case_has_one_row(campaign: Finished) -> None:
    """The rows are the plan's cases, each once."""
    planned = Counter(planned.case.id for planned in campaign.sandbox.folder().plan().cases)
    assert Counter(row.case_id for row in campaign.rows) == planned


def test_no_process_survives(campaign: Finished) -> None:
    """When the command returns, nothing that it started still runs, daemons included."""
    assert campaign.survivors == []


def test_nothing_is_left_on_disk(campaign: Finished) -> None:
    """The run's scratch folder is gone and no temporary file of ours stays."""
    assert not (campaign.sandbox.folder().path / "work").exists()
    assert campaign.sandbox.scratch() == []


def test_the_run_is_published(campaign: Finished) -> None:
    """However bad the models were, the store holds a complete run."""
    (info,) = campaign.sandbox.store.runs()
    assert (info.state.value, info.published, info.problem) == ("complete", True, "")


def test_every_attempted_row_says_how_its_process_ended(campaign: Finished) -> None:
    """Every row of a process names its exit and an existing log."""
    for row in campaign.rows:
        assert row.exit, row.case_id
        assert (campaign.sandbox.folder().path / row.log).is_file(), row.case_id


# --- eager ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "mode"), EAGER)
def test_a_fault_has_its_status(eager: Finished, model: str, mode: str) -> None:
    """The row of a faulty model carries the status, cause and phase that describe the fault."""
    assert eager.ending(model, mode) == EAGER[model, mode], eager.row(model, mode).reason


@pytest.mark.parametrize("model", DESTRUCTIVE)
def test_the_next_case_is_not_harmed(eager: Finished, model: str) -> None:
    """The model after a fault in the same run passes, and nothing is said about its process's end."""
    follower = eager.row(f"after_{model}")
    assert (follower.status.value, follower.teardown) == ("pass", ""), follower.reason


def test_a_killed_case_makes_the_run_incomplete(eager: Finished) -> None:
    """A row that is infra makes the command exit with 3, before the unexpected ones make it 1."""
    assert eager.done.returncode == 3, eager.done.stderr


def test_an_exception_keeps_its_traceback(eager: Finished) -> None:
    """The failure of a raising model names its type, its line and a fingerprint."""
    failure = eager.row("raises").failure
    assert failure is not None
    assert failure.type == "ValueError"
    assert "this model is broken" in failure.traceback
    assert failure.fingerprint


def test_a_segfault_leaves_its_stack_in_the_row(eager: Finished) -> None:
    """The excerpt of the log shows the Python stack of the fault."""
    row = eager.row("segfault_in_step")
    assert "Segmentation fault" in row.log_excerpt
    assert "models.py" in row.log_excerpt


def test_a_hang_leaves_its_stack_in_the_row(eager: Finished) -> None:
    """Before a hung worker is killed it writes where it hangs."""
    assert "models.py" in eager.row("hangs_in_c").log_excerpt


def test_a_result_after_the_deadline_does_not_count(eager: Finished) -> None:
    """The signal that asks for stacks wakes a hung call; what the model then reports is no result."""
    row = eager.row("wakes_when_killed")
    assert f"took longer than {DEADLINE_S} s" in row.reason
    assert row.measurements == ()


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("result_then_crash", "after its results: signal 11 (SIGSEGV)"),
        ("daemon_child", "left 1 process running, killed"),
        ("hangs_at_exit", "hung at exit and was killed"),
        ("healthy", ""),
    ],
)
def test_trouble_after_the_result_is_told(eager: Finished, model: str, said: str) -> None:
    """A row keeps its status and says what its process did after the result was written."""
    assert eager.row(model).teardown.startswith(said)
    assert bool(eager.row(model).teardown) is bool(said)


def test_a_flood_is_capped(eager: Finished) -> None:
    """A flood on standard output becomes a log of one mebibyte with both ends and the missing bytes."""
    log = (eager.sandbox.folder().path / eager.row("prints_without_end").log).read_text()
    assert len(log) < (1 << 20) + 100
    assert log.startswith("all work")
    assert "bytes left out" in log
    assert log.rstrip().endswith("the end of the flood")


def test_a_missing_package_says_what_to_type(eager: Finished) -> None:
    """The reason of a skip names the package and the suite's install hint."""
    reason = eager.row("missing_package").reason
    assert "'no_such_package'" in reason
    assert "pip install no-such-package" in reason


def test_only_unexpected_rows_are_listed(eager: Finished) -> None:
    """The command's last words list the crash, and neither the skip nor the pass."""
    listed = [line for line in eager.done.stderr.splitlines() if line.lstrip().startswith("unexpected")]
    assert any("faults/segfault_in_step" in line for line in listed)
    assert not any("missing_package" in line or "healthy" in line for line in listed)


# --- compiled ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", COMPILED)
def test_configurations_are_judged_apart(compiled: Finished, model: str) -> None:
    """A fault of one configuration leaves the other configuration of the same group its own result."""
    found = tuple(compiled.ending(model, "inference", name) for name in ("eager", "aot_eager"))
    assert found == COMPILED[model]


@pytest.mark.parametrize(
    ("model", "reason", "fact"),
    [
        ("recompiles_every_call", "", "torch._dynamo hit config.recompile_limit (8)"),
        ("captures_no_graph", "the configuration did not run: ", "dynamo captured no graph"),
        ("runs_a_rnn", "", "dynamo skipped 1 frame, which eager runs: 1 step entered the code"),
        ("caches_a_norm", "", "dynamo skipped "),
    ],
)
def test_a_silent_fallback_is_degraded(compiled: Finished, model: str, reason: str, fact: str) -> None:
    """A case that ran eager instead of its configuration is marked; it is an error unless dynamo gave up."""
    row = compiled.row(model, configuration="aot_eager")
    assert Modifier.DEGRADED in row.modifiers
    assert fact in str(dict(row.facts)["degraded"])
    assert row.reason.startswith(reason)
    assert Modifier.DEGRADED not in compiled.row(model).modifiers


def test_a_case_that_failed_gives_no_speedup(compiled: Finished) -> None:
    """Where eager failed, the speed-up of the other configuration is absent with a reason."""
    row = compiled.row("raises_while_measured", configuration="aot_eager")
    speedup = next(each for each in row.measurements if each.metric == "speedup")
    assert speedup.samples == ()
    assert "eager" in speedup.absent


def test_a_healthy_pair_has_its_speedup(compiled: Finished) -> None:
    """Where both ran, the speed-up has one sample for each round that both had alone, or neither."""
    values = {each.metric: each for each in compiled.row("healthy", configuration="aot_eager").measurements}
    assert values["speedup"].blocks
    blocks = [values[name].blocks for name in ("latency", "latency_contended") if name in values]
    assert set(values["speedup"].blocks) <= set().union(*blocks)


# --- fresh processes -----------------------------------------------------------------------------


@pytest.mark.parametrize("model", COLD)
def test_fresh_processes_end_alike(cold: Finished, model: str) -> None:
    """Without a fork the same faults get the same rows."""
    assert cold.ending(model) == COLD[model], cold.row(model).reason


def test_a_daemon_of_a_fresh_process_is_told(cold: Finished) -> None:
    """A daemon that a fresh worker left is killed and named as well."""
    assert "left 1 process running" in cold.row("daemon_child").teardown
