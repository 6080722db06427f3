"""Where a site will be served, for files that are read away from it: feeds and badges."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from torchgauge.errors import UsageError

_ADDRESS = re.compile(r"https?://[A-Za-z0-9._~:/%@+\[\]-]+")


def checked(address: str) -> str:
    """``address`` with a slash at its end; empty stays empty.

    Raises :class:`UsageError` for what is no address of a folder on a web server.
    """
    if not address:
        return ""
    try:
        host = urlsplit(address).hostname
    except ValueError:
        host = None
    if not host or not _ADDRESS.fullmatch(address):
        raise UsageError(
            f"--base-url {address[:200]} is not a URL of a site", hint="--base-url https://example.org/site/"
        )
    return address if address.endswith("/") else f"{address}/"
