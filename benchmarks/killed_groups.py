"""What is left of groups of processes that are killed at a random moment: nothing.

``--kills N`` runs of a collective of several processes are begun; after a random time the parent, its host
or one of the ranks is killed by SIGKILL. Where it is not the parent, the run is let to its end, which has to
come. Afterwards are compared with before: processes (by a mark in their environment), listening sockets,
``/dev/shm``, and the folder of temporary files. Prints one JSON object; ends with 1 where anything is left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from contextlib import suppress
from pathlib import Path

from random_kills import MARK, command_of, marked

COMMAND = (
    "run",
    "distributed",
    "--device",
    "cpu",
    "--models",
    "collectives-broadcast",
    "--measure-seconds",
    "2",
)
PLAIN = ("--no-calibration", "--no-memory-probe", "--no-warm-compile", "--quiet-wait", "0", "--timeout", "60")
PATIENCE_S = 20.0
TORCHS_CACHE = "torchinductor_"
"""torch makes it where it is imported, and it outlives every process on purpose."""
LISTENING = "0A"
"""The state of a listening socket in ``/proc/net/tcp`` (include/net/tcp_states.h)."""


def listening() -> set[str]:
    """Local addresses and inodes of all listening sockets."""
    found = set()
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path("/proc/net", name).read_text(encoding="ascii").splitlines()[1:]:
                words = line.split()
                if words[3] == LISTENING:
                    found.add(f"{words[1]} {words[9]}")
    return found


def others(mark: str) -> set[str]:
    """What processes without ``mark`` have open, as ``socket:[123]``: other work opens ports too."""
    ours, found = set(marked(mark)), set()
    for folder in Path("/proc").glob("[0-9]*/fd"):
        if int(folder.parent.name) not in ours:
            with suppress(OSError):
                found |= {str(each.readlink()) for each in folder.iterdir()}
    return found


def there(temporary: Path, mark: str) -> dict[str, set[str]]:
    """What a group may leave behind, without its processes."""
    foreign = others(mark)
    return {
        "port": {each for each in listening() if f"socket:[{each.split()[1]}]" not in foreign},
        "shared memory": {each.name for each in Path("/dev/shm").iterdir()},
        "file": {each.name for each in temporary.iterdir() if not each.name.startswith(TORCHS_CACHE)},
    }


def main() -> int:
    """Kill, look and say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument(
        "--longest", type=float, default=12.0, help="seconds after which a kill comes at the latest"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    dice = random.Random(asked.seed)
    killed: Counter[str] = Counter()
    left: list[str] = []
    while sum(killed.values()) < asked.kills:
        with tempfile.TemporaryDirectory() as folder:
            what = kill_one(Path(folder), dice, asked, left)
        killed[what] += bool(what)
        print(
            f"{sum(killed.values())}/{asked.kills} {what or 'it had ended'}; left: {len(left)}",
            file=sys.stderr,
        )
    del killed[""]
    print(json.dumps({"kills": dict(killed), "left": left}))
    return 1 if left else 0


def kill_one(folder: Path, dice: random.Random, asked: argparse.Namespace, left: list[str]) -> str:
    """Begin a run, kill one of its processes, and note what is ``left``; what was killed, "" for nothing."""
    temporary, mark = folder / "tmp", uuid.uuid4().hex
    temporary.mkdir()
    variables = {**os.environ, "TMPDIR": str(temporary), MARK: mark, "OMP_NUM_THREADS": "1"}
    before = there(temporary, mark)
    words = [*COMMAND, *PLAIN, "--processes", str(asked.processes), "--store", str(folder / "store")]
    command = [sys.executable, "-m", "torchgauge.cli.main", *words]
    with (folder / "said").open("wb") as said:
        parent = subprocess.Popen(command, env=variables, stdout=said, stderr=said)
        time.sleep(dice.uniform(0.2, asked.longest))
        below = [pid for pid in marked(mark) if pid != parent.pid]
        kind = dice.choice(("parent", "parent", "below"))
        if parent.poll() is not None or (kind == "below" and not below):
            parent.wait()
            return ""
        with suppress(ProcessLookupError):
            os.kill(parent.pid if kind == "parent" else dice.choice(below), signal.SIGKILL)
        try:
            parent.wait(150)
        except subprocess.TimeoutExpired:
            left.append(f"{kind}: the run did not end")
            parent.kill()
            parent.wait()
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        alive = marked(mark)
        now = there(temporary, mark)
        found = {what: now[what] - before[what] for what in now}
        if not alive and not any(found.values()):
            return kind
        time.sleep(0.2)
    left += [f"{kind}: process {command_of(pid)}" for pid in alive]
    left += [f"{kind}: {what} {each}" for what, each_of in found.items() for each in sorted(each_of)]
    for pid in alive:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return kind


if __name__ == "__main__":
    sys.exit(main())
