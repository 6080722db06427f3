"""A result keeps eager's contract beside its numbers, and a step what it makes of attributes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from torchgauge.records import Cause, Modifier, Result, Status

pytestmark = pytest.mark.torch
MODULE = "torchgauge_faults.promises_models"
RESULTS = {
    "dict_for_tuple": "out: dict instead of tuple",
    "list_for_tuple": "out: list instead of tuple",
    "tuple_for_list": "out.0: tuple instead of list",
    "tensor_for_tuple": "out: dict instead of tuple",
    "lost_none": "out.1: nothing instead of None",
    "lost_none_of_a_dict": "out.cache: nothing instead of None",
    "tuple_for_pair": f"out: tuple instead of {MODULE}.Pair",
    "other_class": f"out: {MODULE}.Twin instead of {MODULE}.Result",
    "dict_for_output": f"out: dict instead of {MODULE}.Output(a, b)",
    "other_order": f"out: {MODULE}.Output(b, a) instead of {MODULE}.Output(a, b)",
    "plain_tensor": f"out: Tensor of torch.float32 instead of {MODULE}.Sub of torch.float32",
    "array_for_tensor": "out.1: numpy.ndarray instead of Tensor of torch.float32",
    "integer_for_float": "out.1: int instead of float",
    "number_for_tensor": "out.1: float instead of a tensor",
    "tensor_for_number": "out.1: a tensor instead of float",
    "other_strides": "out: strides (1, 16) instead of strides (16, 1)",
    "new_alias": "out.1: memory of args.0 instead of memory of its own",
    "lost_alias": "out.1: memory of its own instead of memory of args.0",
    "lost_alias_of_a_weight": "out.1: requires_grad=False instead of requires_grad=True",
    "one_memory": "out: memory of an earlier result instead of new memory",
    "two_memories": "out: memory of an earlier result instead of new memory",
    "lost_gradient": "out.1: requires_grad=False instead of requires_grad=True",
    "added_gradient": "out.1: requires_grad=True instead of requires_grad=False",
    "of_inference_mode": "out: requires_grad=False, of inference mode instead of requires_grad=False",
}
"""Faults of a result, and their reasons."""
ATTRIBUTES = {
    "counts": "after.attribute.model.calls: 0 instead of 1",
    "depends": "after.attribute.model.calls: 0 instead of 1",
    "renames": "after.attribute.model.mode: 'first' instead of 'later'",
    "lists": "structure differs: after.attribute.model.seen.0",
    "remembers": "after.attribute.model.last: largest error",
    "writes": "after.attribute.model.last: largest error 1",
    "creates": "structure differs: after.attribute.model.scale",
    "deletes": "after.attribute.model.first: True instead of None",
    "caches": "structure differs: after.attribute.model.cache.keys.0",
    "queues": "structure differs: after.attribute.model.names.1",
    "tables": "after.attribute.model.table.calls.0: 0 instead of 1",
    "arrays": "after.attribute.model.array: largest error 1",
    "nested": "after.attribute.parts.0.calls: 0 instead of 1",
    "slots": "after.attribute.model.state.calls: 0 instead of 1",
    "schedules": "after.attribute.model.state.calls: 0 instead of 1",
    "closures": "after.attribute.model.state.calls: 0 instead of 1",
    "binds": "after.attribute.model.state.args.0.0: 0 instead of 1",
    "bytes": "after.attribute.model.state: b'' instead of b'\\x01'",
    "waits": "structure differs: after.attribute.model.state.queue.0",
    "threads": "after.attribute.model.state.calls: 0 instead of 1",
    "weakly": "after.attribute.model.state.data.",
    "bound": "structure differs: after.attribute.model.state.0.self.0",
    "of_the_class": "after.attribute.OfTheClass.calls: 0 instead of 1",
    "of_the_module": f"after.attribute.{MODULE}.CALLS: 0 instead of 1",
    "large_vocabulary": "after.attribute.model.owner.0.0.meter.calls: 0 instead of 1",
    "returns_its_state": "after.attribute.model.meter.calls: 0 instead of 1",
}
"""Programs that change attributes, and the reason of a back end that does not."""
RIGHT = (
    "view_of_an_input",
    "weights",
    "none_leaves",
    "result_of_a_user",
    "output_with_attributes",
    "views_of_one_result",
    "topk",
    "plain_values",
    "steep",
    "draws",
    "odd",
    "own_memory",
    "iterates",
    "hooked",
    "builds_later",
    "owns_its_tensors",
    "changes_layers",
    "stays_in_place",
    "own_generator",
    "views_of_a_dict",
    "takes_back",
)
UNRESTORED = {
    "removes_its_hook": " (model._forward_pre_hooks): ",
    "fades_a_sparse_buffer": ", but copies agree: ",
    "counts_elsewhere": ", but two processes with one initial state agree: ",
    "draws_elsewhere": ", but two processes with one initial state agree: ",
}
"""Programs with state that cannot be restored, and who shows that it is state."""
RECOMPILED = {"counts", "depends", "lists", "caches", "tables", "nested"}
"""Programs that dynamo recompiles in each step until its limit; eager runs then, as in the user's program."""
COPIED = ATTRIBUTES.keys() - {"waits", "threads"}
"""Programs that ``copy.deepcopy`` can copy."""
FILE = """configurations:
  - {name: broken, doc: x, backend: broken}
  - {name: documented, doc: x, backend: documented}
  - {name: copied, doc: x, backend: copied}
"""
GRADIENTS = [model for model in RESULTS if model.endswith("_gradient")]
PARTS = {
    "results": ([*RESULTS], "eager,broken", "inference"),
    "gradients": (GRADIENTS, "eager,broken", "training"),
    "attributes": ([*ATTRIBUTES], "eager,broken", "inference"),
    "compiled": (sorted(ATTRIBUTES), "eager,aot_eager", "inference,training"),
    "right": ([*RIGHT], "eager,aot_eager", "inference,training"),
    "right in broken": ([*RIGHT], "eager,broken", "inference,training"),
    "unrestored": ([*UNRESTORED], "eager,aot_eager", "inference,training"),
    "documented": (["one_memory", "two_memories", "new_alias", "other_strides"], "documented", "inference"),
    "copied": ([*sorted(COPIED), "weights", "draws"], "copied", "inference"),
}
"""Runs by name: models, configurations and modes."""
Rows = Callable[[str], dict[str, Result]]


