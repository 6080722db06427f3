"""Two live workers that take turns: what is kept, and what becomes of a side that fails."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchgauge.errors import UsageError
from torchgauge.harness.ab.comparison import resumed_comparison
from torchgauge.harness.ab.progress import AbProgress
from torchgauge.harness.ab.run_comparison import run_comparison
from torchgauge.harness.planning.selection import Selection
from torchgauge.records import Cause, Deadlines, Phase, Status
from torchgauge.records.comparison import Action, Block, Launch, Side, SideSpec, Verdict
from torchgauge.results.comparing.comparison_store import read_comparisons
from torchgauge.results.comparing.policy import built_in
from torchgauge.results.comparing.status_verdict import judge_status
from torchgauge.results.journal import RunState, read
from torchgauge.results.journal_record import Kind

STEADY = Selection(("racers",), ("fake",), ("steady",), configurations=("eager",))

INTERRUPTED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from conftest import arena_in
heard = []
def interrupt(launch):
    heard.append(launch)
    if len(heard) == 3:
        os.kill(os.getpid(), signal.SIGINT)
for arena in arena_in(Path(sys.argv[2])):
    _, ending = arena.run(arena.request(), on_add=interrupt, launches=3)
    print(ending.interrupted, ending.exit_code, list(arena.folder().launches()) == heard)
"""
"""A process that sends itself Ctrl-C when its third launch has ended."""


def abba_blocks(launch: Launch) -> list[str]:
    """Each ABBA block as ``bhhb`` or ``hbbh``, in the order in which its blocks ran."""
    found: dict[int, str] = {}
    for block in launch.blocks:
        found[block.abba_block] = found.get(block.abba_block, "") + block.side.value[0]
    return list(found.values())


def faulty(fault: str) -> SideSpec:
    return SideSpec("head", "", (("RACERS_FAULT", fault),))


def by_model(launches: Sequence[Launch]) -> dict[str, Launch]:
    return {launch.pair_id.partition(":")[0].partition("/")[2]: launch for launch in launches}


@pytest.fixture(scope="module")
def measured(shared_arena: Any) -> tuple[Any, Any]:
    """Three launches of one pair against itself; its seed is the same each time, and so is what it draws."""
    script, ending = shared_arena.run(shared_arena.request(selection=STEADY), launches=3, abba_blocks=4)
    assert (ending.interrupted, ending.exit_code) == (False, 3)  # the script judges nothing
    return shared_arena, script


def test_each_launch_is_measured_in_abba_blocks_and_kept(measured: tuple[Any, Any]) -> None:
    """Blocks of equal numbers of steps, both sides in turn; journal and tables hold what the judge heard."""
    arena, script = measured
    assert [launch.number for launch in script.heard] == [1, 2, 3]
    assert {abba_block for launch in script.heard for abba_block in abba_blocks(launch)} == {"bhhb", "hbbh"}
    for launch in script.heard:
        assert (launch.base.status, launch.head.status) == (Status.PASS, Status.PASS)
        assert launch.base.realised == launch.head.realised
        assert len(abba_blocks(launch)) == 4
        steps = {len(block.wall) for block in launch.blocks}
        assert len(steps) == 1
        assert dict(launch.conditions)["steps_per_block"] in steps
        assert all(value > 0 for block in launch.blocks for value in (*block.wall, *block.device))
        assert all(len(block.cpu) == len(block.device) == len(block.wall) for block in launch.blocks)
        assert launch.control
        assert launch.setup_s > 0
        assert launch.measure_s > 0
    folder = arena.folder()
    assert list(folder.launches()) == script.heard
    assert folder.state() is RunState.COMPLETE
    steps = sum(len(block.wall) for launch in script.heard for block in launch.blocks)
    assert read_comparisons(_store(arena), "steps").num_rows == steps
    assert read_comparisons(_store(arena), "launches").num_rows == 3


def test_launches_differ_in_what_is_left_to_chance(measured: tuple[Any, Any]) -> None:
    """Hash seeds and padding of the environment; on Linux one CPU for one thread."""
    _, script = measured
    seen = [dict(launch.conditions) for launch in script.heard]
    for name in ("base_hash_seed", "head_hash_seed", "base_padding", "head_padding"):
        assert len({conditions[name] for conditions in seen}) > 1, name
    if hasattr(os, "sched_setaffinity"):
        assert all(len(launch.cpus) == 1 for launch in script.heard)
        assert all(dict(launch.head.facts)["cpus"] == str(launch.cpus[0]) for launch in script.heard)


