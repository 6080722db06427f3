"""Files that grow on a node, and the same files here: what is new of them travels, and nothing twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from torchgauge.records.metrics import MIB

JOURNAL = "journal.jsonl"
LOGS = "logs"
MOST = 4 * MIB
"""Bytes that one answer carries."""


@dataclass(frozen=True)
class Piece:
    """Bytes of the file ``path`` of a part's folder, from ``offset`` on; ``first`` where it began anew."""

    path: str
    offset: int
    data: bytes


def news(folder: Path, output: Path, had: Mapping[str, int]) -> tuple[list[Piece], bool]:
    """What the folder of a part and the ``output`` of its job have beyond ``had`` bytes of each file.

    Logs come before the journal that names them. False where more is left than one answer carries.
    """
    journal, room = _size(folder / JOURNAL), MOST
    found: list[Piece] = []
    logs = sorted(path for path in (folder / LOGS).glob("*") if path.is_file() and not path.is_symlink())
    files = [(f"{LOGS}/{path.name}", path, _size(path)) for path in logs]
    files += [("", output, _size(output)), (JOURNAL, folder / JOURNAL, journal)]
    for name, path, size in files:
        offset = had.get(name, 0)
        if size is not None and size < offset:  # written anew
            offset = 0
        if size is None or (size == offset and name in had):
            continue
        if room <= 0:
            return found, False
        with path.open("rb") as stream:
            stream.seek(offset)
            data = stream.read(min(size - offset, room))
        room -= len(data)
        found.append(Piece(name, offset, data))
        if offset + len(data) < size:
            return found, False
    return found, True


def _size(path: Path) -> int | None:
    """Bytes of a file; None where it is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return None


@dataclass
class Fetched:
    """The folder of a part as far as it has come, with the job's output beside it; ``had`` are its bytes."""

    folder: Path
    had: dict[str, int] = field(default_factory=dict)

    @property
    def output(self) -> Path:
        """What the job itself said."""
        return self.folder.with_suffix(".out")

    def take(self, pieces: list[Piece]) -> None:
        """Write ``pieces`` where they belong; raises ``OSError``, and ``ValueError`` for a strange one."""
        for piece in pieces:
            path = self._place(piece.path)
            had = self.had.get(piece.path, 0)
            if piece.offset not in {0, had}:
                raise ValueError(f"{piece.path}: bytes from {piece.offset} on, after {had}")
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("r+b" if piece.offset else "wb") as stream:
                stream.seek(piece.offset)
                stream.write(piece.data)
            self.had[piece.path] = piece.offset + len(piece.data)

    def _place(self, name: str) -> Path:
        """Where ``name`` lies: an agent is no reason to write anywhere else."""
        if not name:
            return self.output
        if name != JOURNAL and PurePosixPath(name).parts[:-1] != (LOGS,):
            raise ValueError(f"{name!r} is not a file of a part")
        return self.folder / name
