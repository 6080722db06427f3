"""Which variables of an environment hold a secret, by their names and by the form of their values."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_NAME = re.compile(
    r"(?:^|_)(?:[A-Z0-9]*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|KEY)S?"
    r"|PAT|AUTH|BEARER|COOKIE|JWT|DSN|WEBHOOK|CONNECTION_STRING)(?:_|$)"
    r"|_(?:PASS|PWD)$",
    re.IGNORECASE,
)
"""Whole words of a name: TOKENIZERS_PARALLELISM is no token, and PWD is a folder."""


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name holds a secret, as far as its name tells."""
    return _NAME.search(name) is not None


def password_in(value: str) -> str:
    """The password of an address such as ``https://name:password@host``; empty where there is none.

    A name without a password may be a token, and counts as one.
    """
    if "@" not in value or "://" not in value:
        return ""
    try:
        parts = urlsplit(value)
    except ValueError:
        return ""
    return parts.password or parts.username or ""