@pytest.fixture(scope="module")
def rows(make_sandbox: Callable[[], Any]) -> Rows:
    """Return a function from a part to its rows by model, configuration and mode; each part runs once."""

    @functools.cache
    def run(part: str) -> dict[str, Result]:
        models, configurations, modes = PARTS[part]
        box = make_sandbox()
        file = box.store_path.with_name("promises.yaml")
        file.write_text(FILE, encoding="utf-8")
        done = box.measure(
            *("promises", "--models", ",".join(models), "--device", "cpu", "--config", configurations),
            *("--mode", modes, "--config-file", str(file), "--no-fallback-check"),
        )
        assert done.returncode in (0, 1), done.stderr[-4000:]
        cases = [(row, row.case.workload, row.case.configuration.name) for row in box.rows()]
        return {f"{workload.model} {name} {workload.mode}": row for row, workload, name in cases}

    return run


@pytest.mark.parametrize("model", RESULTS)
def test_a_result_that_breaks_the_contract_fails(rows: Rows, model: str) -> None:
    """All its numbers are eager's."""
    part, mode = ("gradients", "training") if model in GRADIENTS else ("results", "inference")
    assert rows(part)[f"{model} eager {mode}"].status is Status.PASS
    row = rows(part)[f"{model} broken {mode}"]
    assert (row.status, row.cause, row.reason) == (Status.FAIL_ACCURACY, Cause.CONTRACT, RESULTS[model])


@pytest.mark.parametrize("model", ATTRIBUTES)
def test_a_lost_change_of_an_attribute_is_found(rows: Rows, model: str) -> None:
    """Eager passes, as each of its runs finds the attributes of the first."""
    assert rows("attributes")[f"{model} eager inference"].status is Status.PASS
    row = rows("attributes")[f"{model} broken inference"]
    assert (row.status, row.cause) == (Status.FAIL_ACCURACY, Cause.TOLERANCE)
    assert row.reason.startswith(ATTRIBUTES[model])


