"""Holds each row to the configuration that it names: the checked and the timed steps ran it, and it is right.

Planted are compilers of ``torch.compile`` that a package brings: wrong by a factor in the forward pass, in a
gradient, or from some call on, and one that is right.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

COMPILERS = """
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.debugging import aot_eager_decomp_partition as decomposed

def wrong(graph, after=0, factor=3.0, period=1):
    calls = []
    def run(*inputs):
        calls.append(1)
        outputs = graph(*inputs)
        now = len(calls) > after and len(calls) % period == 0
        return tuple(factor * each if now and torch.is_tensor(each) and each.is_floating_point() else each
                     for each in outputs)
    return run

def faithful(graph, inputs):
    return graph.forward

def tripled(graph, inputs):
    return wrong(graph)

def right_at_first(graph, inputs):
    return wrong(graph, after=8)

def each_40th(graph, inputs):
    return wrong(graph, period=40)

def _boxed(make):
    def compiler(graph, inputs):
        run = make(graph)
        def boxed(args):
            return run(*args)
        boxed._boxed_call = True
        return boxed
    return compiler

def moments_off(graph, inputs):
    for node in list(graph.graph.nodes):
        if node.op == "call_method" and node.target == "addcdiv_":
            with graph.graph.inserting_after(node):
                graph.graph.call_method("mul_", (node.args[1], 5.0))
    graph.recompile()
    return graph.forward

def scalars_off(graph, inputs):
    return lambda *inputs: tuple(
        3.0 * each if torch.is_tensor(each) and each.dim() == 0 else each for each in graph(*inputs)
    )

def freezes(graph, inputs, least=0):
    first = {}
    def run(*inputs):
        for number, each in enumerate(inputs):
            if isinstance(each, torch.nn.Parameter) and number >= least:
                if not torch.equal(first.setdefault(number, each.detach().clone()), each):
                    each.requires_grad_(False)
        return graph(*inputs)
    return run

def freezes_some(graph, inputs):
    return freezes(graph, inputs, least=1)

def nudged(graph):
    def run(*inputs):
        outputs = graph(*inputs)
        largest = max(float(each.abs().max()) for each in outputs if torch.is_tensor(each))
        shift = lambda each: 1e-9 * largest * torch.arange(each.numel()).cos().view_as(each)
        return tuple(each + shift(each) if torch.is_tensor(each) else each for each in outputs)
    return run

