"""The address of a store in an object store: ``s3://BUCKET/PREFIX``, with options in its query.

Standard library only: every command that opens a store asks whether it is an address.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from torchgauge.errors import UsageError

_ADDRESS = re.compile(r"s3:/{1,2}(?=[^/])")
_OPTIONS = ("endpoint_override", "region", "scheme")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_EXAMPLE = "s3://BUCKET/PREFIX?endpoint_override=localhost:9000&scheme=http"


@dataclass(frozen=True)
class StoreUrl:
    """Bucket and prefix of a store, and where its server is: ``endpoint`` is empty for Amazon's own."""

    bucket: str
    prefix: str
    endpoint: str = ""
    scheme: str = "https"
    region: str = ""

    @property
    def root(self) -> str:
        """Bucket and prefix as one path."""
        return f"{self.bucket}/{self.prefix}" if self.prefix else self.bucket

    def __str__(self) -> str:
        return f"s3://{self.root}"


def is_url(text: object) -> bool:
    """Whether ``text`` names a store in an object store."""
    return bool(_ADDRESS.match(str(text)))


def read_url(text: str, variables: Mapping[str, str] = os.environ) -> StoreUrl:
    """``text`` as an address; what its query does not say is taken from ``AWS_ENDPOINT_URL_S3`` and its kin.

    Raises :class:`UsageError` for what is none, and for credentials, which belong into no command.
    """
    parts = urlsplit(_ADDRESS.sub("s3://", str(text), count=1))
    if parts.username or parts.password:
        raise UsageError(
            "the address of a store must not contain credentials",
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    options = dict(parse_qsl(parts.query))
    if unknown := options.keys() - set(_OPTIONS):
        raise UsageError(f"{min(unknown)} is not an option of a store address", hint=_EXAMPLE)
    if not _BUCKET.fullmatch(parts.netloc):
        raise UsageError(f"{str(text)!r} names no bucket", hint=_EXAMPLE)
    endpoint = options.get("endpoint_override", "")
    endpoint = endpoint or variables.get("AWS_ENDPOINT_URL_S3", "") or variables.get("AWS_ENDPOINT_URL", "")
    scheme = options.get("scheme", "")
    if "://" in endpoint:
        said, endpoint = endpoint.split("://", 1)
        scheme = scheme or said
    if "@" in endpoint:
        raise UsageError(
            "the endpoint of a store must not contain credentials",
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    if scheme not in ("", "http", "https"):
        raise UsageError(f"{scheme!r} is not a valid scheme of the endpoint", hint="use http or https")
    region = options.get("region") or variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION", "")
    return StoreUrl(parts.netloc, parts.path.strip("/"), endpoint.strip("/"), scheme or "https", region)
