"""Secrets of this process, replaced in what other processes say before any of it is kept.

Why beside the list of passed variables: a secret may come another way, from a file in the home folder or
from what a person passes on. What is replaced: the values of our own variables whose names say that they are
secrets, passwords in addresses, secrets in the words of our own command, the token file of the model hub, and
what has the form of a well-known kind of token. Each also as it looks in JSON, in an address, in base64 and
in hexadecimal digits.

What is not: a value that was split, reversed, compressed or otherwise changed; and values shorter than
``SHORTEST``, because ``1``, ``true`` or ``test`` stand in every text, and to replace them would falsify
results without hiding anything that could not be guessed.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from torchgauge.processes.secret_names import MASK, hide_told, is_secret_name, password_in, told_secrets

SHORTEST = 8
"""Characters of a value that is replaced."""
_WORD = re.compile(r"[a-z_]{1,15}")
"""Words like those of our own vocabulary, such as a status: a password like them must not break a record."""
_FORMS = (
    ("gh", re.compile(r"\bgh[pousr]_[A-Za-z0-9]{30,}")),
    ("github_pat_", re.compile(r"\bgithub_pat_[A-Za-z0-9_]{30,}")),
    ("glpat-", re.compile(r"\bglpat-[A-Za-z0-9_-]{20,}")),
    ("hf_", re.compile(r"\bhf_[A-Za-z0-9]{30,}")),
    ("pypi-", re.compile(r"\bpypi-[A-Za-z0-9_-]{40,}")),
    ("npm_", re.compile(r"\bnpm_[A-Za-z0-9]{36}")),
    ("xox", re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}")),
    ("sk-", re.compile(r"\bsk-[A-Za-z0-9_-]{32,}")),
    ("AIza", re.compile(r"\bAIza[A-Za-z0-9_-]{35}")),
    ("AKIA", re.compile(r"\bAKIA[A-Z0-9]{16}\b")),
    ("ASIA", re.compile(r"\bASIA[A-Z0-9]{16}\b")),
    ("eyJ", re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}")),
    ("PRIVATE KEY", re.compile(r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*KEY-----|\Z)")),
    ("://", re.compile(r"(?<=://)[^\s/@:'\"]{1,256}:[^\s/@'\"]{1,256}(?=@)")),
)  # fmt: skip
"""What well-known tokens look like; the first part is looked for before the expression is tried."""
_CUT = re.compile(r"(\n\[\.\.\. \d+ bytes left out \.\.\.\]\n)")
"""Where a log lost its middle, and with it perhaps the half of a secret."""


@dataclass(frozen=True)
class KnownSecrets:
    """Values to replace, longest first, with every form in which they are looked for."""

    values: tuple[str, ...]
    needles: tuple[str, ...]

    def hide(self, text: str) -> str:
        """``text`` with every secret replaced by ``MASK``."""
        for needle in self.needles:
            if needle in text:
                text = text.replace(needle, MASK)
        for sign, form in _FORMS:
            if sign in text:
                text = form.sub(MASK, text)
        if not self.values:
            return text
        return "".join(self._without_halves(part) for part in _CUT.split(text))

    def hide_in(self, value: Any) -> Any:
        """A plain value, as JSON holds it, with every text in it hidden; names of fields stay."""
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, list):
            return [self.hide_in(each) if isinstance(each, (str, list, dict)) else each for each in value]
        if isinstance(value, dict):
            return {name: self.hide_in(each) for name, each in value.items()}
        return value

    def hide_bytes(self, data: bytes) -> bytes:
        """Like :meth:`hide`, for a log of any bytes."""
        return self.hide(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def _without_halves(self, text: str) -> str:
        """``text`` without the beginning or the end of a secret where it was cut off."""
        for value in self.values:
            stem = text.rstrip(" .\u2026'\"\n")
            at = stem.rfind(value[:SHORTEST], max(0, len(stem) - len(value) + 1))
            if at >= 0 and value.startswith(stem[at:]):
                text = stem[:at] + MASK + text[len(stem) :]
            end = text.find(value[-SHORTEST:], 0, len(value)) + SHORTEST
            if end >= SHORTEST and value.endswith(text[:end]):
                text = MASK + text[end:]
        return text


def known_secrets(environ: Mapping[str, str] | None = None) -> KnownSecrets:
    """The secrets of ``environ`` (default: our own environment, and the words of our own command)."""
    if environ is not None:
        return _collected(tuple(sorted(set(_values(environ)))))
    told = (value for word in sys.argv[1:] for value in told_secrets(word))
    return _collected(tuple(sorted({*_values(os.environ), *told})))


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


@lru_cache(maxsize=8)
def _collected(values: tuple[str, ...]) -> KnownSecrets:
    found = {part for value in values for part in _parts(value)}
    needles = {form for value in found for form in _spellings(value) if len(form) >= SHORTEST}
    return KnownSecrets(
        tuple(sorted(found, key=len, reverse=True)), tuple(sorted(needles, key=len, reverse=True))
    )


def _parts(value: str) -> Iterator[str]:
    """The value, and each line of one with several."""
    for part in (value.strip(), *(line.strip() for line in value.splitlines())):
        if len(part) >= SHORTEST and not _WORD.fullmatch(part):
            yield part


def _spellings(value: str) -> Iterator[str]:
    """How a value looks in texts."""
    data = value.encode("utf-8", "surrogateescape")
    yield value
    yield json.dumps(value)[1:-1]
    yield repr(value)[1:-1]
    yield from (quote(data), quote(data, safe=""), quote_plus(data))
    yield from (data.hex(), data.hex().upper())
    for before, start in enumerate((0, 2, 3)):  # what stands before it shifts the digits of base64
        digits = base64.b64encode(bytes(before) + data).decode()[start : (before + len(data)) * 8 // 6]
        yield from (digits, digits.replace("+", "-").replace("/", "_"))