differentiated = aot_autograd(fw_compiler=_boxed(lambda graph: graph))
gradient_off = aot_autograd(fw_compiler=_boxed(lambda graph: graph), bw_compiler=_boxed(wrong))
gradient_slightly_off = aot_autograd(
    fw_compiler=_boxed(lambda graph: graph), bw_compiler=_boxed(lambda graph: wrong(graph, factor=1.02))
)
gradient_nudged = aot_autograd(fw_compiler=_boxed(lambda graph: graph), bw_compiler=_boxed(nudged))
"""
ENTRY = "  - name: {name}\n    doc: planted\n    backend: {name}\n"
FREEZING = {
    "freezes": ("error", "does not require grad"),
    "freezes_some": ("fail_accuracy", "state.gradient.model.0.bias (only in eager) (seen in step 2)"),
}
"""Compilers that freeze all or some weights, and the status and reason of their rows."""
NAMES = ("faithful", "tripled", "right_at_first", "each_40th", "moments_off", "scalars_off", *FREEZING)
NAMES += ("decomposed", "differentiated", "gradient_off", "gradient_slightly_off", "gradient_nudged")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, fake_torchbench: Any) -> Callable[..., dict[str, Any]]:
    """Run models of a small checkout, and return the rows by model and configuration."""
    folder = tmp_path_factory.mktemp("what-ran")
    fake_torchbench.write(folder / "checkout")
    package = folder / "package"
    (package / "planted_compilers-1.0.dist-info").mkdir(parents=True)
    (package / "planted_compilers.py").write_text(COMPILERS)
    lines = ["[torch_dynamo_backends]", *(f"{name} = planted_compilers:{name}" for name in NAMES)]
    (package / "planted_compilers-1.0.dist-info" / "entry_points.txt").write_text("\n".join(lines) + "\n")
    about = "Metadata-Version: 2.1\nName: planted-compilers\nVersion: 1.0\n"
    (package / "planted_compilers-1.0.dist-info" / "METADATA").write_text(about)

    named = folder / "compilers.yaml"
    named.write_text("configurations:\n" + "".join(ENTRY.format(name=name) for name in NAMES))

    def rows(
        mode: str, models: str, configurations: str, seconds: str = "0.02", **variables: str
    ) -> dict[str, Any]:
        store = folder / "-".join(["store", mode, models, configurations, *variables])
        words = ("--models", models, "--mode", mode, "--config", configurations, "--device", "cpu")
        quick = ("--measure-seconds", seconds, "--no-memory-probe", "--no-warm-compile", "--no-calibration")
        where = ("--torchbench", str(folder / "checkout"), "--store", str(store), "--config-file", str(named))
        command = [sys.executable, "-m", "torchgauge", "run", "torchbench", *words, *quick, *where, "--json"]
        environment = {**os.environ, "PYTHONPATH": str(package), **variables}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode in {0, 1, 3}, done.stderr
        command = [sys.executable, "-m", "torchgauge", "results", "query", "--store", str(store), "--json"]
        table = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        found = json.loads(table)
        only_passes = {row["status"] for row in found} == {"pass"}  # and degraded, as on a busy machine
        assert only_passes or done.returncode != 3, done.stderr
        return {f"{row['model']} {row['configuration']}": row for row in found}

    return rows


@pytest.mark.parametrize("mode", ["training", "inference"])
@pytest.mark.parametrize("configurations", ["eager,tripled,faithful", "tripled"])
def test_compiled_code_of_upstreams_step_is_judged(
    run: Callable[..., dict[str, Any]], mode: str, configurations: str
) -> None:
    """Code that is wrong by a factor of 3 fails beside eager and alone, and code that is right passes."""
    rows = run(mode, "phlippe_resnet,functorch_dp_cifar10", configurations)
    expected = {"eager": "pass", "faithful": "pass", "tripled": "fail_accuracy"}
    statuses = {name: row["status"] for name, row in rows.items()}
    assert statuses == {name: expected[name.split()[1]] for name in rows}, rows
    degraded = [json.loads(row["facts"]).get("degraded", "") for row in rows.values()]
    assert not any("changed: " in reason for reason in degraded), degraded
    assert {name.split()[1] for name in rows} == set(configurations.split(","))


@pytest.mark.parametrize(("mode", "other"), [("inference", "eager"), ("training", "aot_eager")])
def test_graphs_that_torch_gives_to_another_back_end_are_no_code_of_inductor(
    run: Callable[..., dict[str, Any]], mode: str, other: str
) -> None:
    """The row that names inductor is an error if a variable of torch gives its graphs to ``other``."""
    variable = {"TORCH_COMPILE_OVERRIDE_BACKENDS": f">=0:{other}"}
    row = run(mode, "phlippe_resnet", "inductor", **variable)["phlippe_resnet inductor"]
    assert row["status"] == "error", row
    assert "1 graph went to another back end: TORCH_COMPILE_OVERRIDE_BACKENDS is set" in row["reason"]


def test_a_wrong_gradient_of_upstreams_step_is_named(run: Callable[..., dict[str, Any]]) -> None:
    """The forward pass is right, and the reason names a gradient, also one that the step clears.

    Gradients are off by a factor of 3, or of 1.02.
    """
    rows = run("training", "phlippe_resnet,functorch_dp_cifar10", "eager,gradient_off,gradient_slightly_off")
    for model in ("phlippe_resnet", "functorch_dp_cifar10"):
        assert rows[f"{model} eager"]["status"] == "pass", rows
        for compiler in ("gradient_off", "gradient_slightly_off"):
            assert rows[f"{model} {compiler}"]["status"] == "fail_accuracy", rows
            assert "state.gradient." in rows[f"{model} {compiler}"]["reason"]


def test_a_sign_that_rounding_decides_is_no_fault(run: Callable[..., dict[str, Any]]) -> None:
    """RMSprop divides a gradient of 1e-8 by its size, so elements of its momentum buffer are 10 or -10."""
    (row,) = run("training", "divides_gradients_by_their_size", "gradient_nudged").values()
    assert row["status"] == "pass", row["reason"]


def test_a_zero_gradient_that_parts_of_an_operator_round_more_is_no_fault(
    run: Callable[..., dict[str, Any]],
) -> None:
    """The parts of a batch norm leave a gradient of 5 where eager's is 0.5, and float64's is 0."""
    (row,) = run("training", "normalises_in_bfloat16", "decomposed").values()
    assert row["status"] == "pass", row
    assert "model.0.bias" in json.loads(row["facts"])["rounded"]


def test_a_wrong_decomposition_explains_no_difference(run: Callable[..., dict[str, Any]]) -> None:
    """Eager runs whose operators run as their parts leave out the wrong one."""
    (row,) = run("training", "decomposes_wrongly", "decomposed").values()
    assert row["status"] == "fail_accuracy", row
    assert "state." in row["reason"], row


@pytest.mark.parametrize("mode", ["inference", "training"])
def test_code_of_upstreams_step_that_remembers_its_first_inputs_is_found(
    run: Callable[..., dict[str, Any]], mode: str
) -> None:
    """The step runs again with other values in the tensors of ``get_module()``."""
    (row,) = run(mode, "keeps_norms_of_its_first_input", "faithful").values()
    assert row["status"] == "fail_accuracy", row
    assert "with other inputs" in row["reason"], row


def test_wrong_gradients_below_the_tolerance_are_found(run: Callable[..., dict[str, Any]]) -> None:
    """An optimizer that divides gradients by their size turns small wrong ones into large wrong updates."""
    rows = run("training", "stops_a_small_layer,rolls_small_gradients,averages_a_small_layer", "faithful")
    assert {row["status"] for row in rows.values()} == {"fail_accuracy"}, rows
    assert len(rows) == 3, rows


def test_code_that_is_wrong_from_some_step_on_is_found(run: Callable[..., dict[str, Any]]) -> None:
    """The first eight calls are right."""
    row = run("training", "phlippe_resnet", "eager,right_at_first")["phlippe_resnet right_at_first"]
    assert (row["status"], row["phase"]) == ("fail_accuracy", "accuracy"), row
    assert row["reason"].startswith("correct at first, wrong ")


def test_code_that_is_wrong_for_a_later_state_is_found(run: Callable[..., dict[str, Any]]) -> None:
    """The code is wrong from the fourth value of a counter on."""
    rows = run("training", "is_wrong_from_a_count_on,is_wrong_from_a_buffer_on", "faithful")
    assert len(rows) == 2, rows
    for row in rows.values():
        assert (row["status"], row["phase"]) == ("fail_accuracy", "accuracy"), row
        assert row["reason"].endswith("(seen in step 4)"), row


def test_code_that_is_wrong_from_a_late_step_on_is_found(run: Callable[..., dict[str, Any]]) -> None:
    """It is found in one of the steps that are compared before warm-up."""
    wrong = {"is_wrong_from_a_late_step_on": "(seen in step 21)"}
    wrong["is_wrong_in_each_37th_step"] = "(seen in step 37)"
    wrong["is_slightly_wrong_from_a_step_on"] = "(seen in step 4)"
    rows = run("training", ",".join(wrong), "faithful")
    assert_found(rows, wrong)
    ends = {name.split()[0]: row["reason"].rpartition(" (")[2] for name, row in rows.items()}
    assert ends == {name: end.removeprefix("(") for name, end in wrong.items()}


@pytest.mark.parametrize("mode", ["training", "inference"])
def test_code_that_is_wrong_in_some_of_its_calls_is_found(
    mode: str, run: Callable[..., dict[str, Any]]
) -> None:
    """Compiled code counts its calls by itself, and no restored state holds the number."""
    (row,) = run(mode, "evaluates", "each_40th").values()
    assert row["status"] == "fail_accuracy", row
    assert row["reason"].startswith("correct at first, wrong in a later step: "), row


def test_later_steps_of_a_method_that_is_compiled_whole_are_compared(
    run: Callable[..., dict[str, Any]],
) -> None:
    """Eager's observed step runs upstream's method after compiled steps of it."""
    (row,) = run("training", "lennard_jones", "faithful").values()
    assert row["status"] == "pass", row
    assert json.loads(row["facts"])["timed_results"] > 1, row


def test_code_that_is_wrong_only_in_timed_steps_is_found(run: Callable[..., dict[str, Any]]) -> None:
    """A counter stops after the steps compared before warm-up; timed steps go on from block to block.

    A correct model may then change settings.
    """
    models = "stops_counting,stops_counting_in_a_buffer,changes_settings_late"
    rows = run("training", models, "inductor", seconds="1")
    assert rows.pop("changes_settings_late inductor")["status"] == "pass"
    assert_found(rows, {"stops_counting": "written.count: ", "stops_counting_in_a_buffer": "model.calls: "})
    assert all(row["reason"].endswith(" timed steps)") for row in rows.values()), rows


def assert_found(rows: dict[str, Any], wrong: dict[str, str]) -> None:
    """Assert that ``rows`` are of the models in ``wrong``, and that each reason names the path there."""
    assert len(rows) == len(wrong), rows
    for name, row in rows.items():
        assert row["status"] == "fail_accuracy", row
        assert wrong[name.split()[0]] in row["reason"], row


def test_an_average_that_compiled_steps_move_too_far_is_found(run: Callable[..., dict[str, Any]]) -> None:
    """It moves by a thousandth of its size, and by 4 % more than in eager.

    Wrong values of an array, and of a tensor that the step replaces afterwards, are found too.
    """
    wrong = dict.fromkeys(("averages_slightly_off", "moves_its_target_slightly_off"), ".agent.average.")
    wrong["replaces_what_it_wrote_wrong"] = "state.written.last"
    wrong["doubles_an_array_slightly_off"] = "state.written.array"
    rows = run("training", ",".join([*wrong, "averages"]), "faithful")
    assert rows.pop("averages faithful")["status"] == "pass"
    assert_found(rows, wrong)


def test_correct_steps_that_change_their_objects_pass(run: Callable[..., dict[str, Any]]) -> None:
    """They change a class, hooks, a file, and containers that they then replace.

    Eager's step and the compiled one may write to the same file. The step of an optimizer may run the model.
    """
    models = "replaces_what_it_fills,saves_its_weights,reads_its_file,prunes_late,normalises_late"
    models += ",minimises_its_loss"
    rows = run("training", models, "faithful")
    assert {name.split()[0]: (row["status"], row["reason"]) for name, row in rows.items()} == dict.fromkeys(
        models.split(","), ("pass", None)
    )
    facts = json.loads(rows["minimises_its_loss faithful"]["facts"])
    assert facts["compiled_share"] > 0.5, facts


def test_a_step_that_later_raises_not_implemented_is_an_error(run: Callable[..., dict[str, Any]]) -> None:
    """Upstream offers the steps before."""
    (row,) = run("training", "has_no_fourth_step", "faithful").values()
    assert (row["status"], row["reason"]) == ("error", "NotImplementedError: the second phase")


def test_a_weight_that_only_eager_trains_from_step_251_on_is_found(
    run: Callable[..., dict[str, Any]],
) -> None:
    """The first 300 steps are compared one by one, if they are short."""
    rows = run("training", "thaws_no_compiled_bias", "faithful")
    assert_found(rows, {"thaws_no_compiled_bias": "(seen in step 251)"})


def test_nan_that_each_run_of_eager_returns_is_its_result(run: Callable[..., dict[str, Any]]) -> None:
    """In inference, compiled code has to return it in the same places."""
    (row,) = run("inference", "returns_nan", "faithful").values()
    assert (row["status"], row["reason"]) == ("pass", None)


def test_a_wrong_column_that_is_tiny_beside_others_is_found(run: Callable[..., dict[str, Any]]) -> None:
    """Its values are 1e-9, and wrong by 1e-6, below any tolerance of values of size one."""
    rows = run("inference", "clamps_tiny_columns", "faithful")
    assert_found(rows, {"clamps_tiny_columns": "in small slices, its RMS distance from eager is "})


def test_outputs_of_the_module_are_compared_in_training(run: Callable[..., dict[str, Any]]) -> None:
    """Eager and compiled code return other scores, which the step prints."""
    assert_found(run("training", "prints_a_score", "faithful"), {"prints_a_score": "output.0.1: "})


def test_a_weight_without_memory_of_its_own_is_run(run: Callable[..., dict[str, Any]]) -> None:
    """It is a wrapper of another tensor, and has no ``__tensor_flatten__()``."""
    (row,) = run("inference", "wraps_its_weight", "faithful").values()
    assert row["status"] == "pass", row


def test_state_in_another_file_of_the_model_is_compared(run: Callable[..., dict[str, Any]]) -> None:
    """It holds a random generator, a counter of a class, and a list of numbers."""
    wrong = {"scores_wrong_in_another_file": "scores_wrong_in_another_file.augment.scores.0: "}
    wrong["draws_twice_in_another_file"] = ".augment.generator.random_state: "
    rows = run("training", ",".join([*wrong, "keeps_state_in_another_file"]), "faithful")
    assert rows.pop("keeps_state_in_another_file faithful")["status"] == "pass"
    assert_found(rows, wrong)


def test_what_a_step_makes_and_keeps_is_compared(run: Callable[..., dict[str, Any]]) -> None:
    """The first step keeps a copy of the module, and a dict of weights.

    The dict has names of the eager module, or of the compiled one where the step runs that.
    """
    wrong = {"makes_weights_slightly_off": "written.made.weights.", "makes_a_copy_slightly_off": "made.copy."}
    wrong["makes_no_copy_of_a_bias"] = "state.written.made.weights.bias in the memory of model.bias"
    right = ("makes_averages", "makes_averages_of_compiled_names")
    rows = run("training", ",".join([*wrong, *right]), "faithful")
    assert {rows.pop(f"{name} faithful")["status"] for name in right} == {"pass"}
    assert_found(rows, wrong)


def test_numbers_in_unusual_places_are_compared(run: Callable[..., dict[str, Any]]) -> None:
    """They lie in a default argument, on a tensor, in a group of the optimizer, or on a class."""
    wrong = {"writes_a_default": "Model.train.0.0: ", "writes_on_an_input": ".total: "}
    wrong |= {"writes_on_a_weight": "weight.total: ", "writes_in_a_group": "optimizer.param_groups.0.total: "}
    wrong |= {"writes_on_a_class": "Log.total: ", "writes_on_its_class": "Model.total: "}
    rows = run("training", ",".join([*wrong, "writes_rightly"]), "faithful")
    assert rows.pop("writes_rightly faithful")["status"] == "pass"
    assert_found(rows, wrong)


def test_right_steps_that_change_their_optimizer_or_data_pass(run: Callable[..., dict[str, Any]]) -> None:
    """Batches of an iterator that cannot be put back are not compared."""
    rows = run("training", "adds_a_group,rebuilds_its_optimizer,reads_a_loader", "faithful")
    assert [row["status"] for row in rows.values()] == ["pass"] * 3, rows
    unchecked = {name.split()[0]: json.loads(row["facts"]).get("unchecked", "") for name, row in rows.items()}
    assert "_SingleProcessDataLoaderIter" in unchecked.pop("reads_a_loader")
    assert set(unchecked.values()) == {""}


def test_an_optimizer_that_set_module_makes_otherwise_is_no_excuse(
    run: Callable[..., dict[str, Any]],
) -> None:
    """Momentum and schedules show in the second step only. An optimizer may also step another module."""
    wrong = dict.fromkeys(("forgets_its_momentum", "keeps_an_old_schedule"), "state.momentum_buffer.")
    wrong["copies_the_module"] = "state.gradient."
    assert_found(run("training", ",".join(wrong), "faithful"), wrong)


def test_hooks_of_weights_that_come_with_compiled_code_do_not_run_in_eager(
    run: Callable[..., dict[str, Any]],
) -> None:
    """A wrong one is found. One that refers to upstream's object, which holds compiled code, is no fault."""
    rows = run("training", "hooks_its_gradients,steps_in_backward", "eager,faithful")
    wrong = rows.pop("hooks_its_gradients faithful")
    assert (wrong["status"], ".model." in wrong["reason"]) == ("fail_accuracy", True), wrong
    assert {row["status"] for row in rows.values()} == {"pass"}, rows
    assert len(rows) == 3, rows


