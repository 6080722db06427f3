"""Prepares every test: warm hosts, no kept compiled code, no hook of git; marks what only a night runs."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import empty_loops
import run_summary
import warm_hosts

OF_A_HOOK = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
)
"""What git sets for the hooks that it runs, and what would lead a test's own git to this repository."""


HIDES = """
import importlib.abc, sys
class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "{package}":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""
"""A ``sitecustomize`` that hides an installed package."""

NURSERY = pytest.StashKey[tuple[str, Any]]()
"""The folder and the process from which commands take warm hosts (:mod:`warm_hosts`)."""


empty_loops.install()


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the environment of every command that a test starts, and watch loops of assertions.

    No test keeps compiled code between runs, or finds what another one kept, unless it asks for it. Tests may
    be started by a hook of git.
    """
    config.pluginmanager.register(empty_loops, "empty_loops")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(run_summary, "run_summary")
    # a background job ignores Ctrl-C, and so would the commands that it starts
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["TORCHGAUGE_COMPILE_CACHE"] = "none"
    os.environ["TORCHGAUGE_LEASES"] = tempfile.mkdtemp(
        prefix="leases-"
    )  # tests beside these have simulated ones
    os.environ.pop("GITHUB_ACTIONS", None)  # torchgauge closes itself there: a test asks for that
    for name in OF_A_HOOK:
        os.environ.pop(name, None)
    if hasattr(config, "workerinput") or not config.getoption(
        "numprocesses", 0
    ):  # one in each process with tests
        folder = tempfile.mkdtemp(prefix="nursery-")
        config.stash[NURSERY] = folder, warm_hosts.start(folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the leases of simulated devices, and end the templates of hosts."""
    shutil.rmtree(os.environ.pop("TORCHGAUGE_LEASES", ""), ignore_errors=True)
    if NURSERY in config.stash:
        folder, process = config.stash[NURSERY]
        process.communicate()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def _no_quarantine() -> Iterator[None]:
    """Let no device that a test has broken be out for the next one."""
    yield
    for path in Path(os.environ["TORCHGAUGE_LEASES"]).glob("*.quarantine"):
        path.unlink(missing_ok=True)


NIGHTLY = Path(__file__).with_name("nightly.txt")
"""The tests that only the nightly form runs for the time they take; others are marked ``full`` in place."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that ``nightly.txt`` names as ``full``."""
    lines = NIGHTLY.read_text(encoding="utf-8").splitlines()
    named = {line for line in lines if line and not line.startswith("#")}
    found = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        if names := named & {item.nodeid, test, test.partition("::")[0]}:
            found |= names
            item.add_marker(pytest.mark.full)
    # of a file that was not collected (others are named, a package is missing) only its being there is asked
    collected = {item.nodeid.partition("::")[0] for item in items}
    gone = [
        line
        for line in sorted(named - found)
        if (file := line.partition("::")[0]) in collected or not (config.rootpath / file).is_file()
    ]
    if items and not any("::" in each for each in config.option.file_or_dir):
        items += [GoneTest.from_parent(items[0].session, name=line) for line in gone]


class GoneTest(pytest.Item):
    """Fails for a line of ``nightly.txt`` that names no test; an error here would end xdist's workers."""

    def runtest(self) -> None:
        """Fail."""
        pytest.fail(f"{NIGHTLY} names no test by {self.name}", pytrace=False)


@pytest.fixture
def hide_package(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that hides an installed package, and returns the ``PYTHONPATH`` which does so."""

    def hide(package: str) -> str:
        (tmp_path / "sitecustomize.py").write_text(HIDES.format(package=package), "utf-8")
        return os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH", ""))))

    return hide
