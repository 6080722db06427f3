"""Write the files that stand for a data set: images, matrices and texts from one seed; standard library only.

Images are PNG whatever their name ends in, because upstream fixes some names and every reader that it uses
looks at the content. They hold coarse coloured squares, because noise would not compress.
"""

from __future__ import annotations

import random
import struct
import zlib
from array import array
from pathlib import Path

_GREY, _RGB = 0, 2
_SQUARE = 8


class Files:
    """The files below ``root``, made from ``seed``; ``batch`` is the batch size that has to be filled."""

    def __init__(self, root: Path, model: str, batch: int, seed: str) -> None:
        self.root, self.model, self.batch = root, model, batch
        self.random = random.Random(seed)  # noqa: S311  reproducible, not secret
        self.without_weights: list[Path] = []

    def path(self, name: str) -> Path:
        """The path of ``name`` below the root, its folder made."""
        path = self.root / name.format(model=self.model)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def text(self, name: str, text: str) -> None:
        """A text file."""
        self.path(name).write_text(text, encoding="utf-8")

    def data(self, name: str, data: bytes) -> None:
        """A file of bytes."""
        self.path(name).write_bytes(data)

    def image(self, name: str, width: int, height: int) -> None:
        """A picture of ``width`` x ``height`` pixels with three channels of 8 bits."""
        self.data(name, picture(self.random, width, height))

    def mask(self, name: str, width: int, height: int) -> None:
        """A picture with one channel of 8 bits: 255 in an upright ellipse in its middle, else 0."""
        self.data(name, ellipse(width, height))

    def checkpoint(self, name: str) -> None:
        """A file that stands for weights: whoever loads it through ``torch.load`` gets none."""
        self.data(name, b"")
        self.without_weights.append(self.path(name).resolve())


def picture(source: random.Random, width: int, height: int) -> bytes:
    """A PNG of ``width`` x ``height`` pixels (RGB, 8 bits) with squares in colours from ``source``."""
    lines = []
    for top in range(0, height, _SQUARE):
        squares = source.randbytes(3 * (width // _SQUARE + 1))
        line = b"".join(squares[i : i + 3] * _SQUARE for i in range(0, len(squares), 3))[: 3 * width]
        lines.append((b"\0" + line) * min(_SQUARE, height - top))
    return _png(width, height, _RGB, b"".join(lines))


def ellipse(width: int, height: int) -> bytes:
    """A grey PNG of ``width`` x ``height`` pixels: 255 within half its width and two thirds of its height."""
    lines = []
    for row in range(height):
        above = (row + 0.5 - height / 2) / (height / 3)
        half = round(width / 4 * max(0.0, 1 - above * above) ** 0.5)
        rest = bytes(width // 2 - half)
        lines.append(b"\0" + (rest + b"\xff" * (2 * half) + rest).ljust(width, b"\0"))
    return _png(width, height, _GREY, b"".join(lines))


def kaldi_matrix(source: random.Random, rows: int, columns: int) -> bytes:
    """A float32 matrix of ``rows`` x ``columns`` normal numbers in Kaldi's binary form, without its key."""
    values = array("f", (source.gauss(0.0, 1.0) for _ in range(rows * columns)))
    return b"\0BFM " + struct.pack("<bibi", 4, rows, 4, columns) + values.tobytes()


def _png(width: int, height: int, kind: int, lines: bytes) -> bytes:
    """A PNG of 8 bits a channel; ``lines`` holds each row after a zero byte (no filter)."""
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 1)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
