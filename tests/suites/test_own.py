"""A Python file as a suite, from the command line: what is found in it, what runs, and what mistakes get."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from torchgauge.cli.main import cli
from torchgauge.errors import UsageError
from torchgauge.records import Result, Status
from torchgauge.results.journal import results
from torchgauge.results.store import Store

pytestmark = pytest.mark.torch

GOOD = """
import sys
import threading
import torch
from neighbour import WIDTH

print("imported with", sys.argv)
torch.set_default_dtype(torch.float64)
threading.Thread(target=threading.Event().wait, daemon=True).start()

def plain():
    return torch.nn.Linear(WIDTH, 4), (torch.ones(2, WIDTH),)

def named(batch=3):
    class Scaled(torch.nn.Module):
        def forward(self, x, *, factor):
            return x * factor
    return Scaled(), (torch.ones(batch, 2),), {"factor": torch.tensor(2.0)}

def exemplary(dtype, device, seed):
    assert (dtype, device) == (torch.float32, "cpu")
    class Example(torch.nn.Module):
        def forward(self, x):
            return x.relu()
        def example_inputs(self):
            return (torch.full((5, 2), float(seed)),)
    return Example()

def compiled():
    return torch.compile(torch.nn.Linear(4, 4)), torch.ones(2, 4)

def function():
    return torch.sin, torch.ones(7)

def takes(x):
    return x

def quiet():
    print("nothing")

def _private():
    return None

def loss(output, x, **named):
    return output.square().mean()
"""
BAD = """
import functools
import sys
import threading
import numpy
import torch

def exits():
    return sys.exit(3)

def nothing():
    return None if sys.argv else 1

def of_a_class():
    return torch.nn.Linear, (torch.ones(2, 2),)

def arrays():
    return torch.nn.Linear(2, 2), (numpy.ones((2, 2)),)

def without_inputs():
    return torch.nn.Linear(2, 2)

def lacking():
    import nosuchpackage
    return nosuchpackage.model()

def on_a_gpu():
    return torch.nn.Linear(2, 2).cuda(), (torch.ones(2, 2),)

def uncopyable():
    class Held(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lock = threading.Lock()
        def forward(self, x):
            return x + 1
    return Held(), (torch.ones(2),)

def growing():
    class Growing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
        def forward(self, x):
            self.calls += 1
            return x * self.calls
    return Growing(), (torch.ones(2),)

def crossed():
    return torch.nn.Linear(2, 2), (torch.ones(3, 5),)

def elsewhere():
    return torch.nn.Linear(2, 2), (torch.ones(2, 2, device="meta"),)

def by_default():
    torch.set_default_device("meta")
    return torch.nn.Linear(2, 2), (torch.ones(2, 2, device="cpu"),)

def raising():
    raise ValueError("of its own")
    return None

def asserting():
    assert torch.ones(2).sum() == 3
    return None

def commanding():
    import subprocess, sys
    subprocess.run([sys.executable, "-c", "raise SystemExit('no disk')"], capture_output=True, check=True)
    return None

def introducing():
    raise RuntimeError("backend='mine' raised:\\n  KeyError: 'weight'\\nsee the log")
    return None

def of_two():
    return torch.nn.Bilinear(2, 2, 2), torch.ones(3, 2), torch.ones(3, 2)

def exported():
    inputs = (torch.ones(2, 2),)
    return torch.export.export(torch.nn.Linear(2, 2), inputs).module(), inputs

def partial():
    network = torch.nn.Sequential(torch.compile(torch.nn.Linear(2, 2)))
    return functools.partial(network.forward), (torch.ones(2, 2),)

def lightning():
    module = torch.nn.Linear(2, 2)
    module.example_input_array = torch.ones(2, 2)
    return module
"""
OF_A_COMMAND = """
import argparse
import torch

wanted = argparse.ArgumentParser()
wanted.add_argument("width")
wanted.parse_args()

def model():
    return torch.nn.Linear(2, 2), (torch.ones(2, 2),)
"""
TWO_OUTPUTS = """
import torch

class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.used(x), self.unused(x)

def two():
    return Two(), torch.randn(5, 4)

def loss(output, x):
    return output[0].square().mean()
"""
SPREAD = """
import torch

class Spread(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 64)
        self.register_buffer("size", torch.cat([torch.ones(32), torch.full((32,), 1e-4)]))
        self.register_buffer("sign", torch.cat([torch.ones(32), -torch.ones(32)]))

    def forward(self, x):
        bias = self.linear.bias
        if torch.compiler.is_compiling():
            bias = bias.detach() + self.sign * (bias - bias.detach())
        return (torch.nn.functional.linear(x, self.linear.weight) + bias) * self.size

def spread():
    return Spread(), torch.randn(4096, 4)

def loss(output, x):
    return output.square().sum()
"""
OWN_STEP = """
import torch

class Step(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 8)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), 1e-3)

    def forward(self, x):
        with torch.enable_grad():
            loss = self.net(x).square().mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss.detach()

