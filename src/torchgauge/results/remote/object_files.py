"""Files of a store in an object store: listed, read, put whole and removed, each in bounded time.

Why pyarrow's filesystem: it is here already, speaks S3 with any server, and takes credentials as every tool
of AWS does. An object appears whole once its upload is complete, and never in part.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torchgauge.errors import InfrastructureError, TorchgaugeError, UsageError
from torchgauge.results.atomic_file import fsync_path, publish, storage_errors, writing_aside
from torchgauge.results.remote.store_url import StoreUrl

_CONNECT_S, _REQUEST_S, _ATTEMPTS = 5.0, 20.0, 2
"""Seconds until a connection, and until an answer, are given up, and how often either is tried."""
_PIECE = 8 << 20

Stamp = tuple[int, int]
"""Size in bytes and time of change in nanoseconds."""


class ObjectFiles:
    """The files below an address."""

    def __init__(self, url: StoreUrl) -> None:
        """Nothing is asked of the server yet."""
        from pyarrow import fs

        self.url = url
        self._filesystem = fs.S3FileSystem(
            endpoint_override=url.endpoint or None,
            scheme=url.scheme,
            region=url.region or ("us-east-1" if url.endpoint else None),
            connect_timeout=_CONNECT_S,
            request_timeout=_REQUEST_S,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
            background_writes=False,
        )

    def listed(self, below: str = "") -> dict[str, Stamp]:
        """All files below a folder, by their paths from the address."""
        from pyarrow import fs

        where = f"{self.url.root}/{below}".rstrip("/")
        try:
            with self._errors("listed"):
                found = self._filesystem.get_file_info(fs.FileSelector(where, recursive=True))
        except FileNotFoundError:
            return {}
        return {
            each.path.removeprefix(f"{self.url.root}/"): (each.size, each.mtime_ns or 0)
            for each in found
            if each.type == fs.FileType.File
        }

    def get(self, name: str, to: Path) -> None:
        """Copy an object to the file ``to``, whole or not at all; ``FileNotFoundError`` where it is gone."""
        with storage_errors(to):
            to.parent.mkdir(parents=True, exist_ok=True)
        with writing_aside(to) as aside:
            pieces = self._pieces(name)  # what is gone on the server is no error of the disk
            piece = next(pieces, b"")
            with storage_errors(to):
                file = aside.open("wb")
            with file:
                while piece:
                    with storage_errors(to):
                        file.write(piece)
                    piece = next(pieces, b"")
            with storage_errors(to):
                fsync_path(aside)
                publish(aside, to)

    def _pieces(self, name: str) -> Iterator[bytes]:
        with self._errors("read"), self._filesystem.open_input_stream(self._path(name)) as source:
            while piece := source.read(_PIECE):
                yield piece

    def read(self, name: str) -> bytes:
        """The bytes of a small object; ``FileNotFoundError`` where it is gone."""
        with self._errors("read"), self._filesystem.open_input_stream(self._path(name)) as source:
            return bytes(source.read())

    def put(self, path: Path, name: str) -> None:
        """Copy the file ``path`` to an object, which appears when all of it is there."""
        to = self._path(name)
        with self._errors("written"), path.open("rb") as file, self._filesystem.open_output_stream(to) as out:
            while piece := file.read(_PIECE):
                out.write(piece)

    def remove(self, name: str) -> None:
        """Remove an object; one that is gone is no error."""
        with self._errors("written"):
            try:
                self._filesystem.delete_file(self._path(name))
            except FileNotFoundError:
                return

    def _path(self, name: str) -> str:
        return f"{self.url.root}/{name}"

    @contextmanager
    def _errors(self, done: str) -> Iterator[None]:
        """Turn what the server or the network says into an error that says what to try."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _told(self.url, done, error) from error


def _told(url: StoreUrl, done: str, error: Any) -> TorchgaugeError:
    said = str(error)
    server = f" at {url.endpoint}" if url.endpoint else ""
    if "NO_SUCH_BUCKET" in said:
        return UsageError(
            f"{url}: bucket {url.bucket} does not exist{server}", hint="create the bucket, or pass another"
        )
    refused = (
        "ACCESS_DENIED",
        "INVALID_ACCESS_KEY",
        "INVALID_CLIENT_TOKEN",
        "SIGNATURE",
        "UNRECOGNIZED_CLIENT",
    )
    if any(word in said for word in refused) or "credentials" in said.lower() or "HTTP status 403" in said:
        return UsageError(
            f"{url} cannot be {done}: the server{server} refuses these credentials",
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, of an account with access",
        )
    if "NETWORK_CONNECTION" in said or "curlCode" in said or "timed out" in said.lower():
        return InfrastructureError(
            f"{url} cannot be {done}: the server{server} does not respond",
            hint="check the network and AWS_ENDPOINT_URL, then repeat the command; finished files are kept",
        )
    return InfrastructureError(
        f"{url} cannot be {done}: {said.split(' (Request ID', maxsplit=1)[0]}",
        hint="repeat the command; finished files are kept",
    )
