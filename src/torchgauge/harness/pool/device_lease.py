"""Who may use a device: one run at a time, by a lock on this machine that everything it starts inherits.

Why inherited: a process that escaped from a run that was killed still has the device. As long as it lives the
lock is held, and the next run says by whom, instead of measuring beside it. The host has no lease: what
others do there is measured, and marked.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from torchgauge.devices.device import Device
from torchgauge.errors import InfrastructureError
from torchgauge.harness.pool import strays
from torchgauge.harness.pool.strays import command_of
from torchgauge.records import DeviceTarget
from torchgauge.suites.suite import HOST

FOLDER = "TORCHGAUGE_LEASES"
"""Variable that names the folder of the locks: containers that share devices share it, too."""
DEFAULT = "/tmp/torchgauge-leases"  # noqa: S108  all users of the machine meet there; TMPDIR may be each one's own
WAIT_S = 5.0
"""How long what a run has left behind may take to be gone."""
_HELD: dict[Path, int] = {}
_SAID: list[str] = []
_MUTEX = threading.Lock()


def leases(device: Device, target: DeviceTarget, count: int = 1) -> tuple[int, ...]:
    """Descriptors to be inherited of the leases of ``count`` devices from ``target`` on, held until we end.

    Raises :class:`InfrastructureError` for a device that somebody else has, with the process that has it.
    """
    places = [place_of(device, replace(target, index=target.index + each)) for each in range(count)]
    with _MUTEX:
        return tuple(_held(place) for place in places if place is not None)


def place_of(device: Device, target: DeviceTarget) -> Path | None:
    """Where the lease of ``target`` lies; None for the host and for what is no hardware, which have none."""
    if device.torch_type in {None, HOST}:
        return None
    unit = physical(device, target.index, os.environ)
    return lease_folder() / f"{target.name}.{unit.replace(os.sep, '-')}"


def lease_folder() -> Path:
    """The folder of the leases of this machine, which need not be there."""
    return Path(os.environ.get(FOLDER) or DEFAULT)


def shared_folder(path: Path) -> None:
    """Make the folder at ``path`` for all users; one that is there stays as it is."""
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o1777)


def physical(device: Device, index: int, environment: Mapping[str, str]) -> str:
    """What names the device beyond what this process sees: its entry in the variable that selects devices."""
    for name in getattr(device, "visibility_variables", ()):
        entries = [each.strip() for each in environment.get(name, "").split(",") if each.strip()]
        if index < len(entries):
            return entries[index]
    return str(index)


def _held(path: Path) -> int:
    if path in _HELD:
        return _HELD[path]
    try:
        lock = _open(path)
    except OSError as error:
        raise InfrastructureError(
            f"{path}: the lock file of a device cannot be created: {error.strerror}",
            hint=f"set {FOLDER} to a folder that all users of the device can write to",
        ) from error
    deadline = time.monotonic() + WAIT_S
    while not _locked(lock):
        if time.monotonic() > deadline:
            os.close(lock)
            who = "; ".join(holders(path)) or "a process outside this container"
            raise InfrastructureError(
                f"device '{path.name}' is busy: {who}", hint="wait until this process ends, or end it"
            )
        time.sleep(0.05)
    # Processes of a killed run keep the device busy: end them, or close the lease and refuse.
    ended, left = strays.end(strays.of_the_dead(lock))
    _SAID.extend(
        f"ended a process that a killed run had left on device '{path.name}': {name}" for name in ended
    )
    if left:
        os.close(lock)
        raise InfrastructureError(
            f"device '{path.name}' is held by a process of a killed run that cannot be ended: "
            f"{'; '.join(left)}",
            hint="end this process as its user or as root, or restart the machine",
        )
    _HELD[path] = lock
    return lock


def said() -> list[str]:
    """Return the notes on processes that were ended to free devices, each once."""
    found, _SAID[:] = list(_SAID), []
    return found


def _open(path: Path) -> int:
    """The lock file, made for all; in a sticky folder, that of another user must not be created anew."""
    shared_folder(path.parent)
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CREAT, 0o644)
        os.fchmod(lock, 0o644)
        return lock


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lease_files() -> list[Path]:
    """The lock of each device that anybody has ever leased here; whoever holds one is in :func:`holders`."""
    try:
        return sorted(lease_folder().iterdir())
    except OSError:
        return []


def holders(path: Path) -> list[str]:
    """``pid 7 (command)`` for each process that has the file at ``path`` open, as far as /proc shows them."""
    return [f"pid {pid} ({command_of(pid)})" for pid in _open_in(path)] or [
        f"pid {pid} of another user" for pid in _locked_by(path)
    ]


def _open_in(path: Path) -> Iterator[int]:
    path = path.resolve()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(each.readlink() == path for each in (process / "fd").iterdir()):
                yield int(process.name)
        except OSError:
            continue


def _locked_by(path: Path) -> Iterator[int]:
    inode = f":{path.stat().st_ino} "
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return
    for line in lines:  # 1: FLOCK  ADVISORY  WRITE 4711 08:02:123 0 EOF
        if inode in line and " FLOCK " in line and " -> " not in line:
            yield int(line.split()[4])
