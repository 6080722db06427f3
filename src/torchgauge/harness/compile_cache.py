"""Compile caches that outlive a run: one folder for each torch build and kind of machine.

Why a folder of its own for every build: inductor's keys do not hold everything that its binaries depend on
(kernels are built for the processor at hand, whatever it is). What is kept is native code that later runs
execute, so a folder that others may write to is not used.

Standard library, records and processes only: the worker names its folders with :func:`folder_name`.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from torchgauge.devices.native_isa import instruction_sets
from torchgauge.errors import UsageError
from torchgauge.processes.passed_variables import job_folder
from torchgauge.records import Configuration, Environment, Outcome, Scalar, digest, to_plain
from torchgauge.user_cache import user_cache

VARIABLE = "TORCHGAUGE_COMPILE_CACHE"
"""Environment variable with the folder of kept caches; ``--compile-cache`` comes before it."""
NONE = "none"
LIMIT_BYTES = 10 * (1 << 30)
"""What all builds together may take before the entries that were not used for longest go."""
MOST_BUILDS = 2
ABOUT = "about.json"
FACT = "compile_cache"
"""Name of the fact on a compiled row that says where its code came from."""
KEPT, EMPTY = "kept", "empty"
NEW = f"{KEPT}, new to it"
"""The fact of a row whose code was not in the kept cache, and is now."""
PARTS = "compiler_parts"
"""The fact that names the third-party packages whose code took part in a compilation."""
UNTOLD = "not known: "
"""Beginning of this fact if a part comes from no file: the cache is then not kept after the run."""
_LEFT_OUT = ("host", "package", "extension", "env")
"""Heads of facts that inductor's keys hold, or that its binaries do not depend on."""
_COUNTS = ("cores", "quota", "governor", "threads", "interop_threads", "memory_bytes")
"""Beginnings of facts that say how much of a machine there is, not what it is."""
_LATEST = 253402300800.0
"""The year 10000, in seconds since the epoch: later moments are damage."""
_LIBC = "host.libc"
_ENTRIES = ("fxgraph", "aotautograd")
"""Folders of inductor's in which several entries may lie under one key."""


class CacheUnusableError(Exception):
    """The folder of kept caches cannot be used; the message says why."""


def default_folder(name: str = "compile") -> Path:
    """Return the default folder of the kind of cache that ``name`` names.

    In a job of GitHub Actions that is the job's own folder.
    """
    job = job_folder()
    return (job.absolute() / "cache" / "torchgauge" if job else user_cache()) / name


def chosen_folder(named: str | None) -> str | None:
    """The folder of kept caches that ``named``, the variable or the default says; None for ``none``.

    Raises :class:`UsageError` where a file is there.
    """
    text = named or os.environ.get(VARIABLE) or str(default_folder())
    if text == NONE:
        return None
    folder = Path(text).expanduser().absolute()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--compile-cache {text}: this is a file", hint="pass a folder, or none")
    return str(folder)


def folder_name(configuration: Configuration) -> str:
    """The folder of ``configuration`` within a cache: two definitions of one name have two."""
    return f"{configuration.name}-{digest(to_plain(configuration))[:8]}"


def of_parts(kept: str, facts: Mapping[str, Scalar]) -> str:
    """Return the folder below ``kept`` for code that was made with the parts in ``facts``; "" for none."""
    parts = str(facts.get(PARTS, ""))
    if not kept or parts.startswith(UNTOLD):
        return ""
    return f"{kept}/with-{digest(parts)[:12]}" if parts else kept


def identity_of(environment: Environment, cpuinfo: Path = Path("/proc/cpuinfo")) -> dict[str, Scalar]:
    """What a cache's binaries depend on: torch, Python, the compiler, the processor and the device.

    Of the device everything that its session says of itself counts: model and driver, as far as known.
    """
    found = {
        name: value
        for name, value in environment.identity
        for head, _, rest in [name.partition(".")]
        if name == _LIBC or (head not in _LEFT_OUT and not rest.startswith(_COUNTS))
    }
    # A digest of the processor's instruction sets, which a virtual machine may hide; "" where unknown.
    family, sets = instruction_sets(cpuinfo)
    return {**found, "device": environment.device, "instructions": digest(sorted(sets)) if family else ""}