def test_the_eval_of_a_model_without_data_is_stepped(run: Callable[..., dict[str, Any]]) -> None:
    """It calls its module once, and each later step returns the kept result."""
    (row,) = run("inference", "caches_its_result", "faithful").values()
    assert row["status"] == "error", row
    assert "steps entered the code of faithful" in row["reason"], row


def test_what_an_eval_of_upstream_writes_is_compared(run: Callable[..., dict[str, Any]]) -> None:
    """The outputs are right, and a counter in upstream's object is not."""
    (row,) = run("inference", "counts_in_eval", "faithful").values()
    assert row["status"] == "fail_accuracy", row
    assert row["reason"].startswith("state.written.seen.rows: 2 instead of 1"), row


def test_code_that_is_right_in_each_first_step_only_is_found(run: Callable[..., dict[str, Any]]) -> None:
    """The runtime packs the weight again if it was restored, and not after its own step."""
    (row,) = run("training", "keeps_a_weight_packed", "faithful").values()
    assert row["status"] == "fail_accuracy", row
    assert row["reason"].startswith("correct at first, wrong in a later step: ")
    assert row["reason"].endswith("(seen in step 2)"), row


def test_random_numbers_of_the_first_step_in_the_second_are_found(run: Callable[..., dict[str, Any]]) -> None:
    """Compiled code draws a mask in each step, and uses the first."""
    (row,) = run("training", "keeps_its_first_mask", "faithful").values()
    assert row["status"] == "fail_accuracy", row
    assert row["reason"].endswith("(seen in step 2)"), row


