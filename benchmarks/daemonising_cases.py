"""What is left of ``--cases`` cases, each of which leaves a daemon: processes that outlive the run.

A case of no torch starts a child that leaves its session, its parent and its streams, in one of four ways: as
it is, deaf to SIGTERM, with an environment of its own, and in a chain that starts another one when it is
killed. Each daemon writes its process id into a folder, so that none is missed whatever it hides. Prints one
JSON object; ends with 1 where one lives, a row is missing, or a case left none.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from child_run import run_child
from random_kills import MARK, ROOT, Found, install_points, journal_rows, marked

FOLDER = "TORCHGAUGE_FAULTS_DAEMONS"
POINTS = "[torchgauge.suites]\ndaemons = daemonising_cases:SUITE\n"
WAYS = ("plain", "deaf", "nameless", "restarting")
LIFE_S = 600.0
"""Seconds that a daemon lives where nobody ends it."""


def daemonise(way: str, folder: Path) -> None:
    """Leave a daemon of the kind ``way``."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    if way in ("deaf", "restarting"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for descriptor in range(3):
        os.close(descriptor)
    (folder / f"{way}-{os.getpid()}").touch()
    if way == "nameless":
        os.execve("/bin/sleep", ["sleep", str(LIFE_S)], {})
    while way == "restarting":
        inner = os.fork()
        if not inner:
            (folder / f"{way}-{os.getpid()}").touch()
            time.sleep(LIFE_S)
            os._exit(0)
        os.waitpid(inner, 0)
    time.sleep(LIFE_S)
    os._exit(0)


def build(workload: object, recipe: dict[str, object]) -> object:  # noqa: ARG001
    """A step that does nothing, of a model that has left a daemon."""
    from torchgauge.suites.suite import BuiltWorkload

    model = str(workload.model)  # type: ignore[attr-defined]
    daemonise(WAYS[int(model.rpartition("_")[2]) % len(WAYS)], Path(os.environ[FOLDER]))
    return BuiltWorkload(module=lambda: True, framework="python")


def __getattr__(name: str) -> object:
    """The suite, which is only made where torchgauge asks for it."""
    if name != "SUITE":
        raise AttributeError(name)
    from torchgauge.suites.catalog import YamlSuite

    return YamlSuite(
        name="daemons",
        doc="Models that leave daemons; for a benchmark only.",
        data=Path(os.environ[FOLDER]).with_name("daemons.yaml"),
        builder="daemonising_cases:build",
    )


def alive(folder: Path) -> list[str]:
    """Daemons of ``folder`` that live; a zombie does not."""
    found = []
    for each in folder.iterdir():
        pid = each.name.rpartition("-")[2]
        try:
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2]
        except OSError:
            continue
        if not stat.startswith("Z"):
            found.append(each.name)
    return found


def one_of(paths: Iterable[Path]) -> Path:
    """Return the only one of ``paths``; raise ``ValueError`` where there is another number."""
    (path,) = paths
    return path


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    given = parser.parse_args()
    found, mark = Found(), uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="daemons-") as name:
        work, folder = Path(name), Path(name, "pids")
        folder.mkdir()
        install_points(work, POINTS)
        entry = "{{name: daemon_{}, tiers: [smoke], batch: {{inference: 1}}, framework: python}}"
        lines = "".join(f"  - {entry.format(number)}\n" for number in range(given.cases))
        (work / "daemons.yaml").write_text(f"suite: daemons\nmodels:\n{lines}")
        path = os.pathsep.join([str(ROOT / "benchmarks"), str(ROOT / "src"), name])
        own = {"PYTHONPATH": path, FOLDER: str(folder), "OMP_NUM_THREADS": "1", MARK: mark, "TMPDIR": name}
        store = ("--store", str(work / "store"), "--device", "fake", "--config", "eager")
        quick = (
            "--threads",
            "1",
            "--measure-seconds",
            "0.01",
            "--quiet-wait",
            "0",
            "--no-calibration",
            "--no-memory-probe",
            "--no-warm-compile",
        )
        ended = run_child(
            [sys.executable, "-m", "torchgauge.cli.main", "run", "daemons", *store, *quick],
            lambda _: one_of(work.glob("store/runs/[!.]*/journal.jsonl")),
            good=(0, 1, 3),
            env=os.environ | own,
        )
        left, journal = alive(folder), ended.results
        from torchgauge.results.store import RunFolder

        planned = [each.case.id for each in RunFolder(journal.parent).plan().cases]
        found.check("journal", planned, journal_rows(journal))
        made = Counter(each.name.rpartition("-")[0] for each in folder.iterdir())
        said = {
            "cases": len(planned),
            "exit_code": ended.code,
            "daemons": dict(made),
            "alive_at_the_end": left,
            "marked_at_the_end": len(marked(mark)),
            "lost": found.lost,
            "doubled": found.doubled,
            "seconds": round(ended.seconds),
        }
    for each in left:
        os.kill(int(each.rpartition("-")[2]), signal.SIGKILL)
    print(json.dumps(said, indent=1))
    few = sum(made.values()) < given.cases
    return int(bool(left or found.lost or found.doubled or few or said["marked_at_the_end"]))


if __name__ == "__main__":
    sys.exit(main())
