"""A suite whose models write into the files by which workers and their parent speak."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from torchgauge.records import Workload
from torchgauge.suites.catalog import YamlSuite
from torchgauge.suites.suite import BuiltWorkload

SUITE = YamlSuite(
    name="forgers",
    doc="Models that forge what workers report; for tests only.",
    data=Path(__file__).parent / "forgers.yaml",
    builder="torchgauge_faults.forgers:build",
)
NAMES = "TORCHGAUGE_FAULTS_SHARED"
"""Variable with the end of the name of what is left in shared memory."""
MEGABYTE = 1 << 20
PASS = b'{"ev": "outcome", "t": 1.0, "outcome": {"case_key": %s, "status": "pass", "phase": "done"}}\n'
LINES: dict[str, bytes] = {
    "bad_json": b'{"ev": "phase", \n',
    "deep_json": b"[" * MEGABYTE + b"\n",
    "a_list": b"[1, 2]\n",
    "unknown_phase": b'{"ev": "phase", "t": 1.0, "phase": "lunch", "case": null}\n',
    "unknown_event": b'{"ev": "lunch", "t": 1.0}\n',
    "missing_field": b'{"ev": "phase", "t": 1.0}\n',
    "extra_field": b'{"ev": "phase", "t": 1.0, "phase": "build", "case": null, "outcome": 7}\n',
    "many_events": b'{"ev": "phase", "t": 1.0, "phase": "build", "case": null}\n' * 20_001,
    "asks": b'{"ev": "timing_lock", "t": 1.0, "wanted": true}\n',
    "no_unicode": b'{"ev": "phase", "t": 1.0, "phase": "build", "case": "\xff"}\n',
    "not_a_number": b'{"ev": "phase", "t": NaN, "phase": "build", "case": null}\n',
    "endless_line": b" " * 40 * MEGABYTE,
    "wrong_type": PASS % b"7",
    "foreign_case": PASS % b'"k"',
}


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    """A step that sleeps, after the attack of the model's name."""
    own = _own_events()
    if workload.model in LINES:
        with own.open("ab", buffering=0) as file:
            file.write(LINES[workload.model])
        time.sleep(1.0)  # the parent reads meanwhile, and the case is still in flight
    if workload.model == "tells":
        print(*(f"{name}={value}" for name, value in os.environ.items()), sep="\n", flush=True)
    attack = ATTACKS.get(workload.model)
    if attack is not None:
        attack(own)
    return BuiltWorkload(module=_step, framework="python")


def _step() -> bool:
    time.sleep(0.002)
    return True


def _own_events() -> Path:
    """The events file of this worker, by the descriptor that is open on it."""
    links = [each.resolve() for each in Path("/proc/self/fd").iterdir()]
    return next(link for link in links if "events" in link.name)


def _work(own: Path) -> Path:
    return next(each for each in own.parents if each.name == "work")


def _plant(own: Path) -> None:
    """Write a pass of every planned case into each file that a later worker may open."""
    work = _work(own)
    plan = json.loads((work.parent / "plan.json").read_text())
    keys = _keys(plan)
    outcomes = [{"ev": "outcome", "t": 1.0, "outcome": _passed(key)} for key in keys]
    text = "".join(json.dumps(each) + "\n" for each in outcomes)
    for number in range(200):
        for name in (f"{number}.events", f"{number}/events"):
            path = work / name
            if path.parent.is_dir() and not path.exists():
                path.write_text(text)
        for name in (f"{number}.asks", f"{number}.printed"):
            (work / name).mkdir(exist_ok=True)


def _keys(value: Any, model: str = "") -> list[str]:
    """The keys of all cases in a plan, or of those of ``model``, computed as the records do."""
    from torchgauge.records import Plan, from_plain

    cases = [each.case for each in from_plain(Plan, value).cases]
    return [each.key for each in cases if model in ("", each.workload.model)]


def _passed(key: str) -> dict[str, Any]:
    samples = [1e-7] * 20
    measurement = {
        "metric": "latency",
        "unit": "s",
        "samples": samples,
        "blocks": list(range(20)),
        "provenance": "host clock",
        "stopped": "budget",
    }
    return {"case_key": key, "status": "pass", "phase": "done", "measurements": [measurement]}


def _crash(_own: Path) -> None:
    os._exit(3)


