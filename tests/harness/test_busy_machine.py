"""The whole path on a machine that others use: what a row keeps, and what it stands for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from torchgauge.harness.worker.series import CONTENDED
from torchgauge.records import Modifier, Status
from torchgauge.results.environments import environments_of

SPIN = "import os; os.sched_setaffinity(0, {core})\nprint(flush=True)\nwhile True: pass"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts who waits for a core")
def test_a_row_measured_beside_a_busy_neighbour_says_so_or_leaves_its_blocks_out(sandbox, ending) -> None:
    """On one core for two blocks are lost: all are kept, and what counts is clean, or the row is marked."""
    mine = os.sched_getaffinity(0)
    core = {min(mine)}
    neighbour = subprocess.Popen([sys.executable, "-c", SPIN.format(core=core)], stdout=subprocess.PIPE)
    try:
        assert neighbour.stdout is not None
        neighbour.stdout.readline()  # it spins from here on
        os.sched_setaffinity(0, core)
        done = sandbox.measure("toy", "--models", "sum", "--device", "fake", "--config", "eager")
    finally:
        os.sched_setaffinity(0, mine)
        neighbour.kill()
        neighbour.communicate()
    (row,) = sandbox.assert_ended(done, ending(0))
    assert row.status is Status.PASS
    found = {each.metric: each for each in row.measurements}
    latency, left_out = found["latency"], found.get("latency_contended")
    shares = dict(zip(found["contention"].blocks, found["contention"].samples, strict=True))
    assert max(shares.values()) > CONTENDED
    assert sorted(latency.blocks + (left_out.blocks if left_out else ())) == sorted(shares)
    if left_out is None:
        assert Modifier.UNSTEADY in row.modifiers
        assert "no interval" in row_fact(row) or "other processes used one of its cores" in row_fact(row)
    else:
        assert max(shares[block] for block in latency.blocks) <= CONTENDED
        assert min(shares[block] for block in left_out.blocks) > CONTENDED


def row_fact(row) -> str:
    """Why the row is unsteady."""
    return str(dict(row.facts)[Modifier.UNSTEADY.value])


def test_memory_settings_reach_the_host_and_a_users_own_stay(sandbox) -> None:
    """Both are part of where a number was measured: a number before them is not taken for one after."""
    words = ("toy", "--models", "noop", "--device", "fake", "--config", "eager", "--quiet-wait", "0")
    arguments = ("run", *words, *sandbox.quick, "--store", str(sandbox.store_path))
    done = sandbox.run(*arguments, MALLOC_MMAP_THRESHOLD_="1000000")
    assert done.returncode == 0, done.stderr
    (row,) = sandbox.rows()
    identity = dict(environments_of(sandbox.store, row.run_id)[row.environment_id].identity)
    assert identity["env.MALLOC_MMAP_THRESHOLD_"] == "1000000"
    assert identity["env.MALLOC_TRIM_THRESHOLD_"] == str(1 << 32)
