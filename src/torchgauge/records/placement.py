"""Which configurations can share a process, and lists of CPUs as people write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.records.case import Configuration

_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
MOST_CPUS = 1 << 16
"""CPUs that a list may name, again and again included: Linux knows 8,192, and some lists are a stranger's."""


class CpuListError(ValueError):
    """A text that is no list of CPUs."""


@dataclass(frozen=True)
class Placement:
    """What holds for a whole worker process: variables, threads, CPUs and the layout of tensors."""

    env: tuple[tuple[str, str], ...] = ()
    threads: int | None = None
    interop_threads: int | None = None
    cpus: str = ""
    numa: int | None = None
    memory_format: str = ""


def placement_of(configuration: Configuration) -> Placement:
    """What ``configuration`` asks of the process that it runs in."""
    return Placement(
        env=configuration.env,
        threads=configuration.threads,
        interop_threads=configuration.interop_threads,
        cpus=configuration.cpus,
        numa=configuration.numa,
        memory_format=configuration.memory_format,
    )


def parse_cpus(text: str) -> tuple[int, ...]:
    """The CPUs of a list such as ``0-3,8``, sorted; raises :class:`CpuListError`."""
    found: set[int] = set()
    named = 0
    for item in text.split(","):
        match = _RANGE.fullmatch(item.strip())
        if match is None or (match[2] is not None and int(match[2]) < int(match[1])):
            raise CpuListError(f"{text!r} is not a list of CPUs such as 0-3,8")
        named += int(match[2] or match[1]) - int(match[1]) + 1
        if named > MOST_CPUS:
            raise CpuListError(f"{text[:40]!r} lists more than {MOST_CPUS:,} CPUs")
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(found))


def format_cpus(cpus: Sequence[int]) -> str:
    """``cpus`` as the shortest list, such as ``0-3,8``."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)
