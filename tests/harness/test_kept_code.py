"""Nights of one torch build with the real compiler: kept code, sampled cold compiles, and damage."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from torchgauge.harness.compile_cache import FACT
from torchgauge.records import Measurement, Result, Status
from torchgauge.results import journal

pytestmark = [pytest.mark.torch, pytest.mark.full]


def metric(row: Result, name: str) -> Measurement:
    """One measurement of ``row``."""
    return next(each for each in row.measurements if each.metric == name)


def origin(row: Result) -> str:
    """Where the compiled code of ``row`` came from."""
    return str(dict(row.facts)[FACT])


def cut(files: list[Path], left: int) -> None:
    """All but ``left`` bytes of each file are lost."""
    assert files
    for file in files:
        os.truncate(file, left)


@dataclass
class Nights:
    """Runs of one small model in one sandbox, all with one folder of kept code."""

    sandbox: Any
    kept: Path
    rows: dict[str, Result] = field(default_factory=dict)
    libraries: dict[str, dict[str, int]] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)

    def run(self, name: str, cold: str, *more: str, warm: bool = False) -> None:
        """One run that must end well; keeps its compiled row, and when each library was made."""
        before = set(self.sandbox.store.run_ids()) if self.sandbox.store_path.exists() else set()
        words = ("toy", "--models", "mlp", "--device", "cpu", "--prefetch", "1", "--cold-compile", cold)
        quick = [word for word in self.sandbox.quick if not (warm and word == "--no-warm-compile")]
        where = ("--compile-cache", str(self.kept), "--store", str(self.sandbox.store_path))
        done = self.sandbox.run("run", *words, *where, *quick, *more)
        assert done.returncode == 0, done.stderr
        self.said[name] = done.stderr
        (new,) = set(self.sandbox.store.run_ids()) - before
        rows = journal.results(self.sandbox.store.run(new).journal_path)
        (self.rows[name],) = (row for row in rows if row.case.configuration.compiled)
        self.libraries[name] = {file.name: file.stat().st_mtime_ns for file in self.files(".main.so")}

    def files(self, ending: str) -> list[Path]:
        """What is kept under that ending."""
        return sorted(self.kept.rglob(f"*{ending}"))


@pytest.fixture(scope="module")
def nights(make_sandbox) -> Nights:
    """A cold night, one that finds its code, two with damage and the ones after them, and one apart."""
    sandbox = make_sandbox()
    made = Nights(sandbox, sandbox.store_path.with_name("kept"))
    made.run("cold", "all", warm=True)
    made.run("kept", "none", warm=True)
    cut(made.files(".main.so"), 100)  # no library: loading it raises
    made.run("libraries cut", "none")
    made.run("healed", "none")
    cut(made.files(".main.so"), 9000)  # its beginning is right: what touches the rest dies of signal 7
    made.run("libraries torn", "none")
    cut([file for file in made.kept.rglob("*") if file.is_file() and "fxgraph" in file.parts], 50)
    cut(made.files(".py"), 40)
    made.run("graphs cut", "none")
    made.run("apart", "none", "--compile-cache", "none")
    made.run("first", "none", "--compile-cache", str(made.kept.with_name("another")))
    return made


def test_a_cold_sample_is_timed_and_fills_the_cache(nights) -> None:
    """It starts empty; what it compiled is what the next night finds, and compiles not again."""
    row = nights.rows["cold"]
    assert metric(row, "compile_cold").samples[0] > metric(row, "compile_warm").samples[0]
    assert origin(row) == "empty"
    assert nights.libraries["cold"]
    assert nights.libraries["kept"] == nights.libraries["cold"]


def test_kept_code_has_no_cold_time(nights) -> None:
    """It is absent with its reason, and the warm start hits the same cache."""
    row = nights.rows["kept"]
    assert origin(row) == "kept"
    assert "not sampled today" in metric(row, "compile_cold").absent
    assert metric(row, "compile_warm").samples
    assert metric(row, "cache_hits").samples[0] >= 1


def test_rows_have_what_a_fresh_program_spends_before_its_first_call(nights) -> None:
    """Compile times, cold and warm, are those of a process whose host has done both already."""
    for night in ("cold", "kept"):
        facts = dict(nights.rows[night].facts)
        assert facts["compiler_import"] > 0
        assert facts["vector_isa_probe"] >= 0


def test_damaged_libraries_fail_no_case(nights) -> None:
    """The case is compiled with an empty cache and says so; its libraries replace the damaged ones."""
    assert origin(nights.rows["libraries cut"]).startswith("empty, after the kept cache failed: ")
    assert nights.libraries["libraries cut"].keys() == nights.libraries["kept"].keys()
    assert nights.libraries["libraries cut"] != nights.libraries["kept"]
    assert origin(nights.rows["healed"]) == "kept"


def test_a_library_that_kills_fails_no_case(nights) -> None:
    """The process that loads it dies; the case is run again in a new one with an empty cache."""
    row = nights.rows["libraries torn"]
    assert origin(row).startswith("empty, after the kept cache failed: signal ")
    assert (row.failure, row.cause) == (None, None)


def test_damaged_graphs_fail_no_case(nights) -> None:
    """Truncated graphs and sources end in a pass, by whichever way."""
    assert nights.rows["graphs cut"].status is Status.PASS


def test_every_night_passed(nights) -> None:
    """Whatever was done to the cache."""
    assert {row.status for row in nights.rows.values()} == {Status.PASS}


def test_without_a_kept_cache_nothing_is_kept(nights) -> None:
    """What is not timed is then compiled into a cache that is thrown away."""
    assert origin(nights.rows["apart"]) == "empty"
    assert nights.libraries["apart"] == nights.libraries["graphs cut"]


def test_what_the_compiler_did_not_find_is_new(nights) -> None:
    """A first night that samples nothing keeps its code, and its row does not call it found."""
    assert origin(nights.rows["first"]) == "kept, new to it"
    assert "compiled: 1 new to the kept cache" in nights.said["first"]
    assert "compiled: 1 from the kept cache" in nights.said["kept"]
    assert "compiled: 1 sampled cold" in nights.said["cold"]


ONCE_WRONG = """import torch

calls = []

@torch.library.custom_op("once_wrong::identity", mutates_args=())
def identity(x: torch.Tensor) -> torch.Tensor:
    calls.append(1)
    return 3.0 * x if len(calls) == 2 else x.clone()

identity.register_fake(torch.empty_like)

class Model(torch.nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        return torch.ops.once_wrong.identity(y) if torch.compiler.is_compiling() else y

def model():
    return Model(8, 8), (torch.randn(4, 8),)
"""


def test_a_fault_of_one_call_is_not_blamed_on_the_cache(make_sandbox) -> None:
    """Kept code is wrong in its second call alone, as code from an empty cache is."""
    box = make_sandbox()
    file = box.store_path.with_name("once_wrong.py")
    file.write_text(ONCE_WRONG)
    for _ in range(2):
        box.measure(
            *(str(file), "--device", "cpu", "--config", "inductor", "--cold-compile", "none"),
            *("--compile-cache", str(file.with_name("kept"))),
        )
    stored = (journal.results(box.store.run(run).journal_path) for run in box.store.run_ids())
    rows = [row for run in stored for row in run]
    assert [origin(row) for row in rows] == ["kept, new to it", "kept"]
    assert {row.status for row in rows} == {Status.FAIL_ACCURACY}, [row.reason for row in rows]
    assert all(row.reason.startswith("out: largest error ") for row in rows)
