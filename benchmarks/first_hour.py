"""How long a newcomer waits: ``make demo`` in a fresh clone with an empty home, and ``--help``.

Each demo is a clone of this repository's HEAD below a folder for temporary files; each line that it says gets
its moment. Reported: seconds of the installation, and from its end to the first latency on the screen, to the
first dashboard and to the end (goals: 60, 180 and 360 s); and each "about ... left" but a run's first one,
divided by what was left (goal: 1/1.3 to 1.3). ``--help`` (goal: 150 ms of wall time) is run in alternation
with a bare interpreter. Prints one JSON object. Nothing else should run on the machine:

    python benchmarks/first_hour.py --demos 3
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from child_run import run_child

ROOT = Path(__file__).resolve().parents[1]
HELPS = 15
LEFT = re.compile(r"about (?:(\d+) h ?)?(?:(\d+) min ?)?(?:(\d+) s)? ?left")
LATENCY = re.compile(r"\[\d+/\d+\] .*: pass (?:about )?[\d.]+ ")
RUN_BEGINS = re.compile(r"run \d{8}T\d{6}Z-\w+: \d+ cases")
RUN_ENDS = re.compile(r"\[\d+/\d+\] .*\| took ")


def demo(folder: Path) -> dict[str, object]:
    """One demo below ``folder``."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder / "clone")], check=True)
    (folder / "home").mkdir()
    environment = {**os.environ, "HOME": str(folder / "home"), "PYTHONUNBUFFERED": "1"}
    options = {"cwd": folder / "clone", "env": environment, "stderr": subprocess.STDOUT}
    installed = run_child(["make", ".venv/.runtime"], str, log=sys.stderr.buffer, **options).seconds
    lines = run_child(["make", "demo"], str, **options).lines
    begins = [at for at, line in lines if RUN_BEGINS.search(line)]
    ends = [at for at, line in lines if RUN_ENDS.search(line)]
    assert len(begins) == len(ends) == 2, (begins, ends)
    excess = []
    for began, ended in zip(begins, ends, strict=True):
        guesses = [
            (at, sum(int(part or 0) * unit for part, unit in zip(found.groups(), (3600, 60, 1), strict=True)))
            for at, line in lines
            if began <= at < ended and (found := LEFT.search(line))
        ]
        excess += [round(said / (ended - at), 2) for at, said in guesses[1:] if ended - at >= 5]
    first = next(at for at, line in lines if LATENCY.search(line))
    return {
        "installation_s": round(installed, 1),
        "first_number_s": round(first, 1),
        "first_dashboard_s": round(next(at for at, line in lines if "dashboard is in" in line), 1),
        "all_s": round(lines[-1][0], 1),
        "left_said_by_true": excess,
        "lines": [f"{at:6.1f} {line}" for at, line in lines],
    }


def help_ms() -> dict[str, float]:
    """Median wall time of ``torchgauge --help`` and of a bare interpreter, in milliseconds."""
    took: dict[str, list[float]] = {"bare_ms": [], "help_ms": []}
    words = {"bare_ms": ["-c", "pass"], "help_ms": ["-m", "torchgauge", "--help"]}
    for _ in range(HELPS):
        for name, command in words.items():
            took[name].append(run_child([sys.executable, *command], str).seconds * 1e3)
    return {name: round(statistics.median(each), 1) for name, each in took.items()}


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--demos", type=int, default=3)
    demos = parser.parse_args().demos
    found: dict[str, object] = {
        "machine": platform.platform(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg(),
    }
    found |= help_ms()
    with tempfile.TemporaryDirectory(prefix="first-hour-") as place:
        runs = []
        for number in range(demos):
            folder = Path(place, str(number))
            folder.mkdir()
            runs.append(demo(folder))
            print(json.dumps(runs[-1]), file=sys.stderr, flush=True)
        found["demos"] = runs
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
