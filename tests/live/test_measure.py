"""A model of this process is checked and timed by the worker's own code, and stays as it was."""

from __future__ import annotations

import functools
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import torchgauge as tg
from torchgauge.errors import DataFileError, MissingPackageError, UnknownNameError, UsageError
from torchgauge.live import result as results
from torchgauge.records import Cause, Status

X = torch.ones(8, 32)
quick = functools.partial(tg.measure, configs=["eager"], seconds=0.05, progress=False)


def small() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(16))


def test_a_row_has_a_checked_time_with_its_interval() -> None:
    """The result is a table for people, and rows for programs."""
    found = quick(small(), X, seconds=3.0)
    assert found.passed
    row = found["eager"]
    assert row.status is Status.PASS
    assert row.accuracy is not None
    assert row.accuracy.reference == "float64 on the host"
    latency = results.summary_of(row, "latency")
    assert latency is not None
    assert latency.low is not None
    assert latency.low <= found.seconds() <= latency.high  # type: ignore[operator]
    lines = repr(found).splitlines()
    assert lines[0] == "Sequential: inference in float32 on cpu"
    assert lines[2].split()[:2] == ["eager", "pass"]


def test_what_only_a_process_of_its_own_can_tell_is_absent_with_the_reason() -> None:
    """Memory of the host is that of the whole program here."""
    memory = results.summary_of(quick(small(), X)["eager"], "peak_memory")
    assert memory is not None
    assert memory.median is None
    assert "a separate process" in memory.absent


def test_the_callers_model_stays_as_it_was() -> None:
    """Weights, buffers, gradients, mode and random state are the caller's, in training too."""
    model = small()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    found = quick(model, X, mode="training", loss=lambda output: output.square().sum())
    assert torch.equal(torch.rand(2), expected)
    assert found.passed, found
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert len(before) == 7
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_compiled_code_of_the_caller_is_not_forgotten() -> None:
    """A program that goes on after a measurement compiles nothing again."""
    compiled = []

    def backend(graph: torch.fx.GraphModule, _: Any) -> Callable[..., Any]:
        compiled.append(graph)
        return graph.forward

    own = torch.compile(lambda x: x.sin() + 1, backend=backend)
    own(X)
    found = tg.measure(small(), X, configs=["eager", "aot_eager"], seconds=0.05, progress=False)
    assert found["aot_eager"].status is Status.PASS
    own(X)
    assert len(compiled) == 1


def test_a_model_that_the_caller_has_compiled_is_compiled_for_itself() -> None:
    """Dynamo keeps code by function: that of the caller must not run in the place of the measured one."""
    model = torch.nn.Sequential(torch.nn.Linear(32, 32)).eval()
    own = torch.compile(model, backend="aot_eager")
    with torch.no_grad():
        own(X)
    found = tg.measure(own, X, configs=["eager", "aot_eager"], seconds=0.05, progress=False)
    assert found.passed, found
    graphs = results.summary_of(found["aot_eager"], "graph_count")
    assert graphs is not None
    assert graphs.median == 1


@pytest.mark.parametrize(
    "model",
    [
        torch.sin,
        functools.partial(torch.add, other=2.0),
        small().eval().forward,
        functools.partial(small().eval()),
        torch.compile(small().eval(), backend="eager"),
        lambda x: {"first": x * 2, "rest": [x, 3]},
    ],
    ids=["function", "partial", "bound", "partial of a module", "compiled", "lambda"],
)
def test_any_callable_is_a_subject(model: Callable[..., Any]) -> None:
    """Functions, bound methods, partial objects and compiled modules."""
    assert quick(model, X).passed


@pytest.mark.parametrize("inputs", [X, (X,), [X], {"input": X}], ids=["tensor", "tuple", "list", "dict"])
def test_inputs_are_positional_or_by_keyword(inputs: Any) -> None:
    """A single tensor is an input, too."""
    assert quick(small(), inputs).passed


