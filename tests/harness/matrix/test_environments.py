"""Environments are made by pip of what is locked, found again, and say why they cannot be made."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from waiting import wait_until

import torchgauge
from torchgauge.harness.interpreter.staging import LOCKED, environment_for
from torchgauge.harness.matrix.cells import Cell
from torchgauge.harness.matrix.environments import CellFailedError, Environments, _is

OLD, NEW = Cell("2.9.0", (("torch", "2.9.0"),)), Cell("2.10.0", (("torch", "2.10.0"),))


@pytest.fixture
def made(index, folder):
    """Two versions of torch, and a library that any of them will do for."""
    index("torch", "2.9.0")
    index("torch", "2.10.0")
    index("timm", "1.0.1", needs=("torch",))
    index("timm", "1.0.2", needs=("torch",))
    said: list[str] = []
    return Environments(folder, said.append), said


def imported(python: str, module: str) -> str:
    done = subprocess.run(
        [python, "-c", f"import {module}; print({module}.__version__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_an_environment_holds_what_was_locked_and_is_found_again(made):
    """Torch stays as it was named though pip would bring a newer one; the second time nothing is made."""
    environments, said = made
    lock = environments.lock(OLD, ("timm",), {"timm": "1.0.1"})
    assert lock.pins == ("numpy==1.0", "setuptools==1.0", "timm==1.0.1", "torch==2.9.0")
    (plan, free) = environments.plan((lock,))
    assert "4 packages, at most" in plan
    assert "are free in" in free
    there = environments.make(lock)
    assert there.torch == imported(there.python, "torch") == "2.9.0"
    assert imported(there.python, "timm") == "1.0.1"
    assert any(line.startswith("2.9.0: ready after") for line in said)
    place = Path(there.python).parents[1]
    assert (place / "freeze.txt").read_text() == "".join(f"{pin}\n" for pin in lock.pins)
    said.clear()
    again = Environments(environments.folder, said.append)
    lock = again.lock(OLD, ("timm",), {"timm": "1.0.1"})
    assert again.plan((lock,)) == []
    assert again.make(lock) == there
    assert said == []


def test_the_lock_decides_though_the_index_has_moved_on(made, index):
    """A newer release comes only where the lock is deleted; a lost environment is made of the lock."""
    environments, _ = made
    lock = environments.lock(NEW, ("timm",), {})
    assert "timm==1.0.2" in lock.pins
    index("timm", "1.0.3", needs=("torch",))
    there = environments.make(lock)
    shutil.rmtree(Path(there.python).parents[1])
    again = environments.lock(NEW, ("timm",), {})
    assert again.pins == lock.pins
    assert environments.plan((again,))[0].startswith("2.10.0: 4 packages, at most")
    assert imported(environments.make(again).python, "timm") == "1.0.2"
    for file in (environments.folder / "locks").glob("*.txt"):
        file.unlink()
    assert "timm==1.0.3" in environments.lock(NEW, ("timm",), {}).pins


def test_what_is_on_the_path_of_the_person_is_not_for_an_environment(made, tmp_path, monkeypatch):
    """Neither when pip makes it nor when it is used, also where it was made before there was a mark."""
    environments, _ = made
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "torch").mkdir(parents=True)
    (elsewhere / "torch" / "__init__.py").write_text("__version__ = '2.10.0'\n")
    (elsewhere / "numpy-1.0.dist-info").mkdir()
    (elsewhere / "numpy-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: numpy\nVersion: 1.0\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(elsewhere))
    monkeypatch.setenv("PYTHONHOME", sys.base_prefix)
    lock = environments.lock(OLD, (), {})
    there = environments.make(lock)
    assert there.torch == "2.9.0"
    place = Path(there.python).parents[1]
    assert list(place.glob("lib/*/site-packages/numpy"))  # pip did not find it installed elsewhere
    (place / LOCKED).unlink()
    assert environments.make(lock) == there
    variables = environment_for(there.python)
    assert variables["PYTHONPATH"] == variables["PYTHONHOME"] == ""


def test_a_torch_that_was_exchanged_since_is_not_used(made):
    """What it imports is asked each time, not read from what was written down."""
    environments, _ = made
    lock = environments.lock(OLD, (), {})
    there = environments.make(lock)
    (module,) = Path(there.python).parents[1].glob("lib/*/site-packages/torch/__init__.py")
    module.write_text("__version__ = '2.9.0+other'\n")
    shutil.rmtree(module.parent / "__pycache__", ignore_errors=True)
    with pytest.raises(CellFailedError, match=r"torch is now 2\.9\.0\+other, but 2\.9\.0 was installed"):
        environments.make(lock)


@pytest.mark.parametrize(("first", "second"), [("timm", "einops"), ("timm", ""), ("", "timm")])
def test_another_list_of_suites_does_not_install_torch_again(made, index, first, second):
    """It links the files of an environment with this torch, and holds what its own lock says."""
    environments, _ = made
    index("einops", "1.0")
    index("torch", "2.9.0", bulk=3)
    locks = [environments.lock(OLD, [name] * bool(name), {}) for name in (first, second)]
    before = environments.make(locks[0])
    assert (
        f"files equal to those of {Path(before.python).parents[1]} are linked" in environments.plan(locks)[0]
    )
    after = environments.make(locks[1])
    files = [
        next(Path(one.python).parents[1].glob("lib/*/site-packages/torch/part0")) for one in (before, after)
    ]
    assert files[0].samefile(files[1])
    place = Path(after.python).parents[1]
    assert (place / "freeze.txt").read_text() == "".join(f"{pin}\n" for pin in after.pins)
    assert not list(place.glob(f"lib/*/site-packages/{first or 'einops'}/__init__.py"))
    shutil.rmtree(Path(before.python).parents[1])
    assert imported(after.python, "torch") == "2.9.0"
    assert imported(environments.make(environments.lock(NEW, (), {})).python, "torch") == "2.10.0"


def test_what_cannot_be_linked_is_installed(made, index):
    """An environment is whole though files of the nearest one lie on another file system."""
    environments, _ = made
    before = environments.make(environments.lock(OLD, (), {}))
    torch = next(Path(before.python).parents[1].glob("lib/*/site-packages/torch/__init__.py"))
    (torch.parent / "elsewhere").symlink_to("/proc/sys/kernel/random")
    after = Path(environments.make(environments.lock(OLD, ("timm",), {})).python)
    copy = next(after.parents[1].glob("lib/*/site-packages/torch/__init__.py"))
    assert (imported(str(after), "timm"), imported(str(after), "torch")) == ("1.0.2", "2.9.0")
    assert not copy.samefile(torch)


MAKER = """
import resource
import sys
from pathlib import Path
from torchgauge.harness.matrix.cells import Cell
from torchgauge.harness.matrix.environments import CellFailedError, Environments
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
environments = Environments(Path(sys.argv[1]), lambda line: print(line, flush=True))
lock = environments.lock(Cell("2.10.0", (("torch", "2.10.0"),)), (), {})
try:
    print("made", environments.make(lock).python, flush=True)
