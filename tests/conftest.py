"""What holds for every test: no compiled code is kept, no hook of git leads astray, long files come first."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import empty_loops

OF_A_HOOK = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
)
"""What git sets for the hooks that it runs, and what would lead a test's own git to this repository."""


empty_loops.install()


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the environment of every command that a test starts, and watch loops of assertions.

    No test keeps compiled code between runs, or finds what another one kept, unless it asks for it. Tests may
    be started by a hook of git.
    """
    config.pluginmanager.register(empty_loops, "empty_loops")
    # a background job ignores Ctrl-C, and so would the commands that it starts
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["TORCHGAUGE_COMPILE_CACHE"] = "none"
    os.environ["TORCHGAUGE_LEASES"] = tempfile.mkdtemp(
        prefix="leases-"
    )  # tests beside these have simulated ones
    for name in OF_A_HOOK:
        os.environ.pop(name, None)


def pytest_unconfigure() -> None:
    """Remove the leases of simulated devices."""
    shutil.rmtree(os.environ.pop("TORCHGAUGE_LEASES", ""), ignore_errors=True)


@pytest.fixture(autouse=True)
def _no_quarantine() -> Iterator[None]:
    """Let no device that a test has broken be out for the next one."""
    yield
    for path in Path(os.environ["TORCHGAUGE_LEASES"]).glob("*.quarantine"):
        path.unlink(missing_ok=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files with a test that is marked ``long`` before all others, which keep their order.

    Files are the unit that workers take, in this order (``--no-loadscope-reorder``): what takes minutes must
    not be begun when everything else is done.
    """
    first = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in first)