def step():
    return Step(), torch.randn(4, 8)
"""
COMPILES_ITSELF = """
import torch
from torch.nn.attention.flex_attention import flex_attention


class Model(torch.nn.Linear):
    def __init__(self, call=None):
        super().__init__(8, 8)
        self.act = call

    @torch.compile
    def method(self, x):
        return x.exp()

    def forward(self, x):
        if self.act is None:
            return self.method(super().forward(x))
        return self.act(super().forward(x))


class Attention(torch.nn.Module):
    def forward(self, x):
        return flex_attention(x, x, x)


class Plain(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x).exp()


def traced():
    return torch.jit.trace(Plain(8, 8).eval(), torch.ones(2, 8)), torch.ones(2, 8)


def attribute():
    return Model(torch.compile(torch.exp)), torch.ones(2, 8)


def disabled():
    return Model(torch.compiler.disable(torch.exp)), torch.ones(2, 8)


def method():
    return Model(), torch.ones(2, 8)


def attention():
    return Attention(), torch.rand(1, 1, 16, 16)


def threads():
    return Model(lambda x: torch.set_num_threads(2) or x), torch.ones(2, 8)


def onednn():
    return Model(lambda x: torch.backends.mkldnn.set_flags(False) and x), torch.ones(2, 8)


def autocast(batch=16):
    torch.set_autocast_enabled("cpu", True)
    return Model(torch.exp), torch.ones(3, 8)
"""
"""Models that contain compiled functions or none, and models that change settings."""
UNTRAINABLE = """
import torch

def frozen():
    return torch.nn.Linear(2, 2).requires_grad_(False), (torch.ones(2, 2),)

def model():
    return torch.nn.Linear(2, 2), (torch.ones(2, 2),)

def loss(output, x):
    return output - x
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run torchgauge in ``folder`` with little time for each case."""
    quick = ("--no-calibration", "--no-memory-probe", "--measure-seconds", "0.05")
    command = [sys.executable, "-m", "torchgauge.cli.main", "run", *words, "--device", "cpu", *quick]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280, check=False)


def rows_of(store: Path) -> dict[str, Result]:
    """Return the rows of the newest run by model and mode."""
    opened = Store.open(store)
    folder = opened.run(max(path.name for path in (store / "runs").iterdir()))
    found = results(folder.journal_path)
    return {f"{each.case.workload.model} {each.case.workload.mode}": each for each in found}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a space and an umlaut, and in it a repository with files of models."""
    folder = tmp_path_factory.mktemp("own") / "mein Büro"
    (folder / ".git").mkdir(parents=True)
    (folder / "bench").mkdir()
    (folder / "bench" / "neighbour.py").write_text("WIDTH = 6\n")
    (folder / "bench" / "good.py").write_text(GOOD)
    (folder / "bad.py").write_text(BAD)
    (folder / "odd name.py").write_text("def größe(): return 1")
    (folder / "notes.ipynb").write_text("{}")
    (folder / "empty.py").write_text("x = 1")
    (folder / "helpers.py").write_text("def first(x, y): return x")
    (folder / "broken.py").write_text("x = 1\ndef model(:")
    return folder


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run one command in this process, in a folder."""

    def run(folder: Path, *words: str) -> Any:
        monkeypatch.chdir(folder)
        return CliRunner().invoke(cli, list(words))

    return run


@pytest.fixture(scope="session")
def good(folder: Path) -> tuple[subprocess.CompletedProcess[str], dict[str, Result]]:
    """Every function of the good file, in both modes, with its rows."""
    words = ("--mode", "inference,training", "--config", "eager", "--store", "good")
    done = run(folder, "bench/good.py", *words)
    return done, rows_of(folder / "good")


@pytest.fixture(scope="session")
def bad(folder: Path) -> tuple[subprocess.CompletedProcess[str], dict[str, Result]]:
    """Every function of the bad file, with its rows."""
    done = run(folder, "bad.py", "--config", "eager", "--store", "bad-results")
    return done, rows_of(folder / "bad-results")


def test_each_function_that_returns_something_is_a_model(good: Any) -> None:
    """Inputs may be positional, named, both, or the module's own; a function may be what is measured."""
    done, rows = good
    functions = ("plain", "named", "exemplary", "compiled", "function")
    told = {name: (row.status, row.reason) for name, row in rows.items()}
    assert told.keys() == {f"{name} {mode}" for name in functions for mode in ("inference", "training")}, done
    trained = {"plain training", "compiled training"}
    passed = {name for name, (status, _) in told.items() if status is Status.PASS}
    assert passed == {f"{name} inference" for name in functions} | trained, told
    for name in functions[1:3]:
        status, reason = told[f"{name} training"]
        assert status is Status.UNSUPPORTED
        assert reason.endswith(
            f"good.py: {name}() returned a module without parameters, which cannot be trained"
        )


