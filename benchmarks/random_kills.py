"""What SIGKILL at a random moment costs: rows that are lost or doubled, and processes that live on after 2 s.

``--kills N`` counts those that were *effective*: the process was alive and at work when it was hit. Parent,
host and worker are hit in runs of models without torch, which are resumed until they are complete; driver
and agent (``torchgauge worker``) in runs whose parts two agents measure for the real loop of parts. Import,
publication and the push of the history run in children that say when they begin; each is hit at a moment
between that and the time that it takes undisturbed, and is then repeated. Prints one JSON object; ends with 1
where anything was lost, doubled or alive. ``--seed`` chooses the moments, as far as the scheduler lets it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests" / "workflows")]
MARK = "TORCHGAUGE_TEST_MARKER"
STRAYS_S = 2.0
SIX = ("run", "slow", "--device", "fake", "--config", "eager", "--measure-seconds", "0.1", "--threads", "1")
PLAIN = ("--no-calibration", "--no-memory-probe", "--no-warm-compile", "--quiet-wait", "0")
IN_RUNS = ("parent", "host", "worker")
IN_PARTS = ("driver", "agent")
POINTS = "[torchgauge.executors]\nfleet = folder_engine:FLEET\n"
"""The entry point of the executor that a run in parts names."""
CHILDREN = ("ingest", "publish", "history")
BRANCH = "results"


@dataclass
class Found:
    """What came of all kills, and how many attempts hit nothing."""

    kills: Counter[str] = field(default_factory=Counter)
    missed: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)

    def check(self, what: str, wanted: list[str], there: list[str]) -> None:
        """Note what is missing of ``wanted`` and what is ``there`` twice."""
        counts = Counter(there)
        self.lost += [f"{what}: {each}" for each in wanted if each not in counts]
        self.doubled += [f"{what}: {each}" for each, count in counts.items() if count > 1]

    def look_for_strays(self, what: str, mark: str) -> None:
        """Note what carries ``mark`` and is alive when the time is over."""
        deadline = time.monotonic() + STRAYS_S
        while (alive := marked(mark)) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.strays += [f"{what}: {command_of(pid)}" for pid in alive]


def marked(mark: str) -> list[int]:
    """Living processes with ``mark`` in their environment."""
    found = []
    for each in Path("/proc").iterdir():
        with suppress(OSError, IndexError):
            if each.name.isdigit() and f"{MARK}={mark}".encode() in (each / "environ").read_bytes():
                found.append(int(each.name))
    return found


def command_of(pid: int) -> str:
    """What ``pid`` runs."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:200]
    return str(pid)


def install_points(folder: Path, points: str) -> None:
    """Make ``folder``, which is on the path, one with an installed package of these entry points."""
    point = folder / "torchgauge_bench-1.0.dist-info"
    point.mkdir(parents=True)
    (point / "entry_points.txt").write_text(points)
    (point / "METADATA").write_text("Metadata-Version: 2.1\nName: torchgauge-bench\nVersion: 1.0\n")


def environment(folder: Path, mark: str) -> dict[str, str]:
    """That of every process of one scenario."""
    path = os.pathsep.join(
        [str(ROOT / "src"), str(ROOT / "tests" / "faults_plugin"), str(ROOT / "benchmarks"), str(folder)]
    )
    own = {
        "PYTHONPATH": path,
        "TMPDIR": str(folder),
        "OMP_NUM_THREADS": "1",
        "TORCHGAUGE_COMPILE_CACHE": "none",
    }
    return {**os.environ, **own, MARK: mark}


# --- parent, host, worker ------------------------------------------------------------------------


@contextmanager
def agents_of(folder: Path, mark: str) -> Iterator[tuple[str, ...]]:
    """Two agents that take parts from a folder in ``folder``; the words for a run that gives them some."""
    install_points(folder, POINTS)
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "--agent", name, str(folder / "place")], env=environment(folder, mark)
        )
        for name in ("one", "two")
    ]
    said = {"place": folder / "place", "groups_per_job": 2, "attempts": 99, "lost_s": 0.5, "poll_s": 0.1}
    pairs = [("--executor-option", f"{key}={value}") for key, value in said.items()]
    try:
        yield ("--executor", "fleet", *(word for pair in pairs for word in pair))
    finally:
        for each in started:
            each.kill()
            each.wait()


def at_work(parent: int, store: Path) -> dict[str, int]:
    """The parent once it writes its journal, the host below its keeper, and its worker with a job.

    The parent of a run in parts is its driver; an agent is one of the commands that measure for it.
    """
    from torchgauge.processes.process_tree import children
    from torchgauge.results.journal import is_being_written

    journals = (store / "runs").glob("[!.]*/journal.jsonl")
    found = {"parent": parent} if any(is_being_written(each) for each in journals) else {}
    if found:
        found["driver"] = parent
    parts = list((store / "runs").glob("[!.]*/work/part-*/journal.jsonl"))
    working = commands_with(str(store), "torchgauge.cli.main worker")
    if working and any(is_being_written(each) for each in parts):
        found["agent"] = random.choice(working)
    for keeper in children(parent):
        for host in children(keeper):
            if "harness.worker.host" in command_of(host):
                found["host"] = host
                for worker in children(host):
                    if has_a_job(worker):
                        found["worker"] = worker
    return found