@dataclass(frozen=True)
class Build:
    """One build's caches as they lie on disk; ``used_at`` in seconds since the epoch."""

    key: str
    folder: Path
    about: dict[str, Any]
    bytes: int
    used_at: float
    in_use: bool


@dataclass
class KeptCache:
    """The caches of one build, locked against pruning until :meth:`close`."""

    folder: Path
    key: str
    removed: int = 0
    _lock: IO[str] | None = field(default=None, repr=False)

    def close(self) -> None:
        """Let others prune it again."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def adopt(
        self,
        fresh: Path,
        configurations: Iterable[Configuration],
        *,
        heal: bool = False,
        into: str = "",
    ) -> int:
        """Take over the entries that ``fresh``, a cache that began empty, has for ``configurations``.

        They go below the folder ``into``, by default :attr:`folder`. Returns the number of copied files.
        Files that exist there stay, unless ``heal`` is set because they may be damaged. A full disk ends the
        copying and is not an error: every copied file is whole.
        """
        taken = 0
        with suppress(OSError):
            for name in sorted({folder_name(each) for each in configurations}):
                for source in _files(fresh / name):
                    target = Path(into or self.folder) / name / source.relative_to(fresh / name)
                    if heal:
                        _forget_others(fresh / name, source, target)
                    elif target.exists():
                        continue
                    _link_or_copy(source, target)
                    taken += 1
        return taken


def open_kept(
    root: Path, environment: Environment, now: float, *, limit_bytes: int = LIMIT_BYTES
) -> KeptCache:
    """The caches of the build that ``environment`` describes, below ``root``, after old ones were pruned.

    Raises :class:`CacheUnusableError` where they cannot be written, or others could have written to them.
    """
    identity = identity_of(environment)
    key = digest(sorted((name, str(value)) for name, value in identity.items()))
    folder = root / key
    try:
        make_private(root)
        removed = prune(root, keep=key, limit_bytes=limit_bytes, most_builds=MOST_BUILDS)
        lock = _lock_file(root, key).open("a", encoding="utf-8")
        fcntl.flock(lock, fcntl.LOCK_SH)
        folder.mkdir(exist_ok=True, mode=0o700)
        about = folder / ABOUT
        text = json.dumps({"identity": identity, "used_at": now}, indent=1, sort_keys=True)
        aside = folder / f".{ABOUT}.{os.getpid()}"
        aside.write_text(text + "\n", encoding="utf-8")
        aside.replace(about)
    except OSError as error:
        raise CacheUnusableError(f"{root}: {error.strerror or error}") from error
    return KeptCache(folder, key, removed, lock)


def make_private(root: Path) -> None:
    """Create the folder ``root`` and the folder above it, which may be torchgauge's own.

    Raises :class:`CacheUnusableError` where another user owns ``root`` or torchgauge's own folder above it,
    may write to ``root``, or may replace either folder.
    """
    try:
        root.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        root.mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise CacheUnusableError(f"{root} cannot be made: {error.strerror}; try: mkdir -p {root}") from error
    own = (root, root.parent) if root.parent.name.startswith("torchgauge") else (root,)
    for folder in (*own, own[-1].parent):
        facts = folder.stat()
        if folder in own and {facts.st_uid, folder.lstat().st_uid} != {os.geteuid()}:
            raise CacheUnusableError(f"{folder} belongs to another user, and its files would be executed")
        sticky = folder != root and facts.st_mode & stat.S_ISVTX
        if facts.st_mode & (0o022 if folder == root else 0o002) and not sticky:
            raise CacheUnusableError(
                f"{folder} is writable by other users, and its files would be executed; "
                f"try: chmod go-w {folder}"
            )


def builds(root: Path) -> list[Build]:
    """The builds that have caches below ``root``, the one used last first."""
    found = []
    for about in root.glob(f"*/{ABOUT}"):
        folder = about.parent
        said, used_at = _read_about(about)
        with _locked(root, folder.name) as free:
            in_use = not free
        size = sum(size for _, size in map(_used_and_size, _files(folder)))
        found.append(Build(folder.name, folder, said, size, used_at, in_use))
    return sorted(found, key=lambda build: (-build.used_at, build.key))


def prune(root: Path, *, keep: str, limit_bytes: int, most_builds: int) -> int:
    """Remove builds beyond the newest ``most_builds`` (``keep`` among them), then entries beyond the limit.

    Bytes removed. Of the rest the files that were read or written longest ago go first. A build that a run
    uses now is left as it is.
    """
    known, removed = builds(root), 0
    order = sorted(known, key=lambda build: build.key != keep)  # stable: the others by their last use
    left = []
    room = most_builds if any(build.key == keep for build in known) else most_builds - 1
    for number, build in enumerate(order):
        if number < room or build.in_use:
            left.append(build)
        else:
            removed += remove(root, [build])
    excess = sum(build.bytes for build in left) - limit_bytes
    if excess > 0:
        removed += _trim(root, left, excess)
    return removed


def remove(root: Path, chosen: Sequence[Build]) -> int:
    """Remove the caches of ``chosen`` that no run uses; the bytes that went."""
    removed = 0
    for build in chosen:
        with _locked(root, build.key) as free:
            if free:
                shutil.rmtree(build.folder, ignore_errors=True)
                removed += build.bytes
    return removed


def came_from_kept(outcome: Outcome) -> bool:
    """Whether the compiled code of ``outcome`` lies in the kept cache, and so its warm start must use it."""
    return str(dict(outcome.facts).get(FACT, "")).startswith(KEPT)


# --- files ---------------------------------------------------------------------------------------


def _trim(root: Path, chosen: Sequence[Build], excess: int) -> int:
    """Remove the files unused for longest, of builds that no run uses, until ``excess`` bytes are gone."""
    removed = 0
    by_age = sorted(
        (used, size, file, build.key)
        for build in chosen
        for file in _files(build.folder)
        if file.name != ABOUT
        for used, size in [_used_and_size(file)]
    )
    for key in {entry[3] for entry in by_age}:
        with _locked(root, key) as free:
            if not free:
                by_age = [entry for entry in by_age if entry[3] != key]
    for _, size, file, _ in by_age:
        if removed >= excess:
            break
        with suppress(OSError):
            file.unlink()
            removed += size
    return removed


def _lock_file(root: Path, key: str) -> Path:
    """Beside the build's folder, not in it, and never removed: whoever holds it holds the one and only."""
    return root / f"{key}.lock"


