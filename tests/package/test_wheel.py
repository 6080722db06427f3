"""The wheel is what users get: it is built, installed away from the source tree, and run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which nothing but the wheel was installed."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = ["wheel", str(ROOT), "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*pip, *build], check=True, cwd=folder)
    (wheel,) = folder.glob("torchgauge-*.whl")
    target = folder / "site"
    install = ["install", "--no-deps", "--no-index", "--target", str(target), str(wheel)]
    subprocess.run([*pip, *install], check=True, cwd=folder)
    return folder


def run_installed(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed script with the installed package before all others on the path."""
    return subprocess.run(
        [sys.executable, str(installed / "site" / "bin" / "torchgauge"), *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=installed,
        env={**os.environ, "PYTHONPATH": str(installed / "site")},
        timeout=120,
    )


def test_wheel_holds_data_templates_and_licence(installed: Path) -> None:
    """Everything that the package reads at run time is in the wheel, and nothing of the tests."""
    (wheel,) = installed.glob("torchgauge-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "torchgauge/builtin_plugins.ini" in names
    assert "torchgauge/suites/data/timm.yaml" in names
    assert any(name.startswith("torchgauge/dashboard/templates/") for name in names)
    assert any(name.startswith("torchgauge/dashboard/static/") for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith("tests/") for name in names)


def test_installed_wheel_says_its_version(installed: Path) -> None:
    """The console script of the wheel runs and is the installed copy."""
    done = run_installed(installed, "--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("torchgauge, version ")
    where = subprocess.run(
        [sys.executable, "-c", "import torchgauge; print(torchgauge.__file__)"],
        check=True,
        capture_output=True,
        text=True,
        cwd=installed,
        env={**os.environ, "PYTHONPATH": str(installed / "site")},
    )
    assert Path(where.stdout.strip()).is_relative_to(installed)


def test_installed_wheel_measures_and_publishes(installed: Path) -> None:
    """From the wheel alone, a run on the device without torch ends in a store and a site."""
    common = ["--device", "fake", "--config", "eager", "--models", "noop", "--measure-seconds", "0.05"]
    done = run_installed(installed, "run", "toy", *common, "--store", "store", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"] == {"pass": 1}
    done = run_installed(installed, "dashboard", "build", "store", "--out", "site-of-store")
    assert done.returncode == 0, done.stderr
    assert "noop" in (installed / "site-of-store" / "compatibility.html").read_text(encoding="utf-8")
