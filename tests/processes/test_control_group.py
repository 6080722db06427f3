"""What limits of memory above a process leave it, from the files that Linux keeps of its control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchgauge.processes import control_group, host_memory
from torchgauge.processes.control_group import memory_left, oom_kills, own_group

GIB = 1 << 30


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of the kernel's."""
    monkeypatch.setattr(control_group, "CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(control_group, "MEMBERSHIP", tmp_path / "membership")
    return tmp_path / "cgroup"


def member(groups: Path, text: str) -> None:
    groups.with_name("membership").write_text(text)


def group(folder: Path, **files: object) -> None:
    """A group with these files, whose dots are double underscores here."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def test_the_tightest_limit_above_a_process_counts(groups: Path) -> None:
    """A container of 8 GiB in a slice of 4, which has 3 of which 1 could be given back: 2 are left."""
    member(groups, "0::/slice/container\n")
    group(groups / "slice", memory__max=4 * GIB, memory__current=3 * GIB)
    (groups / "slice" / "memory.stat").write_text(f"anon 5\ninactive_file {GIB}\n")
    group(groups / "slice" / "container", memory__max=8 * GIB, memory__current=GIB)
    assert own_group() == groups / "slice" / "container"
    assert memory_left() == 2 * GIB


def test_no_limit_is_none(groups: Path) -> None:
    """The word of version 2, and a machine without control groups."""
    assert memory_left() is None
    member(groups, "0::/\n")
    group(groups, memory__max="max", memory__current=GIB)
    assert memory_left() is None


def test_version_1_is_read_in_its_own_folder(groups: Path) -> None:
    """Where a container sees the path of its host, the folder at the top is its own."""
    member(groups, "4:memory:/docker/abc\n1:cpu:/docker/abc\n0::/\n")
    group(groups / "memory", memory__limit_in_bytes=2 * GIB, memory__usage_in_bytes=GIB)
    assert memory_left() == GIB


def test_what_is_used_beyond_its_limit_leaves_nothing(groups: Path) -> None:
    """No negative number of bytes."""
    member(groups, "0::/\n")
    group(groups, memory__max=GIB, memory__current=2 * GIB)
    assert memory_left() == 0
    assert host_memory.available_memory() == 0


def test_kills_are_those_of_the_own_group(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of either version; where no group tells, those of the machine, and 0 where nobody does."""
    monkeypatch.setattr(control_group, "VMSTAT", groups.with_name("vmstat"))
    member(groups, "4:memory:/job\n0::/\n")
    assert oom_kills() == 0
    groups.with_name("vmstat").write_text("pgfault 1\noom_kill 9\n")
    assert oom_kills() == 9
    group(groups / "memory" / "job", memory__oom_control="under_oom 0\noom_kill 2")
    assert oom_kills() == 2
    member(groups, "4:memory:/the/path/of/the/host\n0::/\n")
    group(groups / "memory", memory__oom_control="oom_kill 3")
    assert oom_kills() == 3
    member(groups, "0::/slice\n")
    group(groups / "slice", memory__events="low 0\noom 7\noom_kill 4")
    assert oom_kills() == 4