@contextmanager
def _locked(root: Path, key: str) -> Iterator[bool]:
    """Whether nobody uses the build ``key``; if so, nobody begins to until this ends."""
    with ExitStack() as stack:
        try:
            lock = stack.enter_context(_lock_file(root, key).open("a", encoding="utf-8"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # somebody has it, or nothing may be written here, and so nothing removed
            free = False
        else:
            free = True
        yield free


def _read_about(about: Path) -> tuple[dict[str, Any], float]:
    """What a build is and when it was used last; a damaged file says never, and so is the first to go."""
    try:
        said = json.loads(about.read_text(encoding="utf-8"))
        identity, used_at = dict(said["identity"]), float(said["used_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}, 0.0
    return (identity, used_at) if 0.0 <= used_at < _LATEST else ({}, 0.0)


def _files(folder: Path) -> list[Path]:
    found = []
    for base, _, names in os.walk(folder):
        found += [Path(base) / name for name in names if not name.endswith(".lock")]
    return sorted(found)


def _used_and_size(file: Path) -> tuple[float, int]:
    try:
        found = file.stat()
    except OSError:
        return 0.0, 0
    return max(found.st_atime, found.st_mtime), found.st_size


def _link_or_copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    aside.unlink(missing_ok=True)
    try:
        try:
            os.link(source, aside)
        except OSError:  # another file system, or one without links
            shutil.copy2(source, aside)
        aside.replace(target)
    except OSError:  # no room: half a file is nobody's
        aside.unlink(missing_ok=True)
        raise


def _forget_others(fresh: Path, source: Path, target: Path) -> None:
    """Remove what lies beside ``target`` under the same key of inductor's and was not made just now."""
    if source.relative_to(fresh).parts[0] not in _ENTRIES or not target.parent.is_dir():
        return
    for other in target.parent.iterdir():
        if not (source.parent / other.name).exists():
            with suppress(OSError):
                other.unlink()
