"""Kept compile caches: whose they are, what goes, what stays, and what is taken over."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from torchgauge.errors import InfrastructureError
from torchgauge.harness import compile_cache
from torchgauge.harness.compile_cache import (
    VARIABLE,
    CacheUnusableError,
    builds,
    chosen_folder,
    default_folder,
    folder_name,
    identity_of,
    make_private,
    open_kept,
    remove,
)
from torchgauge.records import Configuration, Environment

INDUCTOR = Configuration("inductor", "inductor")
HERE = Environment(
    "cpu",
    (
        ("compiler.cxx", "g++ 12"),
        ("cpu.model", "A"),
        ("env.TORCH_SOMETHING", "1"),
        ("host.memory_bytes", 1),
        ("package.timm", "1.0"),
        ("torch.threads", 2),
        ("torch.version", "2.13.0"),
    ),
)


def of(**changes: str) -> Environment:
    """The environment with facts replaced; ``_`` in a name stands for a dot."""
    named = {name.replace("_", "."): value for name, value in changes.items()}
    return replace(HERE, identity=tuple(sorted({**dict(HERE.identity), **named}.items())))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder for kept caches that is not there yet."""
    return tmp_path / "kept"


def fill(root: Path, environment: Environment, now: float, size: int = 1000) -> str:
    """Use the caches of a build once, with an entry of ``size`` bytes; the build's key."""
    kept = open_kept(root, environment, now)
    entry = kept.folder / folder_name(INDUCTOR) / "ab" / f"entry-{now:g}.so"
    entry.parent.mkdir(parents=True, exist_ok=True)
    entry.write_bytes(b"x" * size)
    os.utime(entry, (now, now))
    kept.close()
    return kept.key


@pytest.mark.parametrize(
    "environment",
    [
        of(torch_version="2.14.0"),
        of(compiler_cxx="g++ 13"),
        of(cpu_model="B"),
    ],
)
def test_another_build_has_other_caches(root, environment) -> None:
    """Torch, the compiler, the processor and the device tell builds apart."""
    assert fill(root, HERE, 1.0) != fill(root, environment, 2.0)


@pytest.mark.parametrize("changes", [{"package_timm": "1.1"}, {"torch_threads": "1"}, {"env_X": "y"}])
def test_what_binaries_do_not_depend_on_is_left_out(root, changes) -> None:
    """A new timm, another number of threads or a variable leave the build's caches as they are."""
    assert fill(root, HERE, 1.0) == fill(root, of(**changes), 2.0)


def test_hidden_instructions_make_another_build(tmp_path) -> None:
    """Two machines of one model of processor, one of which hides instructions, do not share binaries."""
    files = [tmp_path / name for name in "ab"]
    for file, flags in zip(files, ("fpu avx2 avx512f", "fpu avx2"), strict=True):
        file.write_text(f"model name\t: A\nflags\t\t: {flags}\n")
    assert identity_of(HERE, files[0]) != identity_of(HERE, files[1])


def test_the_two_newest_builds_stay(root) -> None:
    """Opening a third build removes the one that was not used for longest."""
    keys = [fill(root, of(torch_version=str(n)), float(n)) for n in range(3)]
    assert [build.key for build in builds(root)] == [keys[2], keys[1]]


def test_the_oldest_entries_go_where_all_take_too_much(root) -> None:
    """Of one build the entries unused for longest are removed until the rest fits."""
    for now in (1.0, 2.0, 3.0):
        fill(root, HERE, now, size=4000)
    kept = open_kept(root, HERE, 4.0, limit_bytes=9000)
    left = sorted(file.name for file in kept.folder.rglob("*.so"))
    assert left == ["entry-2.so", "entry-3.so"]
    assert kept.removed == 4000
    kept.close()


def test_a_folder_that_others_may_write_to_is_not_used(root) -> None:
    """What lies in it would be executed."""
    root.mkdir()
    root.chmod(0o777)
    with pytest.raises(CacheUnusableError, match="chmod go-w"):
        open_kept(root, HERE, 1.0)