def test_random_numbers_of_a_step_that_seeds_itself_are_no_fault(run: Callable[..., dict[str, Any]]) -> None:
    """Inductor draws other numbers than eager; a wrong factor is found beside them."""
    rows = run("training", "seeds_itself,seeds_itself_and_triples", "inductor")
    assert rows["seeds_itself inductor"]["status"] == "pass", rows
    assert "fallback_random" in rows["seeds_itself inductor"]["facts"]
    assert rows["seeds_itself_and_triples inductor"]["status"] == "fail_accuracy", rows


def test_a_module_that_also_runs_as_eager_is_named(run: Callable[..., dict[str, Any]]) -> None:
    """``set_module()`` replaces one of two references, so one of five calls is eager's."""
    (row,) = run("training", "keeps_an_alias", "inductor").values()
    assert json.loads(row["facts"])["degraded"] == "1 call of the module in a step ran as eager", row


def test_missing_values_that_no_step_writes_are_no_fault(run: Callable[..., dict[str, Any]]) -> None:
    """Labels that are NaN are masked in the loss; a tensor, an array and a buffer hold them."""
    rows = run("training", "misses_labels", "eager,faithful,tripled")
    statuses = {name.split()[1]: row["status"] for name, row in rows.items()}
    assert statuses == {"eager": "pass", "faithful": "pass", "tripled": "fail_accuracy"}, rows
    assert rows["misses_labels tripled"]["cause"] == "tolerance", rows