@pytest.mark.parametrize("model", sorted(RECOMPILED))
def test_a_program_that_dynamo_gives_up_is_degraded(rows: Rows, model: str) -> None:
    """The results are right, and the row names dynamo's limit."""
    row = rows("compiled")[f"{model} aot_eager inference"]
    assert (row.status, row.reason) == (Status.PASS, "")
    assert "torch._dynamo hit config.recompile_limit (8)" in row.degraded


@pytest.mark.parametrize(
    ("part", "name", "model"),
    [
        *(("right", "aot_eager", model) for model in RIGHT),
        *(pytest.param("right in broken", "broken", model, marks=pytest.mark.full) for model in RIGHT),
        *(
            pytest.param("compiled", "aot_eager", model, marks=pytest.mark.full)
            for model in sorted(ATTRIBUTES.keys() - RECOMPILED)
        ),
    ],
)
def test_a_right_program_passes(rows: Rows, part: str, name: str, model: str) -> None:
    """It aliases, keeps, draws and returns what it likes, compiled too."""
    found = rows(part)
    modes = {key.split()[2] for key in found if key.startswith(f"{model} eager")}
    assert "inference" in modes
    for row in (found[f"{model} {each} {mode}"] for mode in modes for each in ("eager", name)):
        assert (row.status, row.reason) == (Status.PASS, "")


@pytest.mark.parametrize("mode", ["inference", "training"])
@pytest.mark.parametrize("model", UNRESTORED)
def test_a_program_that_cannot_be_restored_is_timed(rows: Rows, model: str, mode: str) -> None:
    """Nothing is accused, and no row counts as checked."""
    for row in (rows("unrestored")[f"{model} {name} {mode}"] for name in ("eager", "aot_eager")):
        assert (row.status, row.reason, row.accuracy) == (Status.PASS, "", None)
        why = "two runs differ by program state that cannot be restored"
        assert str(dict(row.facts)["unchecked"]).startswith(why + UNRESTORED[model])
        assert any(each.metric == "latency" and each.samples for each in row.measurements)


@pytest.mark.parametrize("model", [*sorted(COPIED), "weights", "draws"])
def test_a_copy_of_the_module_has_attributes_too(rows: Rows, model: str) -> None:
    """What the copy changes is compared and put back."""
    row = rows("copied")[f"{model} copied inference"]
    assert (row.status, row.reason) == (Status.PASS, "")


def test_what_a_back_end_documents_is_not_a_fault(rows: Rows) -> None:
    """Reused memory is a modifier, another difference a fact; what is not documented fails."""
    for model in ("one_memory", "two_memories"):
        row = rows("documented")[f"{model} documented inference"]
        assert row.status is Status.PASS
        assert Modifier.REUSES_OUTPUT in row.modifiers
        assert dict(row.facts)["reuses_output"] == RESULTS[model]
    row = rows("documented")["new_alias documented inference"]
    assert (row.status, dict(row.facts)["not_promised"]) == (Status.PASS, RESULTS["new_alias"])
    assert Modifier.REUSES_OUTPUT not in row.modifiers
    assert rows("documented")["other_strides documented inference"].reason == RESULTS["other_strides"]


def test_a_result_on_the_host_fails(make_sandbox: Callable[[], Any]) -> None:
    """Where eager returns it on the device."""
    pytest.importorskip("torchgauge_npusim")
    box = make_sandbox()
    file = box.store_path.with_name("promises.yaml")
    file.write_text(FILE, encoding="utf-8")
    words = ("--device", "npusim", "--config", "eager,broken", "--config-file", str(file))
    box.measure("promises", "--models", "host_for_device", *words)
    rows = {row.case.configuration.name: row for row in box.rows()}
    assert rows["eager"].status is Status.PASS
    assert (rows["broken"].cause, rows["broken"].reason) == (
        Cause.CONTRACT,
        "out.1: on cpu instead of on npusim:0",
    )
