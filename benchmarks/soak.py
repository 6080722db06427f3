"""A long night in minutes: a simulated fleet measures thousands of cases while its processes are killed.

``--agents`` processes measure ``--cases`` simulated cases (:mod:`simulated_fleet`) under the real driver loop
of parts. ``--kills`` times an agent at work or the driver gets SIGKILL at a random moment, one in ten of them
the driver. Who was killed is started again, the driver as one resumes a run. Prints one JSON object: what was
lost, doubled or left, what driving costs, and how long devices were idle while a case had not begun. Ends
with 1 where anything was lost, doubled or alive. ``--seed`` chooses cases and, as far as the scheduler lets
it, kills.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from folder_engine import FolderOptions, Place, serve
from random_kills import MARK, Found, install_points, journal_rows, table_rows
from simulated_fleet import RUN, Dice, measure, plan_of

from torchgauge.errors import UsageError
from torchgauge.harness.run.progress import Progress
from torchgauge.harness.run.runner import Campaign
from torchgauge.processes.process_tree import die_with_parent
from torchgauge.records import Status
from torchgauge.results.journal import is_being_written, results
from torchgauge.results.store import Store

HERE = Path(__file__).resolve().parent
POINTS = "[torchgauge.executors]\nfleet = folder_engine:FLEET\nsimulated = simulated_fleet:SIMULATED\n"
OVERHEAD_S, IDLE = 0.010, 0.05
"""Goals: seconds of the driver per case, and the share of their time that devices are idle at most."""
DRIVER_EACH = 10
"""One of so many kills hits the driver."""


@dataclass
class Fleet:
    """The agents, the driver and what became of them; ``down`` are moments at which an agent was killed."""

    work: Path
    dice: Dice
    agents: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    driver: subprocess.Popen[bytes] | None = None
    kills: Counter[str] = field(default_factory=Counter)
    down: dict[str, list[float]] = field(default_factory=dict)
    driving_s: float = 0.0
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def place(self) -> Place:
        """The engine."""
        return Place(self.work / "place")

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        """Start this script in one of its parts."""
        path = os.pathsep.join([str(HERE), str(HERE.parent / "src"), str(self.work)])
        own = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", MARK: self.mark}
        settings = ("--work", str(self.work), "--mean", str(self.dice.mean_s), "--seed", str(self.dice.seed))
        with (self.work / f"{words[1]}.log").open("ab") as log:
            command = [sys.executable, str(Path(__file__).resolve()), *settings, *words]
            return subprocess.Popen(command, env=os.environ | own, stdout=log, stderr=log)

    def driver_ended(self) -> int | None:
        """The exit code of the driver, None while it runs; its CPU time is added up."""
        assert self.driver is not None
        before = children_cpu_s()
        code = self.driver.poll()
        if code is not None:
            self.driving_s += children_cpu_s() - before
        return code

    def begin_agent(self, name: str) -> None:
        """Start the agent called ``name``."""
        self.agents[name] = self.begin("--agent", name)

    def kill_one(self, dice: random.Random) -> bool:
        """Kill the driver, or an agent that has a job, while both are at work; whether they were."""
        busy = sorted(set(self.place.taken().values()))
        journals = list(self.work.glob("store/runs/*/journal.jsonl"))
        if not busy or not any(is_being_written(each) for each in journals):
            return False
        if sum(self.kills.values()) % DRIVER_EACH == 1 and self.driver is not None:
            self.driver.kill()
            self.kills["driver"] += 1
        else:
            name = dice.choice(busy)
            self.agents[name].kill()
            self.agents[name].wait()
            self.kills["agent"] += 1
            self.down.setdefault(name, []).append(time.monotonic())
            self.place.leave(name, f"{name} was killed")
            self.begin_agent(name)
        return True

    def end(self) -> None:
        """End everything."""
        for process in [*self.agents.values(), *filter(None, [self.driver])]:
            process.kill()
            process.wait()


def children_cpu_s() -> float:
    """CPU seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def drive(work: Path, cases: int, jobs: int) -> int:
    """The driver: begin the run, or go on with it, and publish it."""
    plan, store = plan_of(cases), Store.open(work / "store", create=True)
    there = RUN in store.run_ids()
    options = FolderOptions(place=str(work / "place"), groups_per_job=jobs)
    parts = (plan, store, {}, {}, Progress(sys.stderr), sys.executable)
    try:
        return (
            Campaign(*parts, executor="fleet", options=options)
            .run(store.run(RUN) if there else None)
            .exit_code
        )
    except UsageError as error:  # it was killed when all was measured
        if "is complete" not in error.message:
            raise
        store.finish(RUN, plan)
        return 0


