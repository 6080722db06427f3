"""What holds a secret, by its name and by its form: variables of an environment, words of a command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

MASK = "***"
_NAME = re.compile(
    r"(?:^|_)(?:[A-Z0-9]*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|KEY|KEYFILE)S?"
    r"|PAT|AUTH|AUTHORIZATION|BEARER|COOKIES?|JWT|DSN|WEBHOOK|CONNECTION_?STRING|SESSION_?ID|SSHPASS"
    r")[0-9]*(?:_|$)"
    r"|_(?:PASS|PWD)$",
    re.IGNORECASE,
)
"""Whole words of a name: TOKENIZERS_PARALLELISM is no token, and PWD is a folder."""


_VARIABLE = re.compile(r"((?:--[\w-]+=)?([A-Za-z_]\w*)=)(.+)", re.DOTALL)
_USER = re.compile(r"(?<=://)(?!git@)[^\s/'\"]+(?=@)")
_PARAMETER = re.compile(r"([?&]([\w.-]+)=)([^&#\s'\"]+)")


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


def hide_told(word: str) -> str:
    """``word``, as a person typed it, without its secrets: ``https://***@host``, ``MY_TOKEN=***``.

    However short a value is: unlike the text of a child, the place says that it is a secret.
    """
    variable = _VARIABLE.fullmatch(word)
    if variable and is_secret_name(variable[2]):
        return variable[1] + MASK
    word = _USER.sub(MASK, word)
    return _PARAMETER.sub(lambda found: found[1] + MASK if _signs(found[2]) else found[0], word)


def told_secrets(word: str) -> Iterator[str]:
    """The secrets that :func:`hide_told` would hide."""
    variable = _VARIABLE.fullmatch(word)
    if variable and is_secret_name(variable[2]):
        yield variable[3]
    for found in _USER.findall(word):
        password = found.partition(":")[2] or found
        yield from (password, unquote(password))
    yield from (value for _, name, value in _PARAMETER.findall(word) if _signs(name))


def _signs(name: str) -> bool:
    """Whether a parameter of an address lets in whoever has it."""
    name = name.replace("-", "_").replace(".", "_")
    return is_secret_name(name) or name.lower().endswith(("sig", "signature"))
