"""Groups are prepared side by side, and while one of them is timed nothing of the others runs."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_until

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.harness.pool.timing_lock import Member, TimingLock
from torchgauge.harness.worker.rounds import VISITS

FOLDER = "TORCHGAUGE_TEST_BEATS"
TIMED_STEPS = 24
"""The last steps of a model: warm-up and a dozen rounds under the lock, which it leaves between visits,
and one that is looked at afterwards."""
COUNTER = """
import os, sys, time
if sys.argv[2] == "parent":
    os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", sys.argv[3], sys.argv[1], "child", ""])
while True:
    with open(sys.argv[1], "a") as file:
        file.write(".")
    time.sleep(0.005)
"""

Worker = Callable[[str], tuple[Member, Path]]


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    """Starts a process whose child writes a file that grows while it runs."""
    started = []

    def start(name: str) -> tuple[Member, Path]:
        file = tmp_path / name
        process = subprocess.Popen([sys.executable, "-c", COUNTER, str(file), "parent", COUNTER])
        started.append((process, Member(process.pid, SYSTEM_CLOCK, whole=True)))
        wait_until(lambda: size(file) > 0, f"the first byte of {name}")
        return started[-1][1], file

    yield start
    for process, member in started:
        member.stop()
        for pid in member._stopped | {process.pid}:
            signal_quietly(pid)
        process.wait()


def signal_quietly(pid: int) -> None:
    """Kill ``pid`` if it is there."""
    import os

    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def size(file: Path) -> int:
    """Bytes in ``file``, 0 where there is none."""
    return file.stat().st_size if file.exists() else 0


def grows(file: Path) -> bool:
    """Return True once ``file`` has grown."""
    before = size(file)
    return wait_until(lambda: size(file) > before, f"{file.name} to grow")


def stands(file: Path) -> bool:
    """Return True once ``file`` stands; a write that was under way may still end, on a busy machine late.

    Whoever runs writes every few milliseconds, and never leaves it as it is for so long.
    """

    def unchanged() -> bool:
        before = size(file)
        time.sleep(0.4)
        return size(file) == before

    return wait_until(unchanged, f"{file.name} to stand")


def test_all_but_the_holder_stand_still(worker: Worker) -> None:
    """With their children; when the lock is given back, they go on."""
    (first, one), (second, two) = worker("one"), worker("two")
    lock, granted = TimingLock(), []
    first.grant = lambda: granted.append("first")
    lock.join(first)
    lock.join(second)
    lock.want(first)
    assert granted == ["first"]
    assert stands(two)
    assert grows(one)
    assert second.idle
    assert not first.idle
    lock.give_back(first)
    assert grows(two)
    assert not second.idle


def test_the_lock_goes_to_who_asked_first_and_leaves_with_who_leaves(worker: Worker) -> None:
    """One that ends without giving it back, because it crashed, blocks nobody."""
    members = [worker(name) for name in ("a", "b", "c")]
    lock, granted = TimingLock(), []
    for (member, _), name in zip(members, "abc", strict=True):
        member.grant = lambda name=name: granted.append(name)
        lock.join(member)
    for member, _ in members:
        lock.want(member)
        lock.want(member)  # it has it, or waits, already
    assert granted == ["a"]
    lock.leave(members[0][0])
    assert granted == ["a", "b"]
    assert stands(members[2][1])
    lock.give_back(members[2][0])  # it has not got it
    assert granted == ["a", "b"]
    lock.give_back(members[1][0])
    assert granted == ["a", "b", "c"]


def test_workers_of_several_devices_time_at_once_where_that_is_allowed(worker: Worker) -> None:
    """Two of them, one of each device; who prepares stands still until both have given it back."""
    members = [worker(name) for name in ("a", "b", "c", "d")]
    lock, granted = TimingLock(2), []
    for (member, _), name, device in zip(members, "abcd", ("x", "x", "y", "z"), strict=True):
        member.device, member.grant = device, lambda name=name: granted.append(name)
        lock.join(member)
    (a, _), (b, _), (c, three), (_, four) = members
    for member in (a, b, c):
        lock.want(member)
    assert granted == ["a", "c"]  # b is of the device of a
    assert grows(three)
    assert stands(four)
    assert b.idle
    lock.give_back(c)
    assert granted == ["a", "c"]
    assert stands(four)
    lock.give_back(a)
    assert granted == ["a", "c", "b"]
    lock.leave(b)
    assert grows(four)
    assert grows(three)


def beats(folder: Path) -> dict[str, dict[str, list[float]]]:
    """By process of a model and kind: when it had a core, in monotonic seconds."""
    found: dict[str, dict[str, list[float]]] = {}
    for path in folder.iterdir():
        kinds: dict[str, list[float]] = defaultdict(list)
        for line in path.read_text().split("\n")[:-1]:  # the last may be half written
            kind, when = line.split()
            kinds[kind].append(float(when))
        found[path.name] = kinds
    return found


@pytest.mark.parametrize(
    "words",
    [
        ("--device", "fake", "--prefetch", "3"),
        ("--device", "fake,fake.1", "--models", "busy_1,busy_2", "--prefetch", "2"),
    ],
    ids=["of one device", "of two devices"],
)
def test_builds_overlap_and_nothing_runs_beside_what_is_timed(
    words: tuple[str, ...], sandbox: Any, tmp_path: Path
) -> None:
    """Models write down when they had a core: several build at once, and each is timed alone."""
    folder = tmp_path / "beats"
    folder.mkdir()
    done = sandbox.measure("busy", "--config", "eager", *words, **{FOLDER: str(folder)})
    assert done.returncode == 0, done.stderr
    assert [row.status.value for row in sandbox.rows()] == ["pass"] * 4
    found = beats(folder)
    spans = [(min(kinds["build"]), max(kinds["build"])) for kinds in found.values()]
    assert any(a[0] < b[1] and b[0] < a[1] for a, b in combinations(spans, 2))
    for name, kinds in found.items():
        others = [when for other in found.keys() - {name} for each in found[other].values() for when in each]
        gaps = pairwise(kinds["step"][-TIMED_STEPS:])
        shared = [gap for gap in gaps if any(gap[0] < when < gap[1] for when in others)]
        assert len(shared) <= VISITS, f"others ran while {name} was timed, not in its pauses alone"


def test_who_was_killed_beside_others_is_run_again_alone(sandbox: Any, ending: Any, tmp_path: Path) -> None:
    """Its neighbours may have taken its memory: only what happens without them counts."""
    folder = tmp_path / "beats"
    folder.mkdir()
    words = ("busy", "--models", "busy_1,busy_2,greedy", "--device", "fake", "--config", "eager")
    done = sandbox.measure(*words, "--prefetch", "3", **{FOLDER: str(folder)})
    said = "busy/greedy (inference) is retried at the end, alone: killed from outside"
    assert [row.status.value for row in sandbox.assert_ended(done, ending(0, said))] == ["pass"] * 3


def test_an_interrupt_while_others_stand_still_leaves_nothing(sandbox: Any, tmp_path: Path) -> None:
    """Stopped processes are killed too; the sandbox looks for survivors."""
    folder = tmp_path / "beats"
    folder.mkdir()
    sandbox.environment[FOLDER] = str(folder)
    words = ("busy", "--device", "fake", "--config", "eager", "--prefetch", "4", "--measure-seconds", "20")
    process = sandbox.start("run", *words, "--precision", "0.0001", "--store", str(sandbox.store_path))
    wait_until(
        lambda: any(len(kinds["step"]) > 30 for kinds in beats(folder).values()), "31 steps of one model"
    )
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert sandbox.survivors() == []
    assert sandbox.scratch() == []