def test_the_same_seed_draws_the_same(measured: tuple[Any, Any], arena: Any) -> None:
    """Another comparison with that seed has the orders, CPUs and hash seeds of the first."""
    _, script = measured
    again, _ = arena.run(arena.request(selection=STEADY), launches=1, abba_blocks=4)
    first, same = script.heard[0], again.heard[0]
    assert (abba_blocks(same), same.cpus) == (abba_blocks(first), first.cpus)
    for name in ("base_hash_seed", "head_hash_seed", "base_padding", "head_padding"):
        assert dict(same.conditions)[name] == dict(first.conditions)[name]


def test_every_launch_is_checked_and_measures_its_memory(measured: tuple[Any, Any]) -> None:
    """On both sides."""
    _, script = measured
    ended = [side for launch in script.heard for side in (launch.base, launch.head)]
    assert [side.accuracy.detail for side in ended if side.accuracy] == ["equal"] * 6
    assert ["peak_memory" in {m.metric for m in side.measurements} for side in ended] == [True] * 6


def test_a_head_that_is_wrong_in_one_launch_is_found(arena: Any, tmp_path: Path) -> None:
    """In the second one alone, after a first one that was right; nothing of it is timed."""
    head = SideSpec("head", "", (("RACERS_BUILDS", str(tmp_path / "builds")), ("RACERS_FAULT", "wrong")))
    selection = replace(STEADY, models=("faulty",))
    script, _ = arena.run(arena.request(head=head, selection=selection), launches=3)
    assert [launch.head.status for launch in script.heard] == [Status.PASS, Status.FAIL_ACCURACY, Status.PASS]
    assert [bool(launch.blocks) for launch in script.heard] == [True, False, True]
    assert all(launch.base.status is Status.PASS for launch in script.heard)
    said = judge_status(script.pairs[0], script.heard, built_in)
    assert (said.verdict, said.action) == (Verdict.UNDECIDED, Action.GATE)
    assert said.reason.endswith("in one of 3 launches, and did not recur")


def test_the_environment_of_one_side_reaches_that_side_alone(arena: Any) -> None:
    """A head that does three times the work takes longer in every block."""
    head = SideSpec("head", "", (("RACERS_FACTOR", "3"),))
    script, _ = arena.run(arena.request(head=head, selection=STEADY, controls=1), abba_blocks=6)
    ratios = {}
    for launch in script.heard:
        sums = {side: [b for b in launch.blocks if b.side is side] for side in Side}
        ratios[launch.control] = median_step(sums[Side.HEAD]) / median_step(sums[Side.BASE])
    assert ratios[False] > 2
    assert 0.5 < ratios[True] < 2