def test_what_is_not_a_model_is_said_with_the_reason(good: Any) -> None:
    """A function with arguments of its own, one that returns nothing; private ones are passed over."""
    done, _ = good
    assert "note: good.py: takes is not a model: it requires x; " in done.stderr
    assert "note: good.py: quiet is not a model: it returns nothing" in done.stderr
    assert "_private" not in done.stdout + done.stderr
    assert "imported with" not in done.stdout + done.stderr


def test_what_a_file_changes_of_the_process_is_put_back_and_said(good: Any) -> None:
    """The default dtype is float32 while the model is measured; the row keeps what the file did."""
    _, rows = good
    row = rows["plain inference"]
    assert row.realised is not None
    assert "good.py sets the default dtype to torch.float64; reset to torch.float32" in row.realised.notes
    said = "the file's torch.compile is ignored: the configuration selects the compiler"
    assert said in rows["compiled inference"].realised.notes


def test_a_series_is_named_by_file_function_and_workload(good: Any, folder: Path, typed: Any) -> None:
    """Wherever the command is typed, and whatever a path holds; ``batch`` is the default of the function."""
    _, rows = good
    assert rows["named inference"].case.id == "bench.good.py/named:inference:float32:b3:eager@cpu"
    places = {
        "bench/good.py": folder,
        "good.py": folder / "bench",
        f"{folder.name}/bench/good.py": folder.parent,
    }
    for path, place in places.items():
        done = typed(place, "plan", f"{path}::named", "--device", "cpu", "--config", "eager", "--json")
        (group,) = json.loads(done.stdout)["groups"]
        assert group["cases"][0]["case"]["workload"]["suite"] == "bench.good.py"
        assert group["recipe"]["file"] == str(folder / "bench" / "good.py")
    words = ("bench/good.py::named", "bad.py", "--device", "cpu", "--config", "eager", "--json")
    groups = json.loads(typed(folder, "plan", *words).stdout)["groups"]
    suites = [group["cases"][0]["case"]["workload"]["suite"] for group in groups]
    assert suites.count("bench.good.py") == 1
    assert suites.count("bad.py") == BAD.count("\ndef ")
    done = typed(folder, "plan", "odd name.py", "--device", "cpu", "--config", "eager")
    assert done.stdout.startswith("odd_name.py/größe:inference:float32:b1:eager@cpu")


@pytest.mark.parametrize(
    ("function", "status", "reason"),
    [
        ("exits", Status.ERROR, "bad.py: exits() called sys.exit(3)"),
        ("nothing", Status.ERROR, "bad.py: nothing() returned nothing, not a module with its inputs. Try: "),
        ("of_a_class", Status.ERROR, "bad.py: of_a_class() returned (type, tuple), not a module with its "),
        (
            "arrays",
            Status.ERROR,
            "bad.py: arrays() returned arrays of numpy as inputs. Try: torch.from_numpy(",
        ),
        ("without_inputs", Status.ERROR, "bad.py: without_inputs() returned a module without inputs. Try: "),
        ("lacking", Status.SKIPPED, "bad.py imports nosuchpackage, which is neither beside it nor installed"),
        ("on_a_gpu", Status.ERROR, "bad.py: on_a_gpu() needs a device that is not here ("),
        ("crossed", Status.ERROR, "mat1 and mat2 shapes cannot be multiplied (3x5 and 2x2)"),
        ("elsewhere", Status.ERROR, "bad.py: elsewhere() returned tensors on device meta, without values."),
        (
            "by_default",
            Status.ERROR,
            "bad.py: by_default() returned tensors on device meta, without values (bad.py sets the",
        ),
        ("raising", Status.ERROR, "ValueError: of its own (bad.py, line 60)"),
        ("asserting", Status.ERROR, "AssertionError: `assert torch.ones(2).sum() == 3` (bad.py, line 64)"),
        ("commanding", Status.ERROR, "returned non-zero exit status 1. no disk (bad.py, line "),
        (
            "introducing",
            Status.ERROR,
            "RuntimeError: backend='mine' raised: KeyError: 'weight' (bad.py, line ",
        ),
        ("of_two", Status.PASS, ""),
        ("exported", Status.PASS, ""),
        ("partial", Status.PASS, ""),
        ("lightning", Status.PASS, ""),
        ("growing", Status.PASS, ""),
        ("uncopyable", Status.PASS, ""),
    ],
)
def test_what_a_function_does_wrong_ends_itself_alone(
    bad: Any, function: str, status: Status, reason: str
) -> None:
    """The row says which function, what is wrong and what to try; the functions beside it are measured."""
    row = bad[1][f"{function} inference"]
    assert row.status is status
    assert reason in row.reason


