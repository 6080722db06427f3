"""The cells of a version matrix: what a person names, as a list of interpreters to make or to take.

Versions of each axis are combined; builds of a person's own come after them. The first cell is the one that
others are compared with.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from torchgauge.devices.minimum import OLDEST_TORCH, release, spelled
from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.harness.bisect.builds import named_build

TORCH = "torch"
_VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc|\.dev|\.post)\d+)*(\+[a-z0-9.]+)?")


@dataclass(frozen=True)
class Cell:
    """One column: ``pins`` are distributions with their versions, torch first, or ``python`` is a build."""

    label: str
    pins: tuple[tuple[str, str], ...] = ()
    python: str = ""

    @property
    def torch(self) -> str:
        """The version of torch that is asked for; empty for a build of a person's own."""
        return dict(self.pins).get(TORCH, "")


def cells_of(
    axes: Mapping[str, Sequence[str]], builds: Sequence[str], baseline: str = ""
) -> tuple[Cell, ...]:
    """The cells of ``axes`` (distribution to versions) and of ``NAME=PYTHON`` words, the baseline first.

    What is named twice is measured twice: the second time says ``(again)``. Raises :class:`UsageError`.
    """
    given = {name: tuple(versions) for name, versions in axes.items() if versions}
    for name, versions in given.items():
        for version in versions:
            _check(name, version)
    if given and TORCH not in given:
        raise UsageError(f"versions of {', '.join(given)} without --torch", hint="--torch VERSION,...")
    cells = [_cell(given, versions) for versions in product(*given.values())] if given else []
    cells += [
        Cell(label, python=python) for label, python in (named_build(each, "--python") for each in builds)
    ]
    cells = _told_apart(cells)
    if len(cells) < 2:
        raise UsageError(
            f"a matrix needs at least two cells, but {len(cells)} given",
            hint="--torch 2.12.1,2.13.0; or --python NAME=PATH, twice or more",
        )
    if not baseline:
        return tuple(cells)
    labels = [cell.label for cell in cells]
    if baseline not in labels:
        raise UnknownNameError("cell", baseline, labels)
    return tuple(sorted(cells, key=lambda cell: cell.label != baseline))


def _check(name: str, version: str) -> None:
    if not _VERSION.fullmatch(version):
        raise UsageError(
            f"--{name} {version!r} is not a version", hint=f"--{name} 2.12.1,2.13.0: one or more"
        )
    if name == TORCH and release(version) < OLDEST_TORCH:
        raise UsageError(
            f"torch {version} is older than {spelled(OLDEST_TORCH)}, the oldest supported",
            hint=f"leave {version} out",
        )


def _cell(axes: Mapping[str, Sequence[str]], versions: Sequence[str]) -> Cell:
    """A cell whose label says what tells it from the others."""
    pins = tuple(zip(axes, versions, strict=True))
    telling = [(name, version) for name, version in pins if len(set(axes[name])) > 1] or [pins[0]]
    bare = len(telling) == 1 and telling[0][0] == TORCH
    return Cell(telling[0][1] if bare else ", ".join(f"{name} {version}" for name, version in telling), pins)


def _told_apart(cells: Sequence[Cell]) -> list[Cell]:
    """``cells`` with labels of their own: one that is there a second time is measured again."""
    seen: Counter[str] = Counter()
    first: dict[str, Cell] = {}
    found = []
    for cell in cells:
        before = first.setdefault(cell.label, cell)
        if (before.pins, before.python) != (cell.pins, cell.python):
            raise UsageError(f"two builds have the name {cell.label!r}", hint="give them different names")
        seen[cell.label] += 1
        count = seen[cell.label]
        again = "" if count == 1 else " (again)" if count == 2 else f" (again {count - 1})"
        found.append(Cell(cell.label + again, cell.pins, cell.python))
    return found