def test_a_failing_model_is_a_row_and_no_exception() -> None:
    """The status and the reason are the worker's."""

    class Broken(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("no such luck")

    found = quick(Broken(), X)
    assert not found.passed
    assert found["eager"].status is Status.ERROR
    assert "eager: eager: RuntimeError: no such luck" in repr(found)
    assert "no such luck" in found._repr_html_()


@pytest.mark.parametrize(
    ("returned", "said"), [(None, "nothing that could be compared"), (object(), "cannot be compared")]
)
def test_a_result_that_nobody_can_compare_is_an_error(returned: object, said: str) -> None:
    """Nothing is passed unchecked in silence."""
    found = quick(lambda _: returned, X)
    assert found["eager"].status is Status.ERROR
    assert said in found["eager"].reason


def test_a_model_that_ends_the_process_is_a_crash() -> None:
    """The program goes on, and the row has the phase that it was in."""

    def leaves(_: torch.Tensor) -> torch.Tensor:
        raise SystemExit(3)

    row = quick(leaves, X)["eager"]
    assert (row.status, row.cause, row.phase.value) == (Status.CRASH, Cause.EXIT, "eager")
    assert row.reason == "the model called sys.exit(3)"


def test_a_lazy_module_stays_lazy() -> None:
    """Shapes come from the first call of the copy."""
    model = torch.nn.LazyLinear(3)
    assert quick(model, X).passed
    assert model.has_uninitialized_params()


def test_training_without_a_loss_says_what_to_pass() -> None:
    """The reason names the argument."""
    found = quick(small(), X, mode="training")
    assert "pass loss=" in found["eager"].reason


class Uncopyable(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(32, 4)

    def __deepcopy__(self, _: object) -> Uncopyable:
        raise TypeError("one of a kind")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


def test_what_cannot_be_copied_is_measured_in_place_in_inference() -> None:
    """The row names it, and training, which would change the object, is refused."""
    model = Uncopyable().eval()
    found = quick(model, X)
    assert found.passed, found
    assert "one of a kind" in str(dict(found["eager"].facts)["measured_in_place"])
    with pytest.raises(UsageError, match="cannot be copied, so measuring would change it"):
        quick(model, X, mode="training", loss=lambda output: output.sum())


def test_an_interrupt_keeps_what_was_sampled(tmp_path: Path) -> None:
    """The row has the samples before it, and its latency says why there are no more."""
    timed = tmp_path / "timed"  # variables of a program are put back before each block

    def interrupted(x: torch.Tensor) -> torch.Tensor:
        time.sleep(0.002)  # a step is a block
        if any(frame.f_code.co_name == "_rounds" for frame, _ in traceback.walk_stack(None)):
            with timed.open("a") as file:
                file.write("1")
            if timed.stat().st_size == 20:
                raise KeyboardInterrupt
        return x + 1

    row = tg.measure(interrupted, X, configs=["eager"], seconds=600, progress=False)["eager"]
    assert row.status is Status.PASS
    latency = results.summary_of(row, "latency")
    assert latency is not None
    assert latency.stopped == "interrupted"
    assert 0 < latency.n < 20


def test_an_early_interrupt_ends_the_rest() -> None:
    """A row that has no number yet was not run."""

    def interrupted(_: torch.Tensor) -> torch.Tensor:
        raise KeyboardInterrupt

    row = quick(interrupted, X)["eager"]
    assert (row.status, row.cause, row.reason) == (Status.NOT_RUN, Cause.CANCELLED, "interrupted")


def test_results_are_saved_and_loaded(tmp_path: Path) -> None:
    """The file has everything; another file is refused by name."""
    found = quick(small(), X)
    found.save(tmp_path / "result.json")
    assert tg.load(tmp_path / "result.json") == found
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(DataFileError, match=r"other\.json"):
        tg.load(tmp_path / "other.json")


def test_frames_and_a_figure() -> None:
    """Columns are those of the store; the figure has an error bar for each configuration."""
    found = quick(small(), X)
    frame = found.to_pandas()
    assert frame.set_index("metric").loc["latency", "median"] == found.seconds()
    assert set(found.to_pandas("samples")["metric"]) >= {"latency"}
    assert found.to_pandas("results")["status"].tolist() == ["pass"]
    (bar,) = found.plot().data
    assert (list(bar.x), list(bar.y)) == (["eager"], [found.seconds()])
    assert bar.error_y.array[0] >= 0
    with pytest.raises(UnknownNameError):
        found.to_pandas("nonsense")


def test_without_plotly_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figure is optional, and so is its library."""
    monkeypatch.setitem(__import__("sys").modules, "plotly.graph_objects", None)
    with pytest.raises(MissingPackageError, match="plot needs plotly") as raised:
        quick(torch.sin, X).plot()
    assert raised.value.hint == "pip install plotly"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: quick("mine.py", X), "'mine.py' is the name of a model"),
        (lambda: quick(3, X), "a int cannot be called"),
        (lambda: quick(small(), X, configs="eager"), "is not a list of names"),
        (lambda: quick(small(), X, configs=[]), "is not a list of names"),
        (lambda: quick(small(), X, configs=["inducter"]), "did you mean inductor"),
        (lambda: quick(small(), X, mode="train"), "did you mean training"),
        (lambda: quick(small(), X, dtype="float31"), "unknown dtype"),
        (lambda: quick(small(), X, device="nonsense"), "unknown device 'nonsense'"),
        (lambda: quick(small(), X)["inductor"], "unknown configuration 'inductor'"),
    ],
)
def test_a_mistake_is_named(call: Callable[[], object], said: str) -> None:
    """The message says what, and what to try."""
    with pytest.raises(UsageError) as raised:
        call()
    assert said in str(raised.value)
    assert "try: " in str(raised.value)