def test_a_module_below_a_partial_is_measured_without_compiled_parts(bad: Any) -> None:
    """Else eager would run the compiled code of the file, and the module would stay on the host."""
    realised = bad[1]["partial inference"].realised
    assert realised.parameters == 6
    assert "the file's torch.compile is ignored: the configuration selects the compiler" in realised.notes


def test_what_a_file_has_compiled_is_compiled_anew(folder: Path) -> None:
    """The configuration's own compiler gets the whole network, as it would without the file's."""
    done = run(folder, "bad.py::partial", "--config", "inductor", "--no-warm-compile", "--store", "compiled")
    row = rows_of(folder / "compiled")["partial inference"]
    assert (row.status, row.case.configuration.name) == (Status.PASS, "inductor"), done.stderr
    counts = {each.metric: each.median for each in row.summaries}
    assert (counts["graph_count"], counts["graph_breaks"]) == (1, 0)


def test_eager_that_does_not_run_as_named_is_no_pass(tmp_path: Path) -> None:
    """Compiled functions in attributes are replaced; others are named, as are settings that a step changes.

    What the builder changes is put back.
    """
    (tmp_path / "itself.py").write_text(COMPILES_ITSELF)
    done = run(tmp_path, "itself.py", "--config", "eager", "--threads", "1", "--store", "results")
    rows = {name.split()[0]: row for name, row in rows_of(tmp_path / "results").items()}
    assert {row.status for row in rows.values()} == {Status.PASS}, done.stderr
    problem = "eager is not eager: it called code that the model compiles itself"
    marks = {name: dict(row.facts).get("unchecked") or row.degraded for name, row in rows.items()}
    assert {name: mark for name, mark in marks.items() if mark} == {
        "method": problem,
        "threads": "changed: the number of threads = 2 instead of 1",
        "onednn": "changed: oneDNN = False instead of True",
    }
    notes = {name: row.realised.notes for name, row in rows.items() if row.realised.notes}
    assert notes.keys() == {"attribute", "autocast"}
    assert "no input has a dimension of the batch size 16" in notes["autocast"]
    assert any("autocast" in note for note in notes["autocast"])


@pytest.mark.parametrize(
    ("word", "message", "hint"),
    [
        ("absent.py", "absent.py: there is no such file", "ls ."),
        ("abd.py", "abd.py: there is no such file", "torchgauge run bad.py"),
        ("bench/", "bench/ is a folder", "torchgauge run bench/good.py"),
        ("notes.ipynb", "notes.ipynb is not a Python file", "use a file whose name ends in .py"),
        ("empty.py", "empty.py: no model: it defines no function at its top level", "def model(): return "),
        ("bad.py:exits", "bad.py:exits: `::` must separate file and function", "bad.py::exits"),
        (
            "helpers.py",
            "helpers.py: no model: first: it requires x, y; a model may require only batch",
            "def model",
        ),
        ("broken.py", "broken.py, line 2: ", "python "),
        ("bad.py::exit", "bad.py::exit: exit is not a model: bad.py does not define it", "bad.py::exits"),
        (
            "nowhere.models:encoder",
            "nowhere.models:encoder: module nowhere.models was not found",
            "use the path of ",
        ),
    ],
)
def test_a_word_that_names_no_model_is_refused(
    folder: Path, typed: Any, word: str, message: str, hint: str
) -> None:
    """Before anything runs, with exit 2: what is wrong, where, and what to try."""
    error = typed(folder, "run", word, "--device", "cpu").exception
    assert isinstance(error, UsageError)
    assert message in error.message
    assert error.hint.startswith(hint) or f"/{hint}" in error.hint
    assert not (folder / "torchgauge-results").exists()