def test_a_full_disk_leaves_no_half_file(root, tmp_path, monkeypatch) -> None:
    """What came is whole, and what did not fit is not there under another name."""
    kept = open_kept(root, HERE, 1.0)
    fresh = tmp_path / "fresh" / folder_name(INDUCTOR)
    fresh.mkdir(parents=True)
    (fresh / "one.so").write_text("new")

    def link(_source: Path, _target: Path) -> None:
        raise OSError(errno.EXDEV, "another file system")

    def copy(_source: Path, target: Path) -> None:
        Path(target).write_text("ne")
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "link", link)
    monkeypatch.setattr(shutil, "copy2", copy)
    assert kept.adopt(tmp_path / "fresh", [INDUCTOR]) == 0
    assert list((kept.folder / folder_name(INDUCTOR)).iterdir()) == []
    kept.close()


def test_a_place_that_became_read_only_is_listed_and_not_used(root, monkeypatch) -> None:
    """Its locks cannot be taken, so nothing in it is removed."""
    fill(root, HERE, 1.0)

    def no_lock(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "read-only file system")

    monkeypatch.setattr(compile_cache, "_lock_file", no_lock)
    (build,) = builds(root)
    assert build.in_use
    assert remove(root, [build]) == 0
    assert build.folder.exists()
    with pytest.raises(CacheUnusableError, match="read-only"):
        open_kept(root, HERE, 2.0)


def test_two_definitions_of_one_name_have_two_folders() -> None:
    """A file of configurations may change what a name means from one night to the next."""
    changed = replace(INDUCTOR, options=(("max_autotune", True),))
    assert folder_name(INDUCTOR) != folder_name(changed)
    assert folder_name(INDUCTOR).startswith("inductor-")


def test_a_person_says_where(monkeypatch, tmp_path) -> None:
    """The flag comes before the variable, the variable before the user's cache; ``none`` keeps none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    assert chosen_folder(None) == str(tmp_path / "torchgauge" / "compile")
    monkeypatch.setenv(VARIABLE, "none")
    assert chosen_folder(None) is None
    assert chosen_folder(str(tmp_path / "mine")) == str(tmp_path / "mine")
    assert chosen_folder("none") is None


def test_a_relative_cache_of_the_user_is_ignored(monkeypatch, tmp_path) -> None:
    """As the XDG specification requires; whatever the home is, the folder is an absolute one."""
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert default_folder("headers") == tmp_path / ".cache" / "torchgauge" / "headers"
    monkeypatch.setenv("HOME", "home")
    assert default_folder("headers").is_absolute()


@pytest.mark.parametrize("planted", [None, "link", "open"])
def test_a_user_without_a_home_has_a_private_folder_among_temporary_files(
    monkeypatch, tmp_path, planted
) -> None:
    """What somebody else has put there is refused by its name."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"torchgauge-{os.geteuid()}"
    if planted is None:
        assert default_folder() == folder / "compile"
        assert folder.stat().st_mode & 0o777 == 0o700
        return
    if planted == "link":
        folder.symlink_to(tmp_path)
    else:
        folder.mkdir()
        folder.chmod(0o777)
    with pytest.raises(InfrastructureError, match=f"{folder} is not a folder that only you can access"):
        default_folder()


def no_home() -> Path:
    """Raise what Python raises for a user without HOME and without an entry among the users."""
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.parametrize(
    ("name", "mode", "usable"),
    [("cache", 0o777, False), ("cache", 0o1777, True), ("cache/torchgauge", 0o777, False)],
)
def test_a_folder_that_others_may_replace_is_not_used(tmp_path, name, mode, usable) -> None:
    """Whoever may write to the folder above puts another in its place, unless the sticky bit forbids it."""
    folder = tmp_path / name
    folder.mkdir(parents=True)
    folder.chmod(mode)
    root = tmp_path / "cache" / "torchgauge" / "headers"
    if usable:
        make_private(root)
        return
    with pytest.raises(CacheUnusableError, match=f"{folder} is writable by other users"):
        make_private(root)


def test_a_folder_that_cannot_be_made_is_named(tmp_path) -> None:
    """With the command that fails alike."""
    (tmp_path / "cache").write_text("")
    root = tmp_path / "cache" / "torchgauge" / "headers"
    with pytest.raises(CacheUnusableError, match=f"^{root} cannot be made: Not a directory; try: mkdir"):
        make_private(root)
