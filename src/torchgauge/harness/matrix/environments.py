"""Environments of a matrix: one for each cell, made of a lock, kept, and found again.

::

    DIR/locks/<request>.txt      the exact pins that a request was resolved to, kept beside the environments
    DIR/<key>/                   a virtual environment; key: digest of Python, platform and these pins
    DIR/<key>/made.json          written last: without it the folder is half made, and is made again
    DIR/<key>/torchgauge-locked  nothing is imported from elsewhere: PYTHONPATH is not for this one
    DIR/<key>.lock               held by whoever makes it
    DIR/pip/                     the pip that makes them; DIR/pip.lock as above

A request is what a person named with what the suites need. Delete a lock to have it resolved anew.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.counted import counted
from torchgauge.devices.probe import spawn
from torchgauge.errors import InfrastructureError, TorchgaugeError
from torchgauge.harness import compile_cache
from torchgauge.harness.interpreter.install import constraints_for
from torchgauge.harness.interpreter.staging import LOCKED, environment_for
from torchgauge.harness.matrix.cells import TORCH, Cell
from torchgauge.harness.matrix.pip_tool import OTHER_FOLDER, Pip, PipFailedError, make_environment, size_of
from torchgauge.processes.kept_process import scratch
from torchgauge.processes.passed_variables import passed
from torchgauge.records.codec import digest
from torchgauge.results import units
from torchgauge.results.atomic_file import storage_errors, write_atomically
from torchgauge.results.held import held
from torchgauge.results.json_file import object_if_any
from torchgauge.suites.conflicts import bundled_conflicts, release_of
from torchgauge.suites.install_needs import distribution_of

VARIABLE = "TORCHGAUGE_ENVIRONMENTS"
"""Environment variable with the folder of environments; ``--environments`` comes before it."""
ALONGSIDE = ("numpy", "setuptools")
"""What torch takes for granted and does not ask pip for on every Python."""
INSTALL_TIMEOUT_S = 3600.0
IMPORT_TIMEOUT_S = 300.0
ROOM = 3.0
"""Bytes of disk that a downloaded byte takes: unpacked about two, and one in pip's own cache."""
RATE = 20e6
"""Bytes per second that are assumed where nothing was ever installed here."""
LEAST_S = 40.0
"""Seconds of any environment, however small: its folder, pip's start, torch's own files and its import."""
NEAREST = 3
COMMIT_DIGITS = 12
_PACKAGES = Path("lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")
_SIZES = "# bytes to download, and files of unknown size: "
_QUESTION = (
    "import torch; there = getattr(torch, 'version', None);"
    " print('torchgauge-torch', torch.__version__, getattr(there, 'git_version', None) or '')"
)


class CellFailedError(TorchgaugeError):
    """A cell that has no environment; the message says why, and the other cells go on."""


@dataclass(frozen=True)
class Lock:
    """What one cell installs, exactly; ``size`` is in bytes, of the files that are not ``unknown``."""

    cell: Cell
    pins: tuple[str, ...]
    size: int = 0
    unknown: int = 0

    @property
    def key(self) -> str:
        """The name of the environment's folder."""
        return digest([platform.python_version(), sys.implementation.cache_tag, sysconfig.get_platform(),
                       list(self.pins)])  # fmt: skip


@dataclass(frozen=True)
class Made:
    """An environment that is there: its interpreter, the torch that it imports, and its pins.

    ``commit`` is that of torch's source, as torch says it; empty where it does not.
    """

    python: str
    torch: str
    pins: tuple[str, ...]
    commit: str = ""


