"""Compiling by region: how many graphs that makes, and torch's own words where it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torchgauge.errors import DataFileError
from torchgauge.harness.backends.backend import backend_named, options_of
from torchgauge.harness.backends.compile_regional import extra_graphs
from torchgauge.harness.backends.prepared import BackendSession, Prepared, prepare
from torchgauge.harness.planning.configurations import load_configurations
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.harness.worker.compilation import CompileCounters
from torchgauge.records import Configuration, Status

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


class Host:
    """The part of a device session that a backend needs."""

    torch_device = torch.device("cpu")

    def synchronize(self) -> None:
        """The host has nothing to wait for."""


def stack(*widths: int) -> Any:
    """Blocks of one class, each of its own width, in one list."""

    class Block(torch.nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.feed = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.Linear(width, 8))

        def forward(self, x: Any) -> Any:
            return x + self.feed(x).relu()

    class Stack(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = torch.nn.ModuleList(map(Block, widths))

        def forward(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(x)
            return x

    torch.manual_seed(0)
    return Stack()


def prepared(folder: Path, module: Any, *, train: bool = False, **options: Any) -> Prepared:
    """What the backend makes of ``module``, judged, without generating code."""
    inputs = torch.randn(2, 8)
    options = {"backend": "aot_eager", **options}
    configuration = Configuration("c", "compile_regional", tuple(sorted(options.items())))

    def step(call: Any) -> Any:
        return lambda: call(inputs).sum().backward() if train else call(inputs)

    subject = Subject(module, module, (inputs,), {}, None, Host(), 0)  # type: ignore[arg-type]
    session = BackendSession(Host(), step, cache=str(folder))  # type: ignore[arg-type]
    with torch.set_grad_enabled(train):
        made = prepare(backend_named("compile_regional"), subject, configuration, session)
    made.judged()
    return made


def graphs(made: Prepared) -> float:
    return next(each.samples[0] for each in made.measurements if each.metric == "graph_count")


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_training_may_make_one_graph_more(tmp_path: Path) -> None:
    """The first block's input needs no gradient and the others' do: the compiler says so, nobody objects."""
    made = prepared(tmp_path, stack(16, 16, 16), train=True)
    assert (graphs(made), made.degraded) == (2, [])
    assert "requires_grad" in str(made.evidence["recompile_reasons"])


def test_a_graph_that_nothing_explains_is_degraded(tmp_path: Path) -> None:
    """Equal blocks that each branch on a word of their own compile one by one; its words are the evidence."""
    module = stack(16, 16, 16)
    kind = type(module.blocks[0])
    for block, act in zip(module.blocks, ("relu", "tanh", "sigmoid"), strict=True):
        block.act = act
    kind.forward = lambda self, x: x + getattr(torch, self.act)(self.feed(x))
    made = prepared(tmp_path, module)
    assert graphs(made) == 3
    (said,) = made.degraded
    assert said.startswith("3 graphs where 1 would do: ")
    assert "act" in said


def test_a_graph_break_around_the_blocks_is_degraded() -> None:
    """What broke stands in the evidence, and so does that nobody said."""
    broken = CompileCounters(graphs=2, breaks=1, break_reasons=("print",))
    assert extra_graphs(1, broken) == "2 graphs where 1 would do: print"
    assert "no reason" in extra_graphs(1, CompileCounters(graphs=2))
    two = CompileCounters(graphs=3, recompile_reasons=("requires_grad mismatch", "size mismatch"))
    assert extra_graphs(1, two).startswith("3 graphs where 1 would do")
    assert extra_graphs(2, two) == ""


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize(
    ("widths", "train", "calls", "regions"),
    [((16,) * 4, False, 4, 1), ((16, 16, 32, 32), False, 4, 2), ((16,) * 4, True, 3, 1)],
)
def test_equal_blocks_are_calls_of_one_region(tmp_path: Path, widths, train, calls, regions) -> None:
    """All of them without gradients; in training the first one's input needs none, and torch inlines it."""
    made = prepared(tmp_path, stack(*widths), train=train, nested=True)
    facts = made.evidence["region_calls"], made.evidence["region_graphs"]
    assert (*facts, graphs(made), made.degraded) == (calls, regions, 1, [])


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize(
    ("words", "train", "widths", "said"),
    [
        (("relu", "tanh", "sigmoid"), False, (16,) * 3, "0 of 3 blocks call a region"),
        (("relu", "relu", "tanh", "tanh"), False, (16,) * 4, "2 regions where 1 would do"),
        (("relu", "relu"), True, (16,) * 2, "0 of 2 blocks call a region"),
    ],
)
def test_a_block_that_is_no_region_is_degraded(tmp_path: Path, words, train, widths, said) -> None:
    """One graph all the same: what only one call would use torch compiles in its place, without a word."""
    module = stack(*widths)
    kind = type(module.blocks[0])
    for block, act in zip(module.blocks, words, strict=True):
        block.act = act
    kind.forward = lambda self, x: x + getattr(torch, self.act)(self.feed(x))
    made = prepared(tmp_path, module, train=train, nested=True)
    assert graphs(made) == 1
    (degraded,) = made.degraded
    assert degraded.startswith(said)
    assert "hierarchical_compile" in degraded


def test_more_entries_than_torchs_eight_are_an_error_of_torchs(tmp_path: Path) -> None:
    """Nine kinds of block in one nested compilation are one too many, unless more are asked for."""
    widths = range(8, 8 * 10, 8)
    with pytest.raises(Exception, match="reuse"):
        prepared(tmp_path, stack(*widths), nested=True)
    made = prepared(tmp_path / "more", stack(*widths), nested=True, max_reuse_entries=9)
    assert (graphs(made), made.evidence["region_kinds"]) == (1, 9)


def test_own_options_are_strict_and_others_are_torchs(tmp_path: Path) -> None:
    """A number that is none is refused where it stands; a setting of the compiler is not ours to judge."""
    file = tmp_path / "own.yaml"
    text = "configurations:\n  - name: own\n    doc: own\n    backend: compile_regional\n    options: {%s}\n"
    file.write_text(text % "max_reuse_entries: many", encoding="utf-8")
    with pytest.raises(DataFileError, match="max_reuse_entries"):
        load_configurations(file)
    file.write_text(text % "nested: true, cpp.simdlen: 256", encoding="utf-8")
    made = load_configurations(file)["own"].configuration
    assert options_of(backend_named("compile_regional"), made).nested is True


def test_an_option_that_torch_does_not_know_ends_as_error(make_sandbox, tmp_path: Path) -> None:
    """From the command line to the row: status, and torch's own words."""
    file = tmp_path / "own.yaml"
    file.write_text(
        "configurations:\n"
        "  - {name: unknown, doc: none, backend: inductor, options: {no_such_setting: true}}\n"
        "  - {name: package, doc: none, backend: aot_inductor, options: {no_such_setting: true}}\n"
        "  - {name: region, doc: none, backend: compile_regional,"
        " options: {backend: aot_eager, nested: true, partitioner: default_partition}}\n",
        encoding="utf-8",
    )
    sandbox = make_sandbox()
    sandbox.measure(
        "features", "--models", "compile.regional-stack4", "--mode", "inference", "--device", "cpu",
        "--config", "unknown,package,region", "--config-file", str(file),
    )  # fmt: skip
    rows = {row.case.configuration.name: row for row in sandbox.rows()}
    assert {row.status for row in rows.values()} == {Status.ERROR}
    assert "no_such_setting" in rows["unknown"].reason
    assert "no_such_setting" in rows["package"].reason
    assert "experimental feature for testing only" in rows["region"].reason