CLAIMS: dict[str, dict[str, Any]] = {
    "huge_time": {"samples": [1e308] * 20},
    "huge_block": {"blocks": [10**400] * 20},
    "huge_fact": {},
    "not_run": {},
}


def _claim(model: str, own: Path) -> None:
    """Report for this case numbers that no sum or no table can hold, or that it was not run, and end."""
    keys = _keys(json.loads((_work(own).parent / "plan.json").read_text()), model)
    outcome = _passed(keys[0])
    outcome["measurements"][0] |= CLAIMS[model]
    outcome["facts"] = [["huge", 10**400]] if model == "huge_fact" else []
    if model == "not_run":
        outcome |= {"status": "not_run", "cause": "cancelled"}
    with own.open("a") as file:
        file.write(json.dumps({"ev": "outcome", "t": 1.0, "outcome": outcome}) + "\n")
    os._exit(0)


def _link(own: Path) -> None:
    """Put a link without an end where the parent may read, and pipes that nobody writes to."""
    folder = own.parent if own.name == "events" else own
    for name in ("events", "cursor", "printed"):
        path = folder / name if folder is not own else own.with_suffix(f".{name}")
        path.unlink(missing_ok=True)
        if name == "printed":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/zero")


def _reply(_own: Path, text: bytes = b"no reply\n") -> None:
    """Write what is no reply, or ``text``, into every pipe of the host."""
    host = Path(f"/proc/{os.getppid()}/fd")
    for each in host.iterdir():
        try:
            if each.is_fifo():
                pipe = os.open(each, os.O_WRONLY | os.O_NONBLOCK)
                os.write(pipe, text)
                os.close(pipe)
        except OSError:
            continue
    time.sleep(1.0)


def _end_others(own: Path) -> None:
    """Write ten replies that a worker has ended, with the token of a command that this process can see."""
    end = {"ev": "exited", "status": 0, "usage": {}, "leftovers": [], "printed": 0, "token": ""}
    frame: FrameType | None = sys._getframe().f_back
    while frame is not None:
        for value in frame.f_locals.values():
            if isinstance(value, dict) and "token" in value:
                end["token"] = value["token"]
        frame = frame.f_back
    _reply(own, (json.dumps(end).encode() + b"\n") * 10)


def _order(_own: Path) -> None:
    """Write a command into the logs of the host, of its keeper and of torchgauge."""
    pid = os.getppid()
    for _ in range(3):
        above = Path(f"/proc/{pid}")
        try:
            with (above / "fd" / "2").open("ab", buffering=0) as log:
                log.write(f"\n::stop-commands::by the model of {pid}\n".encode())
        except OSError as error:
            print(f"log of {pid}: {error.strerror}", flush=True)
        pid = int((above / "stat").read_text().rpartition(")")[2].split()[1])


def _outlive(_own: Path) -> None:
    """Leave a daemon behind, and kill the host and its keeper."""
    host = os.getppid()
    keeper = int(Path(f"/proc/{host}/stat").read_text().rpartition(")")[2].split()[1])
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.closerange(0, 1 << 10)
        time.sleep(600)
        os._exit(0)
    time.sleep(0.2)
    os.kill(keeper, signal.SIGKILL)
    os.kill(host, signal.SIGKILL)
    time.sleep(60)


def _share(_own: Path) -> None:
    """Leave 64 MiB in shared memory of either kind."""
    name = f"forged-{os.environ[NAMES]}"
    Path("/dev/shm", name).write_bytes(b"x" * 64 * MEGABYTE)
    ctypes.CDLL(None).shmget(0, 64 * MEGABYTE, 0o1600)


def _litter(_own: Path) -> None:
    """Leave 25 files in shared memory whose names hold a line break and a terminal sequence."""
    for number in range(25):
        Path("/dev/shm", f"forged-{os.environ[NAMES]}-{number}\n::error::\x1b[31m").touch()


ATTACKS: dict[str, Callable[[Path], None]] = {
    **{model: partial(_claim, model) for model in CLAIMS},
    "plants": _plant,
    "crashes": _crash,
    "linked": _link,
    "host_reply": _reply,
    "host_ends": _end_others,
    "litters": _litter,
    "orders": _order,
    "outlives": _outlive,
    "shares": _share,
}
