"""What only Ray does to a job, and what a cluster may be that no run should begin on."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import SLOW, assert_whole, gate, lost, running_worker, started
from ray_cluster import NODES, PYTHONPATH, RayCluster, ray_cluster
from waiting import wait_until

from torchgauge.processes.process_tree import signal_one
from torchgauge.records import Status


@pytest.fixture
def place(ray: Any, sandbox: Any) -> Any:
    """Ray."""
    sandbox.environment.update(ray.environment)
    return ray


@pytest.fixture
def odd_node(ray_of_this_machine: RayCluster, tmp_path: Path) -> Iterator[str]:
    """A node with another torch, by what its metadata says; it and node one have ``mixed``."""
    folder = tmp_path / "odd" / "torch-9.9.9.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9.9\n")
    path = f"{folder.parent}{os.pathsep}{PYTHONPATH}"
    ray_of_this_machine.start_node("odd", {"odd": 1, "mixed": 1}, PYTHONPATH=path)
    yield "odd"
    ray_of_this_machine.kill("odd")


def ended(command: Any, code: int) -> str:
    """What ``command`` said until it ended with ``code``."""
    _, said = command.communicate(timeout=280)
    assert command.returncode == code, said
    return said


def test_both_nodes_measure_and_rows_say_which(sandbox: Any, place: Any) -> None:
    """Three jobs, of which each node has one at once; logs come from there, and no folder stays."""
    done = sandbox.measure(*SLOW, *place.words(groups_per_job="2"))
    assert done.returncode == 0, done.stderr
    rows = assert_whole(sandbox)
    facts = [dict(row.facts) for row in rows]
    assert {each["job"] for each in facts} == {f"ray job part-{number}" for number in (1, 2, 3)}
    assert {each["attempt"] for each in facts} == {1}
    assert {each["node"] for each in facts} <= {"one", "two"}
    assert all((sandbox.folder().path / row.log).is_file() for row in rows)


def test_a_node_that_dies_costs_no_row(sandbox: Any, place: Any) -> None:
    """Its job is started again on the other node, without what was measured; nothing is there twice."""
    cluster, opened = place.cluster, gate(sandbox, 2)
    command = started(sandbox, place, "--prefetch", "1")
    sandbox.wait_for_rows(2)
    name = cluster.node_of(running_worker(sandbox))
    cluster.kill(name)
    try:
        (opened / "open").touch()
        said = ended(command, 0)
        rows = assert_whole(sandbox)
        assert sorted(dict(row.facts)["attempt"] for row in rows) == [1, 1, 1, 1, 1, 2]
        assert "was lost: its agent died: " in said
        assert f"(node {name})" in said
    finally:
        cluster.start_node(name, NODES[name])


@pytest.mark.full  # minutes, as it waits for the cluster's own deadlines
def test_a_node_that_comes_back_replaces_nothing(sandbox: Any, place: Any) -> None:
    """Its network was cut, by halting Ray there; its worker went on, and what that measured is nobody's."""
    cluster, opened = place.cluster, gate(sandbox, 1)
    command = started(sandbox, place, "--prefetch", "1", lost_s="15")
    sandbox.wait_for_rows(1)
    worker = running_worker(sandbox)
    node = cluster.node_of(worker)
    halted = cluster.of_ray(node)
    for pid in halted:
        signal_one(pid, signal.SIGSTOP)
    try:
        journal = sandbox.folder().journal_path
        wait_until(lambda: "was lost: its agent" in journal.read_text(), "the loss of the agent")
        (opened / "open").touch()  # both attempts can go on
        wait_until(
            lambda: not Path(f"/proc/{worker}").exists() or command.poll() is not None, f"the end of {worker}"
        )
        for pid in halted:
            signal_one(pid, signal.SIGCONT)
        said = ended(command, 0)
    finally:
        cluster.kill(node)
        cluster.start_node(node, NODES[node])
    rows = assert_whole(sandbox)
    assert "its agent has not answered for 15 s" in said, said
    assert sorted(dict(row.facts)["attempt"] for row in rows) == [1, 1, 1, 1, 1, 2]


@pytest.mark.full  # minutes, as it waits for the cluster's own deadlines
def test_a_node_with_another_torch_is_refused(sandbox: Any, place: Any, odd_node: str) -> None:
    """Visibly; where others have the device they measure, else the cases say why nobody did."""
    done = sandbox.measure(*SLOW, *place.words(resource="mixed"))
    assert done.returncode == 0, done.stderr
    assert f"the agent of fake on node {odd_node} is refused: torch 9.9.9 instead of" in done.stderr
    assert {dict(row.facts)["node"] for row in assert_whole(sandbox)} == {"one"}
    shutil.rmtree(sandbox.store_path)
    alone = sandbox.measure(*SLOW, *place.words(resource="odd"))
    assert alone.returncode == 3, alone.stderr
    assert sandbox.store_path.exists(), alone.stderr
    rows = lost(assert_whole(sandbox))
    assert len(rows) == 6
    assert all("no agent may measure fake: odd: torch 9.9.9 instead of" in row.reason for row in rows)