def commands_with(*words: str) -> list[int]:
    """Living processes with all ``words`` in their command."""
    pids = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]
    return [pid for pid in pids if all(word in command_of(pid) for word in words)]


def has_a_job(worker: int) -> bool:
    """Whether a fork of the host works: the one that waits for a job has no events file open."""
    with suppress(OSError):
        return any(fd.readlink().suffix == ".events" for fd in Path(f"/proc/{worker}/fd").iterdir())
    return False


def kills_of_a_run(found: Found, dice: random.Random, wanted: Counter[str], kinds: tuple[str, ...]) -> None:
    """One run that is hit until it is complete, or nothing is wanted any more; checked at its end."""
    from torchgauge.results.journal import results
    from torchgauge.results.store import Store

    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="kills-") as name, ExitStack() as stack:
        folder, hits = Path(name), Counter[str]()
        executor = stack.enter_context(agents_of(folder, mark)) if kinds == IN_PARTS else ()
        store, acknowledged = folder / "store", list[str]()
        while True:
            run = next(iter((store / "runs").glob("[!.]*")), None) if store.exists() else None
            words = (
                ("run", "--resume", str(run), *executor)
                if run
                else (*SIX, *PLAIN, "--prefetch", "1", "--store", str(store), *executor)
            )
            started = subprocess.Popen(
                [sys.executable, "-m", "torchgauge.cli.main", *words],
                env=environment(folder, mark),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            aims = [kind for kind in kinds if wanted[kind] > 0] if sum(hits.values()) < 8 else []
            if aims:
                hit(started, store, (dice, aims), hits, found)
            started.wait()
            if started.returncode == -signal.SIGKILL and not executor:  # agents go on without their driver
                found.look_for_strays("parent", mark)
            if run is None:
                run = next(iter((store / "runs").glob("[!.]*")), None) if store.exists() else None
            if run is not None and (run / "journal.jsonl").exists():
                rows = [each.case_id for each in results(run / "journal.jsonl")]
                found.lost += [f"acknowledged: {each}" for each in acknowledged if each not in rows]
                acknowledged = rows
            if started.returncode != -signal.SIGKILL:
                break
        stack.close()
        found.look_for_strays("run", mark)
        opened = Store.open(store)
        (run_id,) = opened.run_ids()
        planned = [each.case.id for each in opened.run(run_id).plan().cases]
        found.check("journal", planned, journal_rows(opened.run(run_id).journal_path))
        found.check("table", planned, table_rows(opened, run_id))
        for kind, count in hits.items():
            found.kills[kind] += count
            wanted[kind] -= count


def hit(
    started: subprocess.Popen[bytes],
    store: Path,
    chance: tuple[random.Random, list[str]],
    hits: Counter[str],
    found: Found,
) -> None:
    """Kill processes of the run at random moments, until the parent was hit or has ended."""
    dice, aims = chance
    while started.poll() is None:
        aim = dice.choice(aims)
        time.sleep(dice.uniform(0.02, 0.6))
        pid = at_work(started.pid, store).get(aim)
        if pid is None or started.poll() is not None:
            found.missed += 1
            continue
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            hits[aim] += 1
        if aim in ("parent", "driver"):
            return


def journal_rows(path: Path) -> list[str]:
    """Case of each row in the file, also of a second row of a case."""
    from torchgauge.results.journal import Kind, read

    return [record.data["case_id"] for record in read(path) if record.kind is Kind.RESULT]


def table_rows(store: object, run_id: str) -> list[str]:
    """Case of each row in the table."""
    from torchgauge.results.dataset import read_table

    return list(read_table(store, "results", run_id, ["case_id"]).column("case_id").to_pylist())


# --- ingest, publish, history --------------------------------------------------------------------


def begin() -> None:
    """Say that everything is imported and the work begins."""
    print("begin", flush=True)


def child(kind: str, folder: Path) -> None:
    """One import, publication or push, in ``folder`` as :func:`prepared` left it."""
    import campaign_sets
    import ci_ingest

    from torchgauge.results.store import RunFolder, Store

    if kind == "history":
        from torchgauge.workflows.history_branch import HistoryBranch

        branch = HistoryBranch.from_environment(BRANCH)
        begin()
        branch.save(folder / "history", "a night")
        return
    store = Store.open(folder / "store", create=True)
    if kind == "ingest":
        run = RunFolder(next((folder / "work" / "runs").glob("[!.]*")))
        path, expected, _ = ci_ingest.artifact(run, Path(tempfile.mkdtemp(dir=folder)))
        begin()
        taken, refused = campaign_sets.import_sets(store, [path], expected)
        assert len(taken) == 1, refused
        return
    from torchgauge.dashboard import site
    from torchgauge.workflows.publish import publish

    begin()
    for run_id in store.run_ids():
        store.finish(run_id)
    publish(store, folder / "guard.json", lambda: site.build_site(str(store.path), str(folder / "site")))


def prepared(kind: str, folder: Path) -> list[str]:
    """Make what the child of ``kind`` works on; what must be there when it is done."""
    import ci_ingest

    if kind == "history":
        files = [f"runs/{number}/journal.jsonl" for number in range(300)]
        from torchgauge.workflows.history_branch import HistoryBranch

        HistoryBranch.from_environment(BRANCH).fetch(folder / "history")
        for number, file in enumerate(files):
            (folder / "history" / file).parent.mkdir(parents=True)
            (folder / "history" / file).write_bytes(random.Random(number).randbytes(1024))
        return files
    run = ci_ingest.journal(folder / ("work" if kind == "ingest" else "store"), "models", 150)
    return [each.case.id for each in run.plan().cases]


def there_now(kind: str, folder: Path, server: object) -> list[str]:
    """What is there now of what :func:`prepared` promised."""
    from torchgauge.results.store import Store

    if kind == "history":
        assert server.git("rev-list", "--count", BRANCH) == "1", "more than one commit"
        return server.git("ls-tree", "-r", "--name-only", BRANCH).splitlines()
    store = Store.open(folder / "store")
    if kind == "publish":
        from torchgauge.workflows.publish import read_state

        state = read_state(folder / "guard.json")
        assert state is not None
        assert (folder / "site" / "index.html").is_file()
        assert list(state.runs.values()) == [150]
    (run_id,) = store.published()
    return table_rows(store, run_id)


def kills_of_a_child(
    kind: str, found: Found, dice: random.Random, took: dict[str, float], server: object
) -> None:
    """One piece of work, hit up to three times, then done to its end and checked."""
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        folder = Path(name)
        wanted = prepared(kind, folder)
        for attempt in range(4 if kind in took else 1):
            delay = dice.uniform(0, took[kind]) if kind in took and attempt < 3 else None
            started = subprocess.Popen(
                [sys.executable, __file__, "--child", kind, name],
                env=environment(folder, mark),
                stdout=subprocess.PIPE,
                text=True,
            )
            assert started.stdout is not None
            if started.stdout.readline() != "begin\n":
                raise SystemExit(f"{kind}: the child did not begin")
            began = time.monotonic()
            if delay is not None:
                with suppress(subprocess.TimeoutExpired):
                    started.wait(delay)
                started.kill()
            code = started.wait()
            started.stdout.close()
            if code == 0:
                took.setdefault(kind, time.monotonic() - began)
                found.missed += delay is not None
                break
            if code != -signal.SIGKILL:
                raise SystemExit(f"{kind} ended with {code} when it was repeated")
            found.kills[kind] += 1
            found.look_for_strays(kind, mark)
        found.check(kind, wanted, there_now(kind, folder, server))
        if kind == "history":
            server.git("update-ref", "-d", f"refs/heads/{BRANCH}")


@contextmanager
def history_server() -> Iterator[object]:
    """A git server of this process, which the environment names as the Git host."""
    from git_server import NAME, TOKEN, serving

    with tempfile.TemporaryDirectory(prefix="kills-") as name, serving(Path(name, "served")) as server:
        os.environ |= {"GITHUB_SERVER_URL": server.base, "GITHUB_REPOSITORY": NAME, "GITHUB_TOKEN": TOKEN}
        yield server


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60, help="effective kills, alike for each kind")
    parser.add_argument("--kinds", default=",".join((*IN_RUNS, *IN_PARTS, *CHILDREN)))
    parser.add_argument("--seconds", type=float, default=600.0, help="begin nothing new after that")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--child", nargs=2, metavar=("KIND", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--agent", nargs=2, metavar=("NAME", "PLACE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.agent:
        from folder_engine import Place, serve

        serve(given.agent[0], Place(Path(given.agent[1])))
    if given.child:
        child(given.child[0], Path(given.child[1]))
        return 0
    seed = random.randrange(1 << 32) if given.seed is None else given.seed
    dice, found, took = random.Random(seed), Found(), dict[str, float]()
    kinds = given.kinds.split(",")
    each = -(-given.kills // len(kinds))
    began = time.monotonic()
    with history_server() as server:
        while time.monotonic() - began < given.seconds:
            left = Counter({kind: each - found.kills[kind] for kind in kinds if found.kills[kind] < each})
            if not left:
                break
            kind = dice.choice(sorted(left))
            if kind in (*IN_RUNS, *IN_PARTS):
                kills_of_a_run(found, dice, left, IN_RUNS if kind in IN_RUNS else IN_PARTS)
            else:
                kills_of_a_child(kind, found, dice, took, server)
    said = {"effective": sum(found.kills.values()), "by_kind": dict(sorted(found.kills.items()))}
    said |= {"missed": found.missed, "lost": found.lost, "doubled": found.doubled, "strays": found.strays}
    print(json.dumps({**said, "seed": seed, "seconds": round(time.monotonic() - began)}, indent=1))
    return int(bool(found.lost or found.doubled or found.strays))


if __name__ == "__main__":
    sys.exit(main())