@dataclass(frozen=True)
class Environments:
    """The folder of environments; ``say`` is told what is done, and what it will take before it is done.

    What takes minutes is ``shown`` while it lasts.
    """

    folder: Path
    say: Callable[[str], None] = lambda _: None
    shown: Callable[[str], AbstractContextManager[object]] = nullcontext

    def lock(self, cell: Cell, needs: Sequence[str], versions: Mapping[str, str]) -> Lock:
        """The exact pins of ``cell`` with what the suites need, resolved by pip where that was not done yet.

        ``versions`` are those of the requirements that nobody named: the same in all cells. Raises
        :class:`CellFailedError` in pip's words, with the nearest versions that there are.
        """
        requirements, constraints = requirements_of(cell, needs, versions)
        request = digest([requirements, constraints, platform.python_version(), sysconfig.get_platform()])
        file = self.folder / "locks" / f"{request}.txt"
        if file.is_file():
            return _read(cell, file)
        words = f"{cell.label}: pip resolves {', '.join(requirements)}"
        self.say(words)
        try:
            pip = Pip.in_folder(self.folder)
            try:
                with self.shown(words):
                    downloads = pip.resolve(requirements, constraints)
            except PipFailedError as error:
                missing = None if error.unreachable else _no_such_version(cell, pip)
                raise missing or _no_companion(cell, pip, constraints, error.message) or error from None
        except PipFailedError as error:
            raise CellFailedError(error.message, hint=error.hint) from error
        lock = Lock(cell, tuple(each.pin for each in downloads), *size_of(downloads))
        wrong = [
            each.version for each in downloads if each.name == TORCH and not _is(cell.torch, each.version)
        ]
        if wrong:
            raise CellFailedError(f"pip would install torch {wrong[0]}, but {cell.torch} was requested")
        head = f"# {', '.join(requirements)}; Python {platform.python_version()}, {sysconfig.get_platform()}"
        sizes = f"{_SIZES}{lock.size} {lock.unknown}"
        try:
            with storage_errors(file):
                file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, "\n".join([head, sizes, *lock.pins, ""]).encode())
        except InfrastructureError as error:
            raise CellFailedError(error.message, hint=OTHER_FOLDER) from error
        return lock

    def has(self, lock: Lock) -> bool:
        """Whether the environment of ``lock`` is there and whole."""
        place = self.folder / lock.key
        return (place / "made.json").is_file() and os.access(_python(place), os.X_OK)

    def plan(self, locks: Sequence[Lock]) -> list[str]:
        """What making the environments of ``locks`` takes: a line each, and the disk that is free."""
        lines, total = [], 0.0
        wanted: dict[str, Lock] = {}
        for lock in locks:
            if not self.has(lock):
                wanted.setdefault(lock.key, lock)
        for lock in wanted.values():
            total += lock.size
            more = f" and {lock.unknown} files of unknown size" if lock.unknown else ""
            size = f"at most {units.quantity(lock.size, 'B')}{more} to download"
            disk = f"about {units.quantity(lock.size * ROOM, 'B')} of disk, {self._time(lock.size)}"
            near = self._nearest(lock)
            less = f"; less in practice: files equal to those of {near} are linked" if near else ""
            lines.append(f"{lock.cell.label}: {counted(len(lock.pins), 'package')}, {size}, {disk}{less}")
        if lines:
            there = next(each for each in (self.folder, *self.folder.parents) if each.exists())
            free = shutil.disk_usage(there).free
            lines.append(f"{units.quantity(free, 'B')} are free in {self.folder}")
            if total * ROOM > free:
                lines.append("the disk is too small for all cells: cells that do not fit are skipped")
        return lines

    def make(self, lock: Lock) -> Made:
        """The environment of ``lock``, from the cache or made now; raises :class:`CellFailedError`.

        What torch it imports is asked each time: somebody may have changed it since it was made.
        """
        place = self.folder / lock.key
        try:
            if not self.has(lock):  # what is there can be used where nothing can be written
                self.folder.mkdir(parents=True, exist_ok=True)
                file = self.folder / f"{lock.key}.lock"
                file.touch()
                waiting = f"{lock.cell.label}: waiting for another matrix run to install it"
                with held(file, lambda: self.say(waiting)):
                    if not self.has(lock):
                        self._make(lock, place)
            if not (place / LOCKED).is_file():  # the environment may be older than this mark
                (place / LOCKED).touch()
        except OSError as error:
            raise CellFailedError(
                f"{error.filename or place} cannot be written: {error.strerror or error}", hint=OTHER_FOLDER
            ) from error
        about = object_if_any(place / "made.json")
        made = (str(about.get("torch", "")), str(about.get("commit", "")))
        torch, commit = _torch_of(place, lock.cell)
        if torch != made[0] or (made[1] and commit != made[1]):
            raise CellFailedError(
                f"torch is now {torch_words(torch, commit)}, but {torch_words(*made)} was installed",
                hint=f"delete {place}: the next run rebuilds this environment from its lock file",
            )
        return Made(str(_python(place)), torch, lock.pins, commit)

    def _make(self, lock: Lock, place: Path) -> None:
        size = lock.size
        free = shutil.disk_usage(self.folder).free
        if size * ROOM > free:
            raise CellFailedError(
                f"about {units.quantity(size * ROOM, 'B')} of disk are needed, and "
                f"{units.quantity(free, 'B')} are free in {self.folder}",
                hint="--environments DIR on a larger disk",
            )
        began = SYSTEM_CLOCK.steady()
        nearest = self._nearest(lock)
        words = f"{'rebuilding' if place.exists() else 'building'} environment {lock.cell.label} in {place}"
        self.say(words)
        try:
            with self.shown(words):
                pip = Pip.in_folder(self.folder)
                make_environment(place)
                if nearest:  # pip replaces files and never writes into them, so it can change what differs
                    where = (nearest / _PACKAGES, place / _PACKAGES)
                    try:
                        shutil.copytree(*where, copy_function=os.link, dirs_exist_ok=True)
                        names = {distribution_of(pin.partition(" @ ")[0]) for pin in lock.pins}
                        pip.uninstall_all_but(names, _python(place))
                    except OSError:  # files of another user, or a file system without links
                        nearest = None
                        make_environment(place)
                file = place / "lock.txt"
                file.write_text("\n".join([*lock.pins, ""]), encoding="utf-8")
                pip.install(file, _python(place), place / "pip.log", INSTALL_TIMEOUT_S)
                frozen = pip.freeze(_python(place))
        except PipFailedError as error:
            if error.full:
                shutil.rmtree(place, ignore_errors=True)  # half of an environment would keep the disk full
            hint = error.hint or f"see {place}/pip.log"
            raise CellFailedError(error.message, hint=hint) from error
        torch, commit = _torch_of(place, lock.cell)
        missing = sorted(_names(lock.pins) - _names(frozen))
        if missing:
            raise CellFailedError(f"pip succeeded, but did not install {', '.join(missing)}")
        (place / "freeze.txt").write_text("\n".join([*frozen, ""]), encoding="utf-8")
        took = SYSTEM_CLOCK.steady() - began
        size = 0 if nearest else size  # seconds of links tell nothing about bytes
        about = {"torch": torch, "commit": commit, "download_bytes": size, "seconds": round(took, 1)}
        write_atomically(place / "made.json", json.dumps(about, indent=1).encode())
        self.say(f"{lock.cell.label}: ready after {units.duration(took)}")

    def _nearest(self, lock: Lock) -> Path | None:
        """Return the environment with the torch of ``lock`` that shares most pins; None where none has it."""
        torch = {pin for pin in lock.pins if pin.startswith(f"{TORCH}==")}
        shared = {}
        for made in self.folder.glob("*/made.json"):
            pins = {*made.with_name("lock.txt").read_text(encoding="utf-8").splitlines()}
            if torch & pins and (made.parent / _PACKAGES).is_dir():
                shared[made.parent] = len(pins & {*lock.pins})
        return max(shared, key=lambda place: shared[place], default=None)

    def _time(self, size: int) -> str:
        """How long ``size`` bytes take, by what was installed here before."""
        known = [object_if_any(file) for file in self.folder.glob("*/made.json")]
        times = []
        for took, before in ((each.get("seconds"), each.get("download_bytes")) for each in known):
            if took and before:
                least = min(LEAST_S, 0.8 * took)
                times.append(least + (took - least) * size / before)
        if times:
            return f"about {units.duration(median(times))} by earlier installations"
        return f"about {units.duration(LEAST_S + size / RATE)} at {units.quantity(RATE, 'B')}/s"


