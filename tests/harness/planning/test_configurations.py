"""Named configurations: strict YAML, and processes that really run as they say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchgauge.devices.pinning import PinningError, pin
from torchgauge.errors import DataFileError, UnknownNameError
from torchgauge.harness.planning.configurations import (
    bundled,
    configuration,
    known_configurations,
    load_configurations,
)
from torchgauge.records import Case, DeviceTarget, Workload
from torchgauge.records.placement import CpuListError, Placement, format_cpus, parse_cpus, placement_of

GOOD = """configurations:
  - name: tuned
    doc: ours
    backend: inductor
    options: {max_autotune: true, cpp.threads: 2}
    env: {OMP_NUM_THREADS: "1"}
    threads: 1
    interop_threads: 1
    pinning: {cpus: "0"}
"""


KEYS = {
    "eager": "c67438db9bf90c8b",
    "inductor": "47d1de6269f56a0b",
    "aot_eager": "2d21c75c7104f5da",
    "inductor-max-autotune": "5c2ccd6590094e05",
    "inductor-reduce-overhead": "a95440dfcda3e152",
    "inductor-dynamic": "f3951c37b380788c",
    "inductor-cpp-wrapper": "00b642b8fc55c865",
    "inductor-freezing": "150ad2d2e68da51d",
    "eager-1thread": "e01e4bb00cfbc407",
    "inductor-1thread": "5cb7f06cdc43ec5f",
    "eager-physical": "61b73318b9e30895",
    "inductor-physical": "1d8599b92e6d62bb",
}
"""Case keys of toy/mlp on the host as they were before backends were plugins."""


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_configurations_becomes_records(tmp_path: Path) -> None:
    """Every field arrives, sorted where order means nothing."""
    found = load_configurations(written(tmp_path, GOOD))["tuned"].configuration
    assert found.options == (("cpp.threads", 2), ("max_autotune", True))
    assert placement_of(found) == Placement((("OMP_NUM_THREADS", "1"),), 1, 1, "0", None)
    assert found.compiled


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("backend: inductor", "backnd: inductor", 4, "did you mean backend"),
        ("backend: inductor", "backend: inductor\n    mode: max-autotune", 6, "a mode or options, not both"),
        ("backend: inductor", "backend: eager", 5, "backend eager: option cpp.threads: unknown field"),
        ('cpus: "0"', 'cpus: "3-1"', 9, "not a list of CPUs"),
        (
            "backend: inductor\n    options: {max_autotune: true, cpp.threads: 2}",
            "backend: eager\n    mode: max-autotune",
            5,
            "eager takes no mode",
        ),
    ],
)
def test_a_mistake_names_file_line_and_field(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    """What is wrong, where, and what to try."""
    path = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(DataFileError) as caught:
        load_configurations(path)
    assert f"{path}:{line}" in str(caught.value)
    assert words in f"{caught.value} {caught.value.hint}"


def test_names_of_ones_own_stand_beside_the_bundled_ones(tmp_path: Path) -> None:
    """A file adds names; it cannot change what a bundled name means, and an unknown name is suggested."""
    path = written(tmp_path, GOOD)
    assert set(known_configurations(str(path))) == {*bundled(), "tuned"}
    assert configuration("tuned", str(path)).threads == 1
    with pytest.raises(UnknownNameError, match="did you mean inductor"):
        configuration("inductr")
    with pytest.raises(DataFileError, match="one of torchgauge's own"):
        known_configurations(str(written(tmp_path, GOOD.replace("tuned", "inductor"))))
    with pytest.raises(DataFileError, match="cannot be read"):
        known_configurations(str(tmp_path / "absent.yaml"))


def test_keys_of_bundled_configurations_never_change() -> None:
    """Stored results of years are found by them."""
    found = {
        name: Case(Workload("toy", "mlp"), configuration(name), DeviceTarget("cpu")).key for name in KEYS
    }
    assert found == KEYS


def test_lists_of_cpus_are_read_and_written() -> None:
    """``0-3,8`` is five CPUs, whatever the order; anything else is refused."""
    assert parse_cpus("8,0-3, 2") == (0, 1, 2, 3, 8)
    assert format_cpus((3, 1, 2, 8, 9)) == "1-3,8-9"
    for text in ("", "a", "3-1", "1,,2", "-1"):
        with pytest.raises(CpuListError):
            parse_cpus(text)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system binds no process to CPUs")
def test_pinning_is_bound_to_what_the_machine_has(tmp_path: Path) -> None:
    """A node and hardware threads are read from the system's files; what is not there is said."""
    allowed = sorted(os.sched_getaffinity(0))
    first = allowed[0]
    node = tmp_path / "node" / "node0"
    node.mkdir(parents=True)
    (node / "cpulist").write_text(f"{format_cpus(allowed)}\n")
    for cpu in allowed:  # one core with all CPUs as its hardware threads
        topology = tmp_path / "cpu" / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(format_cpus(allowed))
    try:
        facts = pin(Placement(cpus="physical", numa=0), tmp_path)
        assert facts == {"cpus": str(first), "numa_nodes": "0"}
        assert os.sched_getaffinity(0) == {first}
        os.sched_setaffinity(0, allowed)
        assert pin(Placement(cpus=str(first)), tmp_path)["cpus"] == str(first)
        with pytest.raises(PinningError, match="CPU 4095 is not among"):
            pin(Placement(cpus="4095"), tmp_path)
        with pytest.raises(PinningError, match="no NUMA node 7"):
            pin(Placement(numa=7), tmp_path)
    finally:
        os.sched_setaffinity(0, allowed)
