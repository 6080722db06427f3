"""The static census of a device's operators, asked of the target interpreter in a child. Parent side."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import msgspec

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.counted import counted
from torchgauge.errors import InfrastructureError
from torchgauge.processes.kept_process import run, scratch
from torchgauge.processes.known_secrets import known_secrets
from torchgauge.processes.passed_variables import passed
from torchgauge.processes.python_command import python_command
from torchgauge.results.atomic_file import write_atomically
from torchgauge.results.csv_text import csv_text
from torchgauge.suites.ops import census_static

CHILD = Path(census_static.__file__)
TIMEOUT_S = 300.0
FOLDER = "census"
"""Folder of a store that holds what was asked of dispatchers."""


class StaticCensus(msgspec.Struct, frozen=True):
    """Kind of every aten overload on one device; see :mod:`torchgauge.suites.ops.census_static`."""

    torch: str
    device: str
    key: str
    fallback: bool
    operators: dict[str, str]

    @property
    def counts(self) -> dict[str, int]:
        """Number of overloads by kind."""
        found = Counter(self.operators.values())
        return {kind: found[kind] for kind in census_static.KINDS}

    @property
    def needed(self) -> int:
        """Overloads that a backend must bring itself: all that are not composite."""
        return len(self.operators) - self.counts[census_static.COMPOSITE]


def static_census(python: str, device_type: str) -> StaticCensus:
    """What ``python``'s torch holds for a torch device type; starts one child, runs nothing on the device.

    Raises :class:`InfrastructureError` where torch cannot be imported or knows no such type.
    """
    with scratch("census") as folder:
        answer = folder / "answer.json"
        command = python_command(python, CHILD, str(answer), device_type)
        try:
            done = run(command, passed(), timeout=TIMEOUT_S)
            found = json.loads(answer.read_bytes())
        except subprocess.TimeoutExpired as error:
            raise _no_answer(python, f"no response within {TIMEOUT_S:g} s") from error
        except (OSError, ValueError) as error:
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise _no_answer(python, last) from error
    if "problem" in found:
        raise _no_answer(python, str(found["problem"]))
    return msgspec.convert(found, StaticCensus)


def census_lines(census: StaticCensus) -> list[str]:
    """Counts as a person reads them."""
    counts = census.counts
    parts = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    total = len(census.operators)
    lines = [
        f"{census.device} ({census.key}) of torch {census.torch}: {counted(total, 'aten overload')}: {parts}",
        f"  {counts[census_static.NATIVE]}/{census.needed} of the operators that need a kernel have one",
    ]
    if census.fallback:
        lines.append(
            "  the backend registered a fallback: operators that it lacks may silently run on another device"
        )
    return lines


def census_csv(census: StaticCensus) -> str:
    """One line per overload: operator and kind."""
    return csv_text(("operator", "kind"), sorted(census.operators.items()))


def census_json(census: StaticCensus, **more: object) -> str:
    """The census with its counts, and ``more``."""
    return json.dumps({**msgspec.to_builtins(census), "counts": census.counts, **more}, indent=1)


def keep(census: StaticCensus, store: str) -> Path:
    """Write ``census`` into ``store``, one file per torch and device, with the time; the file."""
    path = Path(store, FOLDER, f"static-{census.device}-{census.torch}.json".replace(os.sep, "-"))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, (census_json(census, at=SYSTEM_CLOCK.now()) + "\n").encode())
    return path


def _no_answer(python: str, why: str) -> InfrastructureError:
    return InfrastructureError(
        f"the dispatcher of {python} cannot be queried: {known_secrets().hide(why)[:300]}",
        hint=f"torchgauge devices --python {python} lists the devices of this interpreter",
    )