def test_what_a_file_does_wrong_as_a_whole_is_told_with_its_name(tmp_path: Path) -> None:
    """A file that reads arguments; a loss that is not a scalar, parameters that need no gradient."""
    (tmp_path / "command.py").write_text(OF_A_COMMAND)
    (tmp_path / "untrainable.py").write_text(UNTRAINABLE)
    words = ("command.py", "untrainable.py", "--mode", "training", "--config", "eager", "--store", "whole")
    done = run(tmp_path, *words)
    rows = results(
        Store.open(tmp_path / "whole").run(next((tmp_path / "whole" / "runs").iterdir()).name).journal_path
    )
    told = {f"{row.case.workload.suite} {row.case.workload.model}": row.reason for row in rows}
    said = "command.py, while it was imported, called sys.exit(2). Try: write if __name__ == "
    assert said in told["command.py model"], done.stderr
    said = "untrainable.py: loss() returned a tensor of shape (2, 2), not a scalar. Try: loss.mean()"
    assert said in told["untrainable.py model"]
    said = "untrainable.py: frozen() returned a module whose parameters all have requires_grad=False"
    assert said in told["untrainable.py frozen"]


def compiled(folder: Path, source: str, mode: str, store: str = "rows") -> Result:
    """Return the row of the only model in ``source`` with aot_eager."""
    (folder / "mine.py").write_text(source)
    (folder / "aot.yaml").write_text("configurations: [{name: aot, doc: aot_eager, backend: aot_eager}]")
    words = ("--mode", mode, "--config", "aot", "--config-file", "aot.yaml", "--store", store)
    done = run(folder, "mine.py", *words)
    rows = rows_of(folder / store)
    assert len(rows) == 1, done.stderr
    return next(iter(rows.values()))


def test_an_output_that_the_loss_leaves_out_is_no_fault(tmp_path: Path) -> None:
    """Compiled code gives its parameters gradients of zeros, and eager gives them none."""
    row = compiled(tmp_path, TWO_OUTPUTS, "training")
    assert row.status is Status.PASS, row.reason


def test_a_wrong_gradient_beside_much_larger_ones_is_found(tmp_path: Path) -> None:
    """Compiled code negates gradients of 1e-4: the rounding of a sum is that of its own terms."""
    row = compiled(tmp_path, SPREAD, "training")
    assert row.status is Status.FAIL_ACCURACY, row
    fault = "its error against float64 is 2 times float64's RMS, and eager's "
    assert row.reason.startswith(f"iteration0.grad.linear.bias: {fault}")


def test_the_optimizer_of_a_step_of_ones_own_is_compiled(tmp_path: Path) -> None:
    """Restoring its state does not compile it anew each time, which would reach dynamo's limit."""
    row = compiled(tmp_path, OWN_STEP, "inference")
    recompiles = {each.metric: each.samples for each in row.measurements}["recompiles"]
    assert (row.status, row.reason, row.degraded) == (Status.PASS, "", "")
    assert recompiles == (0.0,), dict(row.facts)


def test_a_step_of_ones_own_that_moves_weights_too_far_is_found(tmp_path: Path) -> None:
    """Weights move by a millionth of their size, and by 5 % more than in eager."""
    right = OWN_STEP.replace("AdamW(self.net.parameters(), 1e-3)", "SGD(self.net.parameters(), 1e-5)")
    loss = "self.net(x).square().mean()"
    wrong = right.replace(loss, f"{loss} * (1.05 if torch.compiler.is_compiling() else 1.0)")
    wrong = wrong.replace("return loss.detach()", "return loss.detach() * 0.0")  # the output shows no fault
    assert compiled(tmp_path, right, "inference").status is Status.PASS
    rounded_away = compiled(tmp_path, right.replace("1e-5", "1e-8"), "inference", "tiny")
    assert rounded_away.status is Status.PASS, rounded_away
    row = compiled(tmp_path, wrong, "inference", "wrong")
    assert row.status is Status.FAIL_ACCURACY, row
    assert row.reason.startswith("after.change.net.weight: its RMS distance from eager is ")


def test_two_files_of_one_name_are_refused(tmp_path: Path, typed: Any) -> None:
    """Outside a repository a file has no other name than its own."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text("def model(): return 1")
    done = typed(tmp_path, "plan", "one/mine.py", "two/mine.py", "--device", "cpu")
    assert isinstance(done.exception, UsageError)
    assert "two suites are called mine.py: The functions of " in done.exception.message