def default_folder() -> Path:
    """Where environments are kept unless a person says otherwise."""
    return compile_cache.default_folder("environments")


def chosen_folder(named: str | None) -> Path:
    """The folder of environments that ``named``, the variable or the default says."""
    return Path(named or os.environ.get(VARIABLE) or default_folder()).expanduser().absolute()


def requirements_of(
    cell: Cell, needs: Sequence[str], versions: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What pip is asked for, and the constraints that keep torch as it was named.

    Needs that nobody named a version of get that of ``versions``, so that cells differ in what was named.
    """
    named = dict(cell.pins)
    found = [f"{name}=={version}" for name, version in cell.pins]
    asked = {distribution_of(text) for text in needs}
    for text in (*needs, *(each for each in ALONGSIDE if each not in asked)):
        name = distribution_of(text)
        if name not in named:
            fixed = name == text and name in versions and name not in ALONGSIDE  # torch bounds these itself
            found.append(f"{text}=={versions[name]}" if fixed else text)
    return tuple(found), (*constraints_for(named), *_beside(named))


def _beside(named: Mapping[str, str]) -> list[str]:
    """Bounds of packages that break beside a torch of this age, from the table of conflicts."""
    lines = []
    for rule in bundled_conflicts():
        beside = rule.beside
        if beside is None or rule.since is None or beside.package not in named or beside.below is None:
            continue
        if release_of(named[beside.package]) < release_of(beside.below):
            lines.append(f"{rule.package}<{rule.since}")
    return lines


def _torch_of(place: Path, cell: Cell) -> tuple[str, str]:
    """Version and commit of what ``import torch`` gives; raises :class:`CellFailedError` for another one."""
    python = str(_python(place))
    variables = {**passed(), **environment_for(python)}
    with scratch("matrix") as folder:
        ending = spawn([python, "-c", _QUESTION], variables, IMPORT_TIMEOUT_S, folder / "output")
    lines = ending.output.splitlines()
    words = next((line.split() for line in lines if line.startswith("torchgauge-torch ")), [])
    if not words:
        last = lines[-1] if lines else f"no output (exit status {ending.returncode})"
        raise CellFailedError(
            f"torch {cell.torch} cannot be imported: {last[:300]}",
            hint=f"see {place}/pip.log, or delete {place}: the next run rebuilds it from its lock file",
        )
    said, commit = words[1], "".join(words[2:3])
    if not _is(cell.torch, said):
        raise CellFailedError(f"torch is {said} after the installation, but {cell.torch} was requested")
    return said, commit


def torch_words(version: str, commit: str) -> str:
    """A build of torch in words: its version, and its commit where that is known."""
    return f"{version} (commit {commit[:COMMIT_DIGITS]})" if commit else version


def _is(asked: str, version: str) -> bool:
    """Whether ``version`` is what was asked for, as pip compares: 2.13 is 2.13.0.

    Its build (``+cpu``) counts only where that was named.
    """
    (wanted, build), (there, built) = _parts(asked), _parts(version)
    return wanted == there and build in ("", built)


def _parts(version: str) -> tuple[tuple[tuple[int, ...], str], str]:
    """The numbers of ``version`` without zeros at the end, with what follows them (rc1); and its build."""
    public, _, build = version.partition("+")
    numbers = release_of(public)
    suffix = re.sub(r"^\d+(\.\d+)*", "", public)
    while numbers and numbers[-1] == 0:
        numbers = numbers[:-1]
    return (numbers, suffix), build


def _no_such_version(cell: Cell, pip: Pip) -> PipFailedError | None:
    """That pip does not know a version of ``cell``, with the nearest that it knows; None where it knows all.

    pip's own words for that depend on its age, and may speak of a conflict.
    """
    for name, version in cell.pins:
        known = pip.versions(name)
        if any(_is(version, each) for each in known):
            continue
        nearest = _nearest(known, version)
        return PipFailedError(
            f"pip finds no {name} {version} for Python {platform.python_version()} on this platform",
            hint=f"one of {nearest}" if nearest else f"--python NAME=PATH with a build of {name}",
        )
    return None


def _no_companion(cell: Cell, pip: Pip, constraints: Sequence[str], said: str) -> PipFailedError | None:
    """That pip does not know what of a library is built for this torch; None where that is not why.

    pip calls it a conflict of the library with what was ``said`` of it.
    """
    for line in constraints:
        name, _, series = line.partition("==")
        if not series.endswith(".*") or name not in said:
            continue
        known = pip.versions(name)
        if not any(each.startswith(series[:-1]) or each == series[:-2] for each in known):
            nearest = _nearest(known, series[:-2])
            return PipFailedError(
                f"pip finds no {name} {series}, the version for torch {cell.torch}",
                hint=f"choose another torch (available {name}: {nearest}), or models without {name}",
            )
    return None


def _nearest(known: Sequence[str], version: str) -> str:
    """The versions of ``known`` that are nearest to ``version``, in a line."""
    wanted = release_of(version)

    def distance(other: str) -> tuple[int, ...]:
        pairs = zip((*wanted, 0, 0, 0), (*release_of(other), 0, 0, 0), strict=False)
        return tuple(abs(ours - theirs) for ours, theirs in pairs)

    return ", ".join(sorted(known, key=distance)[:NEAREST])


def _names(pins: Sequence[str]) -> set[str]:
    return {distribution_of(line) + line.partition("==")[2].lower() for line in pins if "==" in line}


def _python(place: Path) -> Path:
    return place / "bin" / "python"


def _read(cell: Cell, file: Path) -> Lock:
    """The lock in ``file``; a person may have edited it, so that its sizes may be gone."""
    lines = file.read_text(encoding="utf-8").splitlines()
    sizes = next((line.removeprefix(_SIZES).split() for line in lines if line.startswith(_SIZES)), [])
    size, unknown = map(int, sizes if len(sizes) == 2 and all(map(str.isdigit, sizes)) else (0, 0))
    return Lock(
        cell, tuple(line for line in lines if line.strip() and not line.startswith("#")), size, unknown
    )