def test_what_no_node_has_is_said_at_once(sandbox: Any, place: Any) -> None:
    """Ray itself would wait for ever; nothing is written."""
    done = sandbox.measure(*SLOW, *place.words(resource="gold"))
    assert done.returncode == 3
    assert "no node of the Ray cluster has 'gold': it has 2 cpu, 2 fake" in done.stderr
    assert sandbox.assert_accounted("") == []
    assert not sandbox.store_path.exists()


def test_a_wrong_or_missing_token_is_refused(sandbox: Any, place: Any) -> None:
    """Nothing is written."""
    wrong = sandbox.measure(*SLOW, *place.words(), RAY_AUTH_TOKEN="0" * 64)
    assert wrong.returncode == 3
    assert "refused the token" in wrong.stderr
    none = sandbox.measure(*SLOW, *place.words(), RAY_AUTH_TOKEN="", HOME=str(sandbox.temporary))
    assert none.returncode == 3
    assert "no token for the Ray cluster" in none.stderr
    off = sandbox.measure(*SLOW, *place.words(authentication="none"), RAY_AUTH_TOKEN="")
    assert off.returncode == 3
    assert "wants a token" in off.stderr
    assert not sandbox.store_path.exists()


@pytest.mark.full  # minutes, as it waits for the cluster's own deadlines
def test_an_address_that_does_not_answer_is_said(sandbox: Any, place: Any) -> None:
    """Nobody listens; or somebody who says nothing."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        closed = sandbox.measure(*SLOW, *place.words(address=address))
        silent.listen(8)
        mute = sandbox.measure(*SLOW, *place.words(address=address, answer_s="1"))
    assert (closed.returncode, mute.returncode) == (3, 3)
    assert f"no Ray cluster answers at {address}" in closed.stderr
    assert f"the Ray cluster at {address}" in mute.stderr
    assert "answer" in mute.stderr
    nonsense = sandbox.measure(*SLOW, *place.words(address="here"))
    assert nonsense.returncode == 2
    assert not sandbox.store_path.exists()


@pytest.mark.full  # half a minute
def test_two_drivers_of_one_run(sandbox: Any, place: Any) -> None:
    """The second is refused while the first one lives."""
    opened = gate(sandbox, 1)
    command = started(sandbox, place)
    sandbox.wait_for_rows(1)
    second = sandbox.run("run", "--resume", str(sandbox.folder().path), *place.words())
    assert second.returncode == 2, second.stderr
    (opened / "open").touch()
    ended(command, 0)
    assert_whole(sandbox)


def test_a_killed_driver_leaves_no_process_on_the_nodes(sandbox: Any, place: Any) -> None:
    """Agents and workers end by themselves; the resumed run has one row of each case."""
    opened = gate(sandbox, 2)
    command = started(sandbox, place)
    sandbox.wait_for_rows(2)
    assert place.cluster.agents()
    command.kill()
    command.communicate(timeout=120)
    place.cluster.wait_until_empty()
    assert sandbox.survivors() == []
    (opened / "open").touch()
    again = sandbox.run("run", "--resume", str(sandbox.folder().path), *place.words())
    assert again.returncode == 0, again.stderr
    assert {row.status for row in assert_whole(sandbox)} == {Status.PASS}
    assert list(place.cluster.temporary.glob("torchgauge-spool-*")) == []


@pytest.mark.full  # minutes, as it waits for the cluster's own deadlines
def test_a_head_that_dies_ends_the_run_in_time_and_keeps_its_rows(sandbox: Any, tmp_path: Path) -> None:
    """Ray's own get() would wait for ever. This cluster has no token, which has to be said."""
    gate(sandbox, 2)
    folder = Path(f"/tmp/tg-ray-{os.getpid()}")
    folder.mkdir()
    try:
        with ray_cluster(folder, {"only": {"fake": 1}}, PYTHONPATH, token=False) as cluster:
            place = _Words(cluster.address)
            sandbox.environment["RAY_AUTH_TOKEN"] = "0" * 64
            refused = sandbox.measure(*SLOW, *place.words())
            assert refused.returncode == 3
            assert "has no token authentication" in refused.stderr
            assert not sandbox.store_path.exists()
            command = started(sandbox, place, authentication="none")
            sandbox.wait_for_rows(2)
            cluster.kill("head")
            ended(command, 3)
            wait_until(lambda: not sandbox.marked(), "the end of every process")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    rows = assert_whole(sandbox)
    assert [row.status for row in rows].count(Status.PASS) == 2
    assert len(lost(rows)) == 4


class _Words:
    """As a place, of a cluster of a test's own."""

    def __init__(self, address: str) -> None:
        self.options = {"address": address, "poll_s": "0.2", "lost_s": "10", "answer_s": "5"}

    def words(self, **more: str) -> list[str]:
        pairs = (self.options | more).items()
        return [
            "--executor",
            "ray",
            *(w for key, value in pairs for w in ("--executor-option", f"{key}={value}")),
        ]
