"""What users get is built from a copy of the source, looked into, installed without torch, and run."""

from __future__ import annotations

import email.parser
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from email.message import Message
from functools import cached_property
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version
from source_tree import ROOT, copy_source

import torchgauge

JUNK = (
    ".venv/bin/python",
    "dist/torchgauge-0.0.1.tar.gz",
    "notes-to-myself.txt",
    "site/index.html",
    "src/.mypy_cache/3.11/cache.db",
    "src/torchgauge/__pycache__/errors.cpython-311.pyc",
    "tests/.pytest_cache/README.md",
    "torchgauge-results/runs/1/journal.jsonl",
)
"""What lies about in a tree in which somebody works."""


@dataclass(frozen=True)
class Built:
    """An sdist and a wheel, and the files of the source of which they were made."""

    folder: Path
    source: frozenset[str]

    @cached_property
    def wheel(self) -> Path:
        (found,) = self.folder.glob("*.whl")
        return found

    @cached_property
    def sdist(self) -> Path:
        (found,) = self.folder.glob("*.tar.gz")
        return found

    @cached_property
    def in_wheel(self) -> dict[str, bytes]:
        with zipfile.ZipFile(self.wheel) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    @cached_property
    def in_sdist(self) -> dict[str, bytes]:
        top = self.sdist.name.removesuffix(".tar.gz") + "/"
        with tarfile.open(self.sdist) as archive:
            members = {each.name: archive.extractfile(each) for each in archive.getmembers() if each.isfile()}
            return {name.removeprefix(top): held.read() for name, held in members.items() if held}

    @property
    def information(self) -> str:
        return f"torchgauge-{torchgauge.__version__}.dist-info/"

    @cached_property
    def metadata(self) -> Message:
        text = self.in_wheel[f"{self.information}METADATA"].decode()
        return email.parser.HeaderParser().parsestr(text)


def build(tree: Path, source: frozenset[str], *what: str) -> Built:
    out = tree.with_name(f"{tree.name}-dist")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000"}
    command = [sys.executable, "-m", "build", "--no-isolation", *what, "--outdir", str(out), str(tree)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return Built(out, source)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """As a release builds: the sdist of a tree in which somebody worked, and the wheel from that alone."""
    tree = tmp_path_factory.mktemp("release") / "tree"
    source = copy_source(tree)
    for name in JUNK:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("not ours", encoding="utf-8")
    return build(tree, source)


@pytest.fixture(scope="session")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what its metadata asks for, and without torch."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    python = folder / "venv" / "bin" / "python"
    asked = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    )
    site = Path(asked.stdout.strip())
    for path in needed_paths(built.metadata.get_all("Requires-Dist", [])):
        if not (site / path.name).exists():
            (site / path.name).symlink_to(path)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "--quiet"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(built.wheel)], check=True, cwd=folder)
    return folder


def needed_paths(requirements: list[str]) -> set[Path]:
    """Where this interpreter has what ``requirements`` name, and what those ask for in turn."""
    paths, seen, left = set(), set(), list(requirements)
    while left:
        wanted = Requirement(left.pop())
        if wanted.name in seen or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add(wanted.name)
        found = importlib.metadata.distribution(wanted.name)
        tops = {file.parts[0] for file in found.files or () if file.parts[0] != ".."}
        paths |= {Path(str(found.locate_file(top))) for top in tops - {"__pycache__"}}
        left += found.requires or []
    return paths


