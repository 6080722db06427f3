"""Does every version of torch that the docs promise work here? One line of output for each.

For each version pip makes an environment (about 5 GB of disk with the CUDA build that the index has for
Linux), one at a time, which is removed after it unless ``--keep`` is given. In it are run: ``devices``,
``doctor``, ``run toy timm --models mlp,resnet18`` eager and compiled, and ``ab`` against this interpreter's
torch. A version that cannot be had is named with pip's reason. Ends with 1 if one that could be had failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from importlib.metadata import version as version_of
from pathlib import Path

VERSIONS = ("2.5.1", "2.6.0", "2.7.1", "newest")
TIMM = f"timm=={version_of('timm')}"
COMMAND = [sys.executable, "-m", "torchgauge.cli.main"]
CASES = ("--device", "cpu", "--threads", "1")
MODELS = ("toy", "timm", "--models", "mlp,resnet18", *CASES)
PATIENCE_S = 7200.0


def attempt(words: list[str], log: Path) -> tuple[int, str]:
    """Return the exit code of a command and the last line that it printed; all of it is in ``log``."""
    with log.open("w", encoding="utf-8") as output:
        done = subprocess.run(words, stdout=output, stderr=subprocess.STDOUT, timeout=PATIENCE_S, check=False)
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return done.returncode, next((line.strip() for line in reversed(lines) if line.strip()), "")


def make(version: str, place: Path, log: Path) -> str:
    """Make the environment of ``version`` in ``place``; return pip's reason where it cannot be had."""
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    pip = [str(place / "bin" / "pip"), "install", "--no-input", "--quiet"]
    torch = "torch" if version == "newest" else f"torch=={version}"
    code, said = attempt([*pip, torch, "torchvision", TIMM, "numpy", "setuptools<81"], log)
    return said if code else ""


def measured(python: str, folder: Path) -> dict[str, str]:
    """Return what each command ended with; the words of a failure where it failed."""
    store = ("--store", str(folder / "store"))
    against = ("--base", python, "--head", sys.executable)
    commands = {
        "devices": ["devices", "--python", python],
        "doctor": ["doctor", "--python", python, "--device", "cpu"],
        "run": ["run", *MODELS, "--config", "eager,inductor", "--python", python, *store],
        "ab": ["ab", *against, *MODELS, "--config", "eager", "--max-launches", "3", *store],
        "ab compiled": ["ab", *against, *MODELS, "--config", "inductor", "--max-launches", "4", *store],
    }  # fmt: skip
    found = {}
    for name, words in commands.items():
        good = (0, 1, 3) if name.startswith("ab") else (0,)  # another version may be slower
        code, said = attempt([*COMMAND, *words], folder / f"{name}.log")
        bad = [line for line in (folder / f"{name}.log").read_text().split("\n") if "broken" in line]
        found[name] = "ok" if code in good and not bad else f"{code}: {(bad or [said])[0].strip()[:160]}"
    return found


def main() -> None:
    """Try each version, print its line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="*", default=VERSIONS, metavar="VERSION")
    parser.add_argument(
        "--folder", type=Path, help="where logs and stores are kept (default: a temporary one)"
    )
    parser.add_argument(
        "--keep", action="store_true", help="keep the environments, and use those that are there"
    )
    given = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="torch-versions-") as temporary:
        for version in given.versions:
            folder = (given.folder or Path(temporary)).absolute() / version
            folder.mkdir(parents=True, exist_ok=True)
            place = folder / "environment"
            why = "" if (place / "bin" / "python").exists() else make(version, place, folder / "pip.log")
            if why:
                print(f"{version}: cannot be had: {why}", flush=True)
            else:
                found = measured(str(place / "bin" / "python"), folder)
                failed |= any(said != "ok" for said in found.values())
                print(
                    f"{version}: " + ", ".join(f"{name} {said}" for name, said in found.items()), flush=True
                )
            if not given.keep:
                subprocess.run(["rm", "-rf", str(place)], check=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