def test_a_step_with_a_scripted_module_is_compared(run: Callable[..., dict[str, Any]]) -> None:
    """The tables of a scripted module have other methods than a dictionary."""
    rows = run("training", "scripts_its_loss", "eager,faithful,tripled")
    statuses = {name.split()[1]: row["status"] for name, row in rows.items()}
    assert statuses == {"eager": "pass", "faithful": "pass", "tripled": "fail_accuracy"}, rows


def test_code_that_draws_outside_its_module_is_judged_as_it_is_timed(
    run: Callable[..., dict[str, Any]],
) -> None:
    """The targets of a step are random, and the module draws nothing."""
    (row,) = run("training", "draws_its_targets", "inductor").values()
    assert row["status"] == "pass", row
    assert "random_numbers" not in json.loads(row["facts"])


def test_an_input_that_only_compiled_code_writes_is_no_fault_of_eager(
    run: Callable[..., dict[str, Any]],
) -> None:
    """Eager runs again after compiled code has written."""
    rows = run("training", "writes_its_input", "eager,faithful")
    assert rows["writes_its_input eager"]["status"] == "pass", rows
    assert rows["writes_its_input faithful"]["status"] == "fail_accuracy", rows


@pytest.mark.parametrize(
    ("variable", "code", "verdict"), [("OTHER", 3, "unchanged"), ("UPHILL", 1, "outputs_differ")]
)
def test_two_builds_of_upstreams_step_are_compared(
    tmp_path: Path, fake_torchbench: Any, variable: str, code: int, verdict: str
) -> None:
    """The optimizer of head takes equal steps, or steps in the opposite direction."""
    fake_torchbench.write(tmp_path / "checkout")
    words = ("--models", "reads_its_direction", "--mode", "training", "--config", "eager")
    quick = ("--device", "cpu", "--measure-seconds", "0.1", "--max-launches", "2", "--no-memory-probe")
    where = ("--torchbench", str(tmp_path / "checkout"), "--store", str(tmp_path / "store"), "--json")
    command = [sys.executable, "-m", "torchgauge", "ab", "torchbench", *words, *quick, *where]
    command += ["--no-control", "--head-env", f"{variable}=1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    status = next(each for each in json.loads(done.stdout)["verdicts"] if each["metric"] == "status")
    assert (done.returncode, status["verdict"]) == (code, verdict), done.stderr
    assert status["reason"].startswith("head's state.update." if code == 1 else ""), status
    assert (status["reason"] == "") is (code == 3), status


def test_an_infinity_beside_a_wrong_sum_does_not_excuse_it(run: Callable[..., dict[str, Any]]) -> None:
    """The rounding of a sum of other numbers is finite."""
    (row,) = run("training", "doubles_a_sum", "faithful").values()
    assert row["status"] == "fail_accuracy", row


def test_a_gradient_of_zeros_equals_none(run: Callable[..., dict[str, Any]]) -> None:
    """Compiled code gives the parameters of an unused output zeros, and so moments, and eager gives none."""
    models = ("leaves_an_output_unused", "leaves_outputs_unused_in_turn")
    rows = run("training", ",".join(models), "eager,differentiated,gradient_off")
    expected = {"eager": "pass", "differentiated": "pass", "gradient_off": "fail_accuracy"}
    for model in models:
        statuses = {name: rows[f"{model} {name}"]["status"] for name in expected}
        assert statuses == expected, [row["reason"] for row in rows.values()]


def test_a_step_that_leaves_the_eager_module_in_place_has_no_row_of_the_configuration(
    run: Callable[..., dict[str, Any]],
) -> None:
    """The configuration did not run, so its row is an error and eager's is a pass."""
    rows = run("training", "dcgan", "eager,faithful")
    assert rows["dcgan eager"]["status"] == "pass"
    row = rows["dcgan faithful"]
    assert (row["status"], row["phase"]) == ("error", "accuracy"), row
    assert row["reason"].startswith(
        "the configuration did not run: 1 step entered the code of faithful 0 times"
    )


def test_steps_that_leave_the_compiled_module_out_are_no_pass(run: Callable[..., dict[str, Any]]) -> None:
    """Nine of ten steps call the eager module by another reference, and those of eager call it in each."""
    rows = run("training", "calls_another", "eager,faithful")
    assert rows["calls_another eager"]["status"] == "pass", rows
    row = rows["calls_another faithful"]
    assert (row["status"], row["phase"]) in {("error", "warmup"), ("error", "measure")}, row
    assert "entered the code of faithful" in row["reason"]


def test_a_step_that_calls_its_module_less_often_as_eager_does_is_a_pass(
    run: Callable[..., dict[str, Any]],
) -> None:
    """Upstream calls it twice and once in turn; the module of another one is part of a module."""
    rows = run("training", "calls_less_often,calls_by_its_agent", "eager,faithful")
    assert {row["status"] for row in rows.values()} == {"pass"}, [row["reason"] for row in rows.values()]


def test_what_a_step_writes_beside_parameters_and_buffers_is_compared(
    run: Callable[..., dict[str, Any]],
) -> None:
    """A mean that the forward pass replaces, and moments of an optimizer that is compiled with its step."""
    rows = run("training", "keeps_a_mean,lennard_jones", "faithful,moments_off,scalars_off")
    assert {row["reason"] for name, row in rows.items() if "faithful" in name} == {None}
    paths = {"keeps_a_mean scalars_off": ".written.model.mean", "lennard_jones moments_off": ".exp_avg."}
    for name, path in paths.items():
        assert rows[name]["status"] == "fail_accuracy", rows
        assert path in rows[name]["reason"]


def test_attributes_that_a_training_step_changes_are_compared(run: Callable[..., dict[str, Any]]) -> None:
    """Compiled code counts two calls where eager counts one, or steps a scheduler that eager does not."""
    rows = run("training", "counts_otherwise,steps_its_scheduler", "faithful")
    assert {row["status"] for row in rows.values()} == {"fail_accuracy"}, rows
    reason = rows["counts_otherwise faithful"]["reason"]
    assert reason.startswith("after.attribute.model.calls: 2 instead of 1")
    assert "state.written.scheduler.last_epoch" in rows["steps_its_scheduler faithful"]["reason"]


def test_a_step_that_calls_its_module_inside_of_a_transform_is_compiled_whole(
    run: Callable[..., dict[str, Any]],
) -> None:
    """Upstream's runner compiles its ``eval()`` and ``train()``; a compiled module would never be entered."""
    for mode in ("inference", "training"):
        rows = run(mode, "lennard_jones", "eager,tripled,faithful")
        statuses = {name.split()[1]: row["status"] for name, row in rows.items()}
        assert statuses == {"eager": "pass", "faithful": "pass", "tripled": "fail_accuracy"}, rows
        assert "degraded" not in rows["lennard_jones faithful"]["modifiers"], rows


def test_a_model_without_a_place_for_another_module_is_compiled_whole(
    run: Callable[..., dict[str, Any]],
) -> None:
    """``maml`` does not implement ``set_module``, so its whole ``eval()`` or ``train()`` is compiled.

    Also after a graph break of a method without tensors of its own: a compiled ``train()`` is wrong here.
    """
    rows = run("inference", "maml", "eager,faithful")
    assert {row["status"] for row in rows.values()} == {"pass"}, [row["reason"] for row in rows.values()]
    rows = run("training", "maml", "eager,faithful")
    found = {name: (row["status"], "state.update." in str(row["reason"])) for name, row in rows.items()}
    assert found == {"maml eager": ("pass", False), "maml faithful": ("fail_accuracy", True)}, rows


@pytest.mark.parametrize("name", FREEZING)
def test_code_that_freezes_weights_is_no_pass_and_ends_no_other_row(
    run: Callable[..., dict[str, Any]], name: str
) -> None:
    """Compiled code freezes weights after the first step; where it freezes all, its next step raises."""
    rows = run("training", "phlippe_resnet", f"eager,{name}")
    assert rows["phlippe_resnet eager"]["status"] == "pass", rows
    row = rows[f"phlippe_resnet {name}"]
    status, reason = FREEZING[name]
    assert (row["status"], reason in row["reason"]) == (status, True), row
