"""Secrets of this process, replaced in what other processes print before any of it is kept.

Why beside the list of passed variables: a secret may come another way, from a file in the home folder or
from what a person passes on. Replaced are the values of our own variables with secret names, passwords in
addresses, secrets in the words of our own command, and the token file of the model hub.

Values shorter than ``SHORTEST`` stay, because ``1``, ``true`` or ``test`` stand in every text, and to replace
them would falsify results without hiding anything that could not be guessed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchgauge.processes.secret_names import MASK, hide_told, is_secret_name, password_in, told_secrets

SHORTEST = 8
"""Characters of a value that is replaced."""
_WORD = re.compile(r"[a-z_]{1,15}")
"""Words like those of our own vocabulary, such as a status: a password like them must not break a record."""


@dataclass(frozen=True)
class KnownSecrets:
    """Values to replace, longest first."""

    values: tuple[str, ...]

    def hide(self, text: str) -> str:
        """Return ``text`` with every secret replaced by ``MASK``."""
        for value in self.values:
            text = text.replace(value, MASK)
        return text

    def hide_in(self, value: Any) -> Any:
        """Return a plain value, as JSON holds it, with every text in it hidden; names of fields stay."""
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, list):
            return [self.hide_in(item) if isinstance(item, (str, list, dict)) else item for item in value]
        if isinstance(value, dict):
            return {name: self.hide_in(item) for name, item in value.items()}
        return value

    def hide_bytes(self, data: bytes) -> bytes:
        """Return a log of any bytes with every secret replaced."""
        return self.hide(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def known_secrets(environ: Mapping[str, str] | None = None) -> KnownSecrets:
    """The secrets of ``environ`` (default: our own environment, and the words of our own command)."""
    values = set(_values(os.environ if environ is None else environ))
    if environ is None:
        values.update(value for word in sys.argv[1:] for value in told_secrets(word))
    parts = {part for value in values for part in _parts(value)}
    return KnownSecrets(tuple(sorted(parts, key=len, reverse=True)))


def own_command() -> tuple[str, ...]:
    """The command of this process as it may be kept: without the secrets that a person typed into it."""
    return ("torchgauge", *(hide_told(word) for word in sys.argv[1:]))


def last_line(log: Path) -> str:
    """The last line of what a child printed into ``log``, without secrets; empty where there is none."""
    said = known_secrets().hide(log.read_text(encoding="utf-8", errors="replace")).strip().splitlines()
    return said[-1] if said else ""


def _values(environ: Mapping[str, str]) -> Iterator[str]:
    for name, value in environ.items():
        if is_secret_name(name) and not _is_place(value):
            yield value
        if password := password_in(value):
            yield password
    yield from _hub_token(environ)


def _hub_token(environ: Mapping[str, str]) -> Iterator[str]:
    """The token that the model hub's own command keeps in the home folder."""
    home = environ.get("HF_HOME") or os.path.join(environ.get("HOME", ""), ".cache", "huggingface")  # noqa: PTH118
    try:
        yield Path(environ.get("HF_TOKEN_PATH") or os.path.join(home, "token")).read_text("utf-8").strip()  # noqa: PTH118
    except (OSError, ValueError):
        return


def _is_place(value: str) -> bool:
    """Whether a value is no secret but the path of one."""
    try:
        return value.startswith(("/", "~", ".")) and Path(value).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False


def _parts(value: str) -> Iterator[str]:
    """The value, and each line of one with several."""
    for part in (value.strip(), *(line.strip() for line in value.splitlines())):
        if len(part) >= SHORTEST and not _WORD.fullmatch(part):
            yield part