def run_installed(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed script away from the source tree."""
    return subprocess.run(
        [str(installed / "venv" / "bin" / "torchgauge"), *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=installed,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
        timeout=300,
    )


def test_the_wheel_holds_the_package_with_all_its_data_and_nothing_else(built):
    """Every file under ``src/torchgauge`` is in it, byte for byte, with the licence and the entry points."""
    package = {name.removeprefix("src/"): name for name in built.source if name.startswith("src/torchgauge/")}
    about = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    assert built.in_wheel.keys() == package.keys() | {built.information + name for name in about}
    tree = built.folder.with_name("tree")
    assert [name for name, at in package.items() if built.in_wheel[name] != (tree / at).read_bytes()] == []
    kinds = {Path(name).suffix for name in package}
    assert {".css", ".gz", ".ini", ".j2", ".js", ".yaml", ".yml"} <= kinds


def test_the_sdist_holds_what_git_has_and_nothing_else(built):
    """So the tests can run from it, and what lies about in a tree stays there."""
    assert built.in_sdist.keys() == built.source | {"PKG-INFO"}


def test_nothing_says_where_it_was_built(built):
    """No file holds a path of the machine that built it."""
    here = [str(path).encode() for path in (ROOT, built.folder.parent, Path(sys.prefix))]
    for name, held in {**built.in_sdist, **built.in_wheel}.items():
        assert not [path for path in here if path in held], name


def test_building_again_elsewhere_gives_the_same_bytes(built, tmp_path):
    """Another folder, other times and modes of the files, a wheel made of the tree and not of the sdist."""
    with tarfile.open(built.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    tree = tmp_path / built.sdist.name.removesuffix(".tar.gz")
    (tree / "PKG-INFO").unlink()  # the one thing that the sdist adds
    for name in built.source:
        (tree / name).chmod((tree / name).stat().st_mode | 0o020)
        os.utime(tree / name, (1_000_000_000, 1_000_000_000))
    again = build(tree, built.source, "--sdist", "--wheel")
    assert again.sdist.read_bytes() == built.sdist.read_bytes()
    assert again.wheel.read_bytes() == built.wheel.read_bytes()


def test_the_metadata_passes_the_strict_check_of_the_index(built):
    """PyPI takes both files, and can show the description."""
    command = [sys.executable, "-m", "twine", "check", "--strict", str(built.wheel), str(built.sdist)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_metadata_says_what_is_asked_for(built):
    """The version is in PEP 440's normal form, each requirement has a lowest version, torch is an extra."""
    assert built.metadata["Version"] == torchgauge.__version__ == str(Version(torchgauge.__version__))
    assert built.metadata["License-Expression"] == "Apache-2.0"
    required = [Requirement(line) for line in built.metadata.get_all("Requires-Dist", [])]
    always = {each.name: each.specifier for each in required if not each.marker}
    assert {str(part)[:2] for each in always.values() for part in each} == {">="}
    assert all(always.values())
    assert "torch" not in always
    assert "torch" in {each.name for each in required if "torch" in str(each.marker)}


def test_each_python_that_is_claimed_is_tested(built):
    """A classifier stands for an interpreter on which the workflow runs all tests."""
    lines = "\n".join(built.metadata.get_all("Classifier", []))
    claimed = re.findall(r"Python :: (3\.\d+)$", lines, re.MULTILINE)
    job = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]["test"]
    tested = {
        step["with"]["python-version"] for step in job["steps"] if "setup-python@" in step.get("uses", "")
    }
    assert set(claimed) == tested


def test_the_installed_wheel_says_its_version(installed):
    """The script of the wheel is the installed copy, and there is no torch beside it."""
    done = run_installed(installed, "--version")
    assert (done.returncode, done.stdout) == (0, f"torchgauge, version {torchgauge.__version__}\n"), (
        done.stderr
    )
    code = "import importlib.util, torchgauge; print(torchgauge.__file__, importlib.util.find_spec('torch'))"
    where = subprocess.run(
        [str(installed / "venv" / "bin" / "python"), "-I", "-c", code],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert Path(where[0]).is_relative_to(installed)
    assert where[1] == "None"


def test_the_installed_wheel_says_what_is_missing(installed):
    """Without torch the doctor answers and names what to install."""
    done = run_installed(installed, "doctor")
    assert "Traceback" not in done.stderr
    assert re.search(r"torch.*not installed|pip install.*torch", done.stdout), done.stdout + done.stderr


def test_the_installed_wheel_measures_and_publishes(installed):
    """From the wheel alone, a run on the device without torch ends in a store and a site."""
    common = ["--device", "fake", "--config", "eager", "--models", "noop", "--measure-seconds", "0.05"]
    done = run_installed(installed, "run", "toy", *common, "--store", "store", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"] == {"pass": 1}
    done = run_installed(installed, "dashboard", "build", "store", "--out", "site-of-store")
    assert done.returncode == 0, done.stderr
    assert "noop" in (installed / "site-of-store" / "compatibility.html").read_text(encoding="utf-8")


@pytest.mark.full
def test_the_lowest_versions_that_are_asked_for_are_enough(built, tmp_path):
    """Every ``>=`` becomes ``==``: the wheel measures and publishes with the oldest packages it claims."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    required = [Requirement(line) for line in built.metadata.get_all("Requires-Dist", [])]
    lowest = [f"{each.name}{str(each.specifier).replace('>=', '==')}" for each in required if not each.marker]
    pip = [str(tmp_path / "venv" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    done = subprocess.run(
        [*pip, "install", str(built.wheel), *lowest], check=False, capture_output=True, text=True
    )
    if done.returncode and re.search(r"Connection|Retrying|from versions: none", done.stderr):
        pytest.skip("needs the package index")
    assert done.returncode == 0, done.stderr
    test_the_installed_wheel_measures_and_publishes(tmp_path)
