"""Does every version of torch that the docs promise work here? One line of output for each.

For each version pip makes an environment as for a matrix (about 5 GB of disk with the build for CUDA), one at
a time, which is removed after it unless ``--keep`` is given. In it are run: ``devices``, ``doctor``, ``run
toy timm --models mlp,resnet18`` eager and compiled, and ``ab`` against this interpreter's torch. A version
that cannot be had is named with pip's reason. Ends with 1 if one that could be had failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from torchgauge.harness.matrix.cells import Cell
from torchgauge.harness.matrix.environments import CellFailedError, Environments, Made
from torchgauge.harness.matrix.pip_tool import Pip, PipFailedError

VERSIONS = ("2.5.1", "2.6.0", "2.7.1", "newest")
NEEDS = ("timm", "torchvision")
MODELS = ("toy", "timm", "--models", "mlp,resnet18", "--config", "eager,inductor", "--threads", "1")
QUICK = ("--device", "cpu", "--measure-seconds", "0.5", "--no-memory-probe", "--no-warm-compile")
PATIENCE_S = 7200.0


def command(words: list[str], log: Path) -> tuple[int, str, str]:
    """Return the exit code of a torchgauge command with what it printed and logged; the log is kept."""
    done = subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", *words],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    log.write_text(done.stdout + done.stderr, encoding="utf-8")
    return done.returncode, done.stdout, done.stderr


def compared(code: int, output: str) -> str:
    """Return the ratios of a comparison; what is wrong where a pair has none, or another status."""
    if not output.startswith("{"):
        return f"FAILED ({code})"
    verdicts: list[dict[str, Any]] = json.loads(output)["verdicts"]
    states = [each for each in verdicts if each["metric"] == "status"]
    bad = [each for each in states if each["verdict"] != "unchanged" or each["reason"]]
    times = [each for each in verdicts if each["metric"] == "latency"]
    bad += [each for each in times if each["verdict"] == "not_comparable"]
    if bad or not times:
        return f"FAILED: {[(each['pair_id'], each['verdict'], each['reason']) for each in bad[:1]]}"
    return " ".join(f"{each['ratio']:.2f}x" if each["ratio"] else "?" for each in times)


def tried(made: Made, folder: Path, launches: str) -> dict[str, str]:
    """Return how each command ended with the interpreter ``made``; ``FAILED`` begins what should not be."""
    python, store = made.python, ("--store", str(folder / "store"))
    ends = {}
    code, output, _ = command(["devices", "--python", python], folder / "devices.log")
    ends["devices"] = "ok" if code == 0 and "\nbroken" not in output else f"FAILED ({code})"
    code, output, _ = command(["doctor", "--python", python, *QUICK[:2]], folder / "doctor.log")
    word = next((line.split()[0] for line in output.split("\n") if "to measure on cpu" in line), "")
    good = word and code in (0, 3) and "broken" not in output  # a busy machine is unfit with any torch
    ends["doctor"] = {"Whether": "ok"}.get(word, word.lower()) if good else f"FAILED ({code})"
    code, _, errors = command(["run", *MODELS, *QUICK, "--python", python, *store], folder / "run.log")
    ends["run"] = "4/4 pass" if code == 0 and "4/4 pass" in errors else f"FAILED ({code})"
    sides = ("--base", python, "--head", sys.executable, "--no-control", "--max-launches", launches, "--json")
    code, output, _ = command(["ab", *sides, *MODELS, *QUICK, *store], folder / "ab.log")
    ends["ab"] = compared(code, output)
    return ends


def candidates(version: str, environments: Environments) -> list[str]:
    """Return the versions to try for ``version``, until one can be had: for ``newest`` the last three."""
    if version != "newest":
        return [version]
    released = [
        text
        for text in Pip.in_folder(environments.folder).versions("torch")
        if text.replace(".", "").isdigit()
    ]
    return released[:3]


def main() -> None:
    """Try each version, print its line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="*", default=VERSIONS, metavar="VERSION")
    parser.add_argument(
        "--folder", type=Path, help="where logs and stores are kept (default: a temporary one)"
    )
    parser.add_argument("--keep", action="store_true", help="keep the environments, for the next time")
    parser.add_argument("--only-make", action="store_true", help="make and keep the environments, and end")
    parser.add_argument("--launches", default="3", help="of a comparison (3); fewer give no ratio")
    given = parser.parse_args()
    os.environ["PIP_NO_CACHE_DIR"] = "1"
    failed = False
    with tempfile.TemporaryDirectory(prefix="torch-versions-") as temporary:
        root = (given.folder or Path(temporary)).absolute()
        environments = Environments(root / "environments")
        pins = {name: version_of(name) for name in NEEDS[:1]}
        for asked in given.versions:
            for version in candidates(asked, environments):
                try:
                    lock = environments.lock(Cell(version, (("torch", version),)), NEEDS, pins)
                    made = environments.make(lock)
                except (CellFailedError, PipFailedError) as error:
                    print(f"{version}: cannot be had: {error.in_a_line}", flush=True)
                    continue
                if not given.only_make:
                    folder = root / version
                    folder.mkdir(parents=True, exist_ok=True)
                    ends = tried(made, folder, given.launches)
                    failed |= any("FAILED" in end for end in ends.values())
                    print(
                        f"{made.torch}: " + ", ".join(f"{name} {end}" for name, end in ends.items()),
                        flush=True,
                    )
                if not (given.keep or given.only_make):
                    shutil.rmtree(environments.folder / lock.key)
                break
    sys.exit(failed)


if __name__ == "__main__":
    main()