except CellFailedError as error:
    sys.exit(error.in_a_line)
"""


def maker(folder: Path, largest_file: int = resource.RLIM_INFINITY) -> subprocess.Popen[str]:
    """Another matrix, in a process of its own, that makes one environment in ``folder``.

    No file of it, or of what it starts, can have more than ``largest_file`` bytes.
    """
    path = os.pathsep.join([str(Path(torchgauge.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", MAKER, str(folder), str(largest_file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


def test_two_processes_make_the_folder_with_its_pip_and_one_environment(index, tmp_path):
    """Nothing is there, and both begin at once: one makes each thing, and both have the same in the end."""
    index("torch", "2.10.0")
    children = [maker(tmp_path / "new") for _ in range(2)]
    said = [child.communicate(timeout=240)[0].splitlines() for child in children]
    assert [child.returncode for child in children] == [0, 0], said
    assert said[0][-1] == said[1][-1]
    assert imported(said[0][-1].removeprefix("made "), "torch") == "2.10.0"
    assert sum("ready after" in line for lines in said for line in lines) == 1


def test_kill_9_while_pip_installs_leaves_nothing_that_is_used(index, folder):
    """Pip ends with its torchgauge, half of an environment is not taken, and the next one makes it whole."""
    index("torch", "2.10.0", bulk=200)
    child = maker(folder)
    place = next(Path(line.split(" in ")[1].strip()) for line in child.stdout if "building" in line)
    parts = "lib/*/site-packages/torch/part*"
    wait_until(
        lambda: list(place.glob(parts)) or child.poll() is not None,
        "pip's first file",
        lambda: time.sleep(0.001),
    )
    child.kill()
    child.communicate(timeout=120)
    assert child.returncode == -signal.SIGKILL
    assert not (place / "made.json").exists()
    again = maker(folder)
    said = again.communicate(timeout=240)[0]
    assert again.returncode == 0, said
    assert "rebuilding environment 2.10.0 in" in said
    assert imported(said.splitlines()[-1].removeprefix("made "), "torch") == "2.10.0"
    assert len(list(place.glob(parts))) == 200


def test_a_disk_that_is_full_while_pip_installs_is_said(index, folder):
    """In pip's words, with what to try; half of the environment is removed, and a next try makes it."""
    index("torch", "2.10.0", bulk=1, size=3 << 20)
    child = maker(folder, largest_file=2 << 20)
    said = child.communicate(timeout=240)[0]
    assert child.returncode == 1, said
    assert "File too large" in said
    assert "--environments DIR" in said
    environments = Environments(folder)
    lock = environments.lock(NEW, (), {})
    assert not (folder / lock.key).exists()
    assert environments.make(lock).torch == "2.10.0"


