"""A process that may open too few files: it says so, or goes on, and loses no row."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

pytestmark = pytest.mark.long

SLOW = ("run", "slow", "--device", "fake", "--config", "eager", "--models", "slow_1,slow_2,slow_3")


@pytest.mark.parametrize("most", [8, 12, 16, 20, 24, 32])
def test_too_few_are_said_and_lose_no_row(sandbox: Any, ending: Any, most: int) -> None:
    """Whatever cannot be opened first: no hang, no trace, and with more of them the run can be had."""
    words = (*SLOW, *sandbox.quick, "--store", str(sandbox.store_path))
    done = subprocess.run(
        ["prlimit", f"--nofile={most}", *sandbox.command(*words)],
        env=sandbox.environment,
        cwd=sandbox.store_path.parent,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    print(most, done.returncode, done.stderr[-1500:])
    print(
        [(r.status.value, r.reason) for r in sandbox.rows()]
        if sandbox.store_path.exists() and sandbox.store.run_ids()
        else None
    )
    assert "Traceback" not in done.stderr
