"""The kernel kills for memory inside a real control group: the row says so, and the next case is measured."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

MIB = 1 << 20
LIMIT = 400 * MIB
ROOT = Path("/sys/fs/cgroup")


def new_group() -> Path:
    """A memory control group of :data:`LIMIT`, of version 2 or 1; skips where none can be made."""
    lines = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    places = {kinds: place.lstrip("/") for _, kinds, place in (line.split(":", 2) for line in lines)}
    name, tried = f"torchgauge-test-{uuid.uuid4().hex[:8]}", []
    for top, limit in (
        (ROOT / "memory" / places.get("memory", ""), "memory.limit_in_bytes"),
        (ROOT / "memory", "memory.limit_in_bytes"),
        (ROOT / places.get("", ""), "memory.max"),
    ):
        group = top / name
        try:
            group.mkdir()
        except OSError as error:
            tried.append(f"{top}: {error.strerror}")
            continue
        try:
            (group / limit).write_text(str(LIMIT), encoding="ascii")
        except OSError as error:
            tried.append(f"{group / limit}: {error.strerror}")
            group.rmdir()
            continue
        return group
    pytest.skip(f"no memory control group can be made here: {'; '.join(tried)}")


@pytest.fixture
def group() -> Iterator[Path]:
    """A group that is empty again when the test is over."""
    made = new_group()
    yield made
    with suppress(OSError):  # what a test left alive in it is told by the sandbox
        made.rmdir()


def test_a_case_that_the_kernel_kills_is_oom_and_the_next_one_is_measured(
    sandbox: Any, ending: Any, group: Path
) -> None:
    """Its own limit is out of the way, so the group's is what the case meets."""
    words = ("slow", "--device", "fake", "--config", "eager", "--models", "hungry,slow_1", "--prefetch", "1")
    script = f'echo $$ > "{group}/cgroup.procs" && exec "$@"'
    store = ("--memory-limit", "1000000000000", "--store", str(sandbox.store_path))
    done = subprocess.run(
        ["bash", "-c", script, "bash", *sandbox.command("run", *words, *sandbox.quick, *store)],
        env=sandbox.environment,
        cwd=sandbox.store_path.parent,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    rows = {row.case.workload.model: row for row in sandbox.assert_ended(done, ending(1))}
    hungry = rows["hungry"]
    assert (hungry.status.value, hungry.cause and hungry.cause.value) == ("oom", "host_limit"), hungry.reason
    assert "killed by the kernel: out of memory" in hungry.reason
    assert rows["slow_1"].status.value == "pass"
    assert not (group / "cgroup.procs").read_text(encoding="ascii").split()