def test_a_folder_that_cannot_be_written_is_said(made, tmp_path):
    """Each step names the file, and what to try."""
    environments, _ = made
    lock = environments.lock(NEW, (), {})
    (tmp_path / "file").write_text("no folder")
    other = Environments(tmp_path / "file" / "environments")
    for step in (lambda: other.lock(OLD, (), {}), lambda: other.make(lock)):
        with pytest.raises(CellFailedError, match="file/environments cannot be written") as raised:
            step()
        assert "--environments DIR" in raised.value.in_a_line


def test_a_version_that_does_not_exist_names_the_nearest(made):
    """Whatever the words of this pip; no lock is left behind."""
    environments, _ = made
    with pytest.raises(CellFailedError) as raised:
        environments.lock(Cell("2.9.7", (("torch", "2.9.7"),)), (), {})
    assert raised.value.message.startswith("pip finds no torch 2.9.7 for Python 3.")
    assert raised.value.hint == "one of 2.9.0, 2.10.0"
    assert list((environments.folder / "locks").glob("*")) == []


@pytest.mark.parametrize(
    ("asked", "version", "same"),
    [
        ("2.13", "2.13.0+cpu", True),
        ("2.13.0", "2.13", True),
        ("2.13", "2.13.1", False),
        ("2.10", "2.1.0", False),
        ("2.13.0+cpu", "2.13.0", False),
        ("2.13.0+cpu", "2.13.0+cpu", True),
        ("2.13.0", "2.13.0rc1", False),
        ("2.13.0rc1", "2.13.0rc1+cpu", True),
    ],
)
def test_versions_are_compared_as_pip_does(asked, version, same):
    """Zeros at the end say nothing; the build counts only where it was named."""
    assert _is(asked, version) is same


def test_an_index_that_does_not_answer_is_no_missing_version(made, monkeypatch):
    """What pip does not find may be there: it says that the index did not answer, and names no versions."""
    environments, _ = made
    monkeypatch.delenv("PIP_NO_INDEX")
    with socket.socket() as taken:  # bound and not listening: every connection is refused
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{taken.getsockname()[1]}/simple")
        monkeypatch.setenv("PIP_RETRIES", "1")
        with pytest.raises(CellFailedError, match="a package index did not respond") as raised:
            environments.lock(Cell("2.9.7", (("torch", "2.9.7"),)), (), {})
    assert "there are" not in str(raised.value.hint)


def test_a_library_that_wants_another_torch_fails_its_cell(made, index):
    """It cannot change the torch that was named."""
    index("timm", "2.0.0", needs=("torch>=2.10",))
    environments, _ = made
    with pytest.raises(CellFailedError, match=r"conflict.*timm 2.0.0 depends on torch>=2.10"):
        environments.lock(Cell("both", (("torch", "2.9.0"), ("timm", "2.0.0"))), (), {})


def test_a_library_that_is_not_there_for_a_torch_is_named(made, index):
    """Not as a conflict of the one that needs it: the torch may be newer than what is built for it."""
    index("torchvision", "0.24.1")
    index("timm", "1.0.4", needs=("torch", "torchvision"))
    environments, _ = made
    assert "torchvision==0.24.1" in environments.lock(OLD, ("timm",), {"timm": "1.0.4"}).pins
    with pytest.raises(
        CellFailedError, match=r"no torchvision 0\.25\.\*, the version for torch 2\.10"
    ) as raised:
        environments.lock(NEW, ("timm",), {"timm": "1.0.4"})
    assert "available torchvision: 0.24.1" in raised.value.in_a_line


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ImportError('libcudart.so.12: cannot open shared object file')", "libcudart.so.12"),
        ("__version__ = '2.10.0'", "torch is 2.10.0 after the installation, but 2.9.0 was requested"),
    ],
)
def test_a_torch_that_is_not_what_was_asked_for_is_not_used(index, folder, code, said):
    """It is imported once before anything is measured; what it says is the reason of the cell."""
    index("torch", "2.9.0", code=code)
    environments = Environments(folder)
    lock = environments.lock(OLD, (), {})
    with pytest.raises(CellFailedError, match=said):
        environments.make(lock)
    assert not environments.has(lock)


def test_a_full_disk_is_said_before_anything_is_downloaded(made, monkeypatch):
    """What is needed and what is free."""
    environments, _ = made
    lock = environments.lock(NEW, (), {})
    usage = shutil.disk_usage(environments.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10))
    assert "too small for all cells" in environments.plan((lock,))[-1]
    with pytest.raises(CellFailedError, match=r"10\.0 B are free"):
        environments.make(lock)
    assert not (environments.folder / lock.key).exists()


def test_pip_reads_the_configuration_of_the_person(made):
    """An index is where the person's variables say; without them nothing is found."""
    environments, _ = made
    os.environ.pop("PIP_FIND_LINKS")
    with pytest.raises(CellFailedError, match="No matching distribution found"):
        environments.lock(OLD, (), {})
