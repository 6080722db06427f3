"""The files of an artifact, from a zip or a folder, read into memory under caps and never unpacked.

Why in memory: a name is then no path, a link no file, and a bomb ends at a cap whatever its header says.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

from torchgauge.counted import counted
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.result_set import (
    JOURNAL_BYTES,
    JOURNAL_FILE,
    MANIFEST,
    PLAN_FILE,
)

KIB, MIB = 1 << 10, 1 << 20
CHUNK = 256 * KIB
END = struct.Struct("<4s4H2LH")
"""The record at the end of a zip file (APPNOTE.TXT 4.3.16), of which a comment may follow."""
END_MARK, END_64_MARK = b"PK\x05\x06", b"PK\x06\x07"
LONGEST_TAIL = 65_535 + END.size + 20
LONGEST_DIRECTORY = 16 * KIB
"""Most bytes of the list of contents; four entries with every extra field have less than one thousand."""
SIZES: Mapping[str, int] = {
    MANIFEST: 64 * KIB,
    PLAN_FILE: 16 * MIB,
    JOURNAL_FILE: JOURNAL_BYTES,
}
"""Most bytes of each file: what Git hosts take into a branch (GitHub: 100 MB a file), and a shard of 20,000
checks, which has a plan of 13 MB and a journal of 40 MB.
"""


@dataclass(frozen=True)
class Caps:
    """What an artifact may be: its files with their sizes in bytes, their number and how well it may pack.

    ``ratio`` is unpacked to packed bytes: real journals reach about 40, a bomb a thousand. It is looked at
    above ``ratio_from`` bytes only.
    """

    sizes: Mapping[str, int] = field(default_factory=lambda: SIZES)
    files: int = 4
    packed: int = 100 * MIB
    ratio: int = 200
    ratio_from: int = 4 * MIB


def read_container(path: Path, caps: Caps | None = None) -> dict[str, bytes]:
    """Name to bytes of every file of the artifact at ``path``; raises :class:`RefusedSetError`."""
    caps = caps or Caps()
    with _unreadable():
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            files = _from_folder(path, caps)
        elif stat.S_ISREG(mode):
            files = _from_zip(path, caps)
        else:
            raise RefusedSetError(Reason.NOT_A_FILE, "the artifact is neither a file nor a folder")
    missing = sorted(caps.sizes.keys() - files.keys())
    if not files:
        raise RefusedSetError(Reason.EMPTY, "the artifact is empty")
    if missing:
        raise RefusedSetError(Reason.MISSING_FILE, f"{missing[0]} is missing")
    return files


def _from_folder(path: Path, caps: Caps) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    with os.scandir(path) as found:
        entries = list(islice(found, caps.files + 1))
    if len(entries) > caps.files:
        raise RefusedSetError(Reason.TOO_MANY_FILES, f"more than {counted(caps.files, 'file')}")
    for entry in entries:
        name = entry.name
        _check_name(name, caps)
        if not entry.is_file(follow_symlinks=False):
            raise RefusedSetError(Reason.NOT_A_FILE, f"{name} is not an ordinary file")
        descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise RefusedSetError(Reason.NOT_A_FILE, f"{name} is not an ordinary file")
            files[name] = _read(stream, name, caps.sizes[name])
    return files


def _from_zip(path: Path, caps: Caps) -> dict[str, bytes]:
    packed = path.stat().st_size
    if packed == 0:
        raise RefusedSetError(Reason.EMPTY, "the file is empty")
    if packed > caps.packed:
        raise RefusedSetError(Reason.TOO_LARGE, f"{packed} packed bytes; the limit is {caps.packed}")
    _check_directory(path, packed, caps)
    files: dict[str, bytes] = {}
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        if len(infos) > caps.files:
            raise RefusedSetError(
                Reason.TOO_MANY_FILES, f"{counted(len(infos), 'entry')}; at most {caps.files}"
            )
        for info in infos:
            name = info.orig_filename
            if info.orig_filename != info.filename:
                raise RefusedSetError(
                    Reason.FILE_NAME, "the name of an entry contains a null byte or a backslash"
                )
            _check_name(name, caps)
            if name in files:
                raise RefusedSetError(Reason.DUPLICATE_NAME, f"{name} occurs twice")
            _check_entry(info, caps)
            with archive.open(info) as stream:
                files[name] = _read(stream, name, min(caps.sizes[name], info.file_size))
    total = sum(map(len, files.values()))
    if total > caps.ratio_from and total > caps.ratio * packed:
        raise RefusedSetError(
            Reason.RATIO, f"{packed} bytes unpack to {total}, more than {caps.ratio} times as many"
        )
    return files


def _check_directory(path: Path, packed: int, caps: Caps) -> None:
    """Refuse a list of contents that is too long before the zip module reads it into memory."""
    with path.open("rb") as stream:
        stream.seek(max(0, packed - LONGEST_TAIL))
        tail = stream.read(LONGEST_TAIL)
    at = len(tail) - END.size if tail[-END.size :].startswith(END_MARK) else tail.rfind(END_MARK)
    if at < 0 or len(tail) - at < END.size:
        raise RefusedSetError(Reason.UNREADABLE, "not a complete zip file: it has no list of contents")
    _, _, _, entries, total, size, _, _ = END.unpack_from(tail, at)
    if tail[max(0, at - 20) :].startswith(END_64_MARK):
        raise RefusedSetError(Reason.TOO_LARGE, "a zip64 file, which is not accepted")
    if max(entries, total) > caps.files or size > LONGEST_DIRECTORY:
        raise RefusedSetError(
            Reason.TOO_MANY_FILES, f"{counted(total, 'entry')} in {size} bytes; at most {caps.files} entries"
        )


def _check_name(name: str, caps: Caps) -> None:
    if name in caps.sizes:
        return
    if "\\" in name or name.startswith("/") or ".." in name.split("/") or ":" in name:
        raise RefusedSetError(Reason.FILE_NAME, "an entry has a path in its name")
    raise RefusedSetError(Reason.EXTRA_FILE, "an entry is not a file of a result set")


def _check_entry(info: zipfile.ZipInfo, caps: Caps) -> None:
    """Refuse links, folders, devices, encryption and sizes before anything is unpacked."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG) or info.is_dir():
        raise RefusedSetError(Reason.NOT_A_FILE, f"{info.filename} is not an ordinary file")
    if info.flag_bits & 0x1:
        raise RefusedSetError(Reason.UNREADABLE, f"{info.filename} is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise RefusedSetError(Reason.UNREADABLE, f"{info.filename} is not compressed by deflate")
    if info.file_size > caps.sizes[info.filename]:
        most = caps.sizes[info.filename]
        raise RefusedSetError(Reason.TOO_LARGE, f"{info.filename} has {info.file_size} bytes; limit: {most}")
    if info.file_size > caps.ratio_from and info.file_size > caps.ratio * max(info.compress_size, 1):
        raise RefusedSetError(
            Reason.RATIO, f"{info.filename} unpacks to more than {caps.ratio} times its packed size"
        )


def _read(stream: IO[bytes], name: str, most: int) -> bytes:
    """The bytes of ``stream``; refused as soon as there are more than ``most``, whatever was declared."""
    found = io.BytesIO()  # which gives away its one copy
    while chunk := stream.read(min(CHUNK, most + 1 - found.tell())):
        found.write(chunk)
        if found.tell() > most:
            raise RefusedSetError(Reason.TOO_LARGE, f"{name} has more than {most} bytes, the limit")
    return found.getvalue()


@contextmanager
def _unreadable() -> Iterator[None]:
    """Whatever the zip and file layers say of a damaged artifact, as one reason."""
    try:
        yield
    except zipfile.BadZipFile as error:
        raise RefusedSetError(Reason.UNREADABLE, "not a complete zip file") from error
    except (OSError, EOFError, zlib.error, NotImplementedError, RuntimeError, ValueError) as error:
        raise RefusedSetError(Reason.UNREADABLE, f"cannot be read: {type(error).__name__}") from error
