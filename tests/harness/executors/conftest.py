"""A real cluster for each engine, started once, and what one command with each executor is."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from slurm_cluster import SlurmCluster, missing, slurm_cluster

QUICK_JOBS = {"poll_s": "0.2", "lost_s": "3"}


@dataclass
class Place:
    """An executor with a machine or a cluster behind it, as one command names it."""

    executor: str
    options: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    cluster: Any = None

    def words(self, **more: str) -> list[str]:
        """The flags that choose it."""
        pairs = (self.options | more).items()
        return [
            "--executor",
            self.executor,
            *(word for key, value in pairs for word in ("--executor-option", f"{key}={value}")),
        ]


@pytest.fixture(scope="module")
def slurm_of_this_machine() -> Iterator[SlurmCluster]:
    """Slurm with two nodes; skipped where Debian's programs are not installed."""
    if lacking := missing():
        said = f"{', '.join(lacking)} cannot be found: make slurm installs them"
        assert "TORCHGAUGE_REQUIRE_SLURM" not in os.environ, said
        pytest.skip(said)
    folder = Path(tempfile.mkdtemp(prefix="tg-slurm-", dir="/tmp"))
    with slurm_cluster(folder) as cluster:
        yield cluster
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def slurm(slurm_of_this_machine: SlurmCluster) -> Iterator[Place]:
    """Slurm, with which a test must leave nothing."""
    cluster = slurm_of_this_machine
    yield Place("slurm", dict(QUICK_JOBS), {"SLURM_CONF": str(cluster.configuration)}, cluster)
    cluster.wait_until_empty()


@pytest.fixture
def local() -> Place:
    """This machine."""
    return Place("local")


@pytest.fixture
def place(request: pytest.FixtureRequest, sandbox: Any) -> Place:
    """The executor that a test is given as parameter; the sandbox's commands can reach it."""
    found: Place = request.getfixturevalue(request.param)
    sandbox.environment.update(found.environment)
    return found
