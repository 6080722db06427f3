"""A command that may open too few files says so, however few they are, and loses no row."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest

from torchgauge.records import Status

SLOW = ("slow", "--device", "fake", "--config", "eager", "--models", "slow_1,slow_2")
SAID = "Too many open files"


@pytest.mark.parametrize("most", [8, 14, *(pytest.param(each, marks=pytest.mark.full) for each in (12, 16))])
def test_too_few_are_said_and_lose_no_row(sandbox: Any, ending: Any, most: int) -> None:
    """It ends at once: with rows of the infrastructure, or with a run that goes on where there are more.

    Rows may be all that it could write: how their tables are made is said then.
    """
    words = ("run", *SLOW, *sandbox.quick, "--store", str(sandbox.store_path))
    done = subprocess.run(
        ["prlimit", f"--nofile={most}", *sandbox.command(*words)],
        env=sandbox.environment,
        cwd=sandbox.store_path.parent,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    (info,) = sandbox.store.runs()
    if info.state.value == "complete":
        if "tables cannot be written: Too many open files" in done.stderr:  # as few as are just too few
            words = re.search(r"ulimit -n 1024, then: torchgauge (results publish .*)", done.stderr)
            assert words is not None, done.stderr
            sandbox.assert_ended(sandbox.run(*words[1].split()), ending(0))
        rows = sandbox.assert_ended(done, ending(3))
        assert {row.status for row in rows} == {Status.INFRA}
        assert all(SAID in row.reason for row in rows), rows[0].reason
        return
    rows = sandbox.assert_ended(done, ending(3, SAID, state="interrupted"))
    again = sandbox.run("run", "--resume", str(sandbox.folder().path))
    assert sandbox.assert_ended(again, ending(0))[: len(rows)] == rows