def median_step(blocks: Sequence[Block]) -> float:
    values = sorted(value for block in blocks for value in block.cpu)
    return values[len(values) // 2]


@pytest.mark.parametrize(
    ("fault", "status", "cause", "phase"),
    [
        ("build", Status.ERROR, None, Phase.BUILD),
        ("segfault", Status.CRASH, Cause.SIGNAL, Phase.MEASURE),
        ("forge", Status.CRASH, Cause.EXIT, Phase.MEASURE),
        ("hang", Status.TIMEOUT, None, Phase.MEASURE),
    ],
)
def test_a_head_that_fails_ends_its_pair_and_no_other(
    arena: Any, fault: str, status: Status, cause: Cause | None, phase: Phase
) -> None:
    """Its status is that of any run; the base passes, what was measured stays, the next pair goes on."""
    limits = Deadlines(measure_s=5.0) if fault == "hang" else Deadlines()
    settings = replace(arena.request().settings, deadlines=limits)
    script, _ = arena.run(arena.request(head=faulty(fault), settings=settings), abba_blocks=30)
    found = by_model(script.heard)
    broken = found["faulty"]
    assert (broken.head.status, broken.head.cause, broken.head.phase) == (status, cause, phase)
    assert broken.base.status is Status.PASS
    assert len(broken.blocks) < 120
    if fault == "build":
        assert broken.blocks == ()
    else:
        assert {block.side for block in broken.blocks} >= {Side.BASE}
    assert (found["steady"].base.status, found["steady"].head.status) == (Status.PASS, Status.PASS)
    assert len(found["steady"].blocks) == 120


def test_an_interpreter_without_the_suite_is_a_status_of_its_side(arena: Any, tmp_path: Path) -> None:
    """An interpreter whose host dies at once becomes infra, and the run ends all the same."""
    script, _ = arena.run(arena.request(head=SideSpec("head", "", (("PYTHONHOME", "/nowhere"),))))
    for launch in script.heard:
        assert launch.base.status is Status.PASS
        assert (launch.head.status, launch.head.cause) == (Status.INFRA, Cause.LOST_WORKER)
    notes = [
        record.payload().text for record in read(arena.folder().journal_path) if record.kind is Kind.NOTE
    ]
    assert any("did not start" in note for note in notes)


def test_ctrl_c_keeps_complete_launches_and_the_run_goes_on(arena: Any, script_for: Any) -> None:
    """The launch in flight is dropped, and a resumed run begins with the launches of its journal."""
    command = [sys.executable, "-c", INTERRUPTED, str(Path(__file__).parent), str(arena.store.parent)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.stdout == "True 130 True\n", done.stderr
    folder = arena.folder()
    assert folder.state() is RunState.INTERRUPTED
    kept = list(folder.launches())
    assert len(kept) == 3
    made, found = resumed_comparison(str(folder.path), AbProgress(io.StringIO()))
    judge = script_for(made.plan.pairs, launches=3)
    again = run_comparison(made, lambda environments: judge, found)
    assert (again.interrupted, again.exit_code) == (False, 3)  # the script judges nothing
    assert judge.heard[:3] == kept
    assert len(judge.heard) == 6
    assert {launch.number for launch in judge.heard[3:]} == {3, 4}
    with pytest.raises(UsageError, match="nothing to resume"):
        run_comparison(made, lambda environments: judge, found)


def test_two_interpreters_are_measured_against_each_other(arena: Any, tmp_path: Path) -> None:
    """The head's has no torchgauge, and something in it that makes a step three times as slow."""
    folder = tmp_path / "head"
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "sitecustomize.py").write_text("import os\nos.environ['RACERS_FACTOR'] = '3'\n")
    head = SideSpec("head", str(folder))
    script, _ = arena.run(arena.request(head=head, selection=STEADY), launches=2, abba_blocks=6)
    for launch in script.heard:
        assert (launch.base.status, launch.head.status) == (Status.PASS, Status.PASS), launch.head.reason
        sums = {side: [b for b in launch.blocks if b.side is side] for side in Side}
        assert median_step(sums[Side.HEAD]) > 2 * median_step(sums[Side.BASE])
    plan = arena.folder().plan()
    assert (plan.base.python, plan.head.python) == (sys.executable, str(folder / "bin" / "python"))


@pytest.mark.torch
def test_compiled_torch_cases_have_cold_and_warm_compilations(arena: Any) -> None:
    """Eager against a dynamo backend: the first launch fills the cache, the second one finds it."""
    base, head = SideSpec("eager", "", (), "eager"), SideSpec("graph", "", (), "aot_eager")
    selection = Selection(("toy",), ("cpu",), ("mlp",))
    script, _ = arena.run(arena.request(base=base, head=head, selection=selection), launches=2)
    metrics = [{m.metric: m.samples for m in launch.head.measurements} for launch in script.heard]
    assert [launch.head.status for launch in script.heard] == [Status.PASS] * 2, script.heard[0].head.reason
    assert "compile_cold" in metrics[0]
    assert "compile_warm" not in metrics[0]
    assert "compile_warm" in metrics[1]
    assert "compile_cold" not in metrics[1]
    assert all(found["graph_count"] == (1.0,) for found in metrics)
    accuracy = [side.accuracy for launch in script.heard for side in (launch.base, launch.head)]
    assert [found is not None for found in accuracy] == [True] * 4
    assert all(block.device == () for launch in script.heard for block in launch.blocks)
    assert script.heard[0].base.realised == script.heard[0].head.realised


def _store(arena: Any) -> Any:
    from torchgauge.results.store import Store

    return Store.open(arena.store)