def watched(fleet: Fleet, given: argparse.Namespace, found: Found) -> int:
    """Let the fleet run to its end, killing as it goes; the exit code of the last driver."""
    dice = random.Random(given.seed)
    each_s = 0.9 * given.cases * given.mean / given.agents / max(1, given.kills)
    began, rows, due = time.monotonic(), list[str](), math.inf
    words = ("--drive", "driver", "--cases", str(given.cases), "--groups-per-job", str(given.groups_per_job))
    fleet.driver = fleet.begin(*words)
    while time.monotonic() - began < given.seconds:
        time.sleep(0.02)
        if due == math.inf and given.kills and fleet.place.taken():
            due = time.monotonic() + dice.uniform(0, 2 * each_s)
        if time.monotonic() > due and fleet.kill_one(dice):
            left = given.kills - sum(fleet.kills.values())
            due = due + dice.uniform(0, 2 * each_s) if left else 1e18
        code = fleet.driver_ended()
        if code == -signal.SIGKILL:
            there = list(fleet.work.glob("store/runs/*/journal.jsonl"))
            now = journal_rows(there[0]) if there else []
            found.lost += [f"acknowledged: {each}" for each in set(rows) - set(now)]
            rows = now
            fleet.driver = fleet.begin(*words)
        elif code is not None:
            return code
    raise SystemExit(f"not complete after {given.seconds:g} s: see {fleet.work}")


@dataclass(frozen=True)
class Busy:
    """When devices measured, in seconds on the steady clock: from the first case until the last one began."""

    intervals: tuple[tuple[str, str, float, float], ...]
    finished: int

    @classmethod
    def read(cls, fleet: Fleet) -> Busy:
        """What agents noted; a case that was cut off by a kill ended with it, else where the next began."""
        found, finished = [], 0
        for path in sorted(fleet.place.folder("busy").iterdir()):
            lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("]")]
            ended = {(key, began): end for key, began, end in lines if end is not None}
            begun = [(key, began) for key, began, end in lines if end is None]
            cuts = sorted([*fleet.down.get(path.name, []), *(began for _, began in begun)])
            for key, began in begun:
                end = ended.get((key, began)) or next((cut for cut in cuts if cut > began), began)
                found.append((path.name, key, began, end))
            finished += len(ended)
        return cls(tuple(found), finished)

    def figures(self, agents: int) -> dict[str, float]:
        """Share of idle time, repeated cases and the gap between two cases of an agent."""
        first = min(began for _, _, began, _ in self.intervals)
        firsts: dict[str, float] = {}
        for _, key, began, _ in self.intervals:
            firsts[key] = min(began, firsts.get(key, began))
        last = max(began for _, _, began, _ in self.intervals)
        until = max(firsts.values())
        span = agents * (until - first)
        busy = sum(max(0.0, min(end, until) - began) for _, _, began, end in self.intervals)
        by_agent: dict[str, list[tuple[float, float]]] = {}
        for agent, _, began, end in self.intervals:
            by_agent.setdefault(agent, []).append((began, end))
        gaps = sorted(
            after[0] - before[1]
            for each in by_agent.values()
            for before, after in zip(sorted(each), sorted(each)[1:], strict=False)
        )
        return {
            "idle_share": round(1 - busy / span, 4),
            "gap_median_ms": round(1e3 * gaps[len(gaps) // 2], 2),
            "begun": len(self.intervals),
            "seconds_until_the_last_case_began": round(until - first, 1),
            "seconds_until_the_last_repetition_began": round(last - first, 1),
        }


def soak(given: argparse.Namespace, work: Path) -> dict[str, object]:
    """All figures of one night."""
    from torchgauge.results.fsck import check_store  # agents and driver need not wait for what it imports

    install_points(work, POINTS)
    fleet, found = Fleet(work, Dice(given.seed, given.mean)), Found()
    began, load = time.monotonic(), os.getloadavg()
    try:
        for number in range(given.agents):
            fleet.begin_agent(f"agent-{number}")
        code = watched(fleet, given, found)
        took = time.monotonic() - began
    finally:
        fleet.end()
    found.look_for_strays("soak", fleet.mark)
    store, planned = Store.open(work / "store"), [each.case.id for each in plan_of(given.cases).cases]
    found.check("journal", planned, journal_rows(store.run(RUN).journal_path))
    found.check("table", planned, table_rows(store, RUN))
    return {
        "cases": given.cases,
        "agents": given.agents,
        "kills": dict(fleet.kills),
        "lost": found.lost,
        "doubled": found.doubled,
        "strays": found.strays,
        "damage": [str(each) for each in check_store(store).findings],
        "exit_code": code,
        "infra": sum(each.status is Status.INFRA for each in results(store.run(RUN).journal_path)),
        "seconds": round(took, 1),
        "driver_cpu_ms_per_case": round(1e3 * fleet.driving_s / given.cases, 2),
        "load_before": round(load[0], 1),
        "load_after": round(os.getloadavg()[0], 1),
        **Busy.read(fleet).figures(given.agents),
    }


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--agents", type=int, default=16)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--mean", type=float, default=1.0, help="mean seconds of a case")
    parser.add_argument("--groups-per-job", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=600.0, help="longest time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, default=None, help="keep everything in this new folder")
    parser.add_argument("--agent", help=argparse.SUPPRESS)
    parser.add_argument("--drive", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.agent:
        place, dice = Place(given.work / "place"), Dice(given.seed, given.mean)
        serve(given.agent, place, lambda job: measure(job, place, dice))
    if given.drive:
        die_with_parent()
        return drive(given.work, given.cases, given.groups_per_job)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        figures = soak(given, given.work or Path(name) / "work")
    print(json.dumps(figures, indent=1))
    return int(any(figures[each] for each in ("lost", "doubled", "strays", "damage")))


if __name__ == "__main__":
    sys.exit(main())
