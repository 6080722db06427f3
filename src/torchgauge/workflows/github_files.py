"""The files and lines by which a step talks to GitHub Actions, written in one place.

Why one writer: the protocol is lines of text, and a name with a line feed in it once became a second output,
with a matrix of the attacker's. Here every value has a delimiter that nobody can guess, and a value with a
line feed is refused all the same. What else is printed is no command: ``guarded_log``.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

from torchgauge.errors import UsageError
from torchgauge.workflows.guarded_log import say_command

OUTPUT_LIMIT = 1_000_000
"""Bytes of one job's outputs together that GitHub takes (1 MB)."""
SUMMARY_LIMIT = 1 << 20
"""Bytes of one step's summary: above it GitHub drops the whole of it."""
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,99}")
_NOTICE = "\n\n… the rest exceeds GitHub's limit for the summary of a step.\n"


def set_output(name: str, value: str, environ: Mapping[str, str] = os.environ) -> None:
    """Set the output ``name`` of this step to ``value``, one line of text.

    Raises :class:`UsageError` outside GitHub Actions and for a value that is too large, and ``ValueError``
    for a name or value that the protocol must not carry.
    """
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} is not a valid name of an output")
    if not value.isprintable():
        raise ValueError(f"the output {name!r} is not one line of printable text")
    path = environ.get("GITHUB_OUTPUT")
    if not path:
        raise UsageError(
            "GITHUB_OUTPUT is not set: this is not a step of GitHub Actions", hint="leave out --github"
        )
    delimiter = f"torchgauge-{secrets.token_hex(16)}"
    line = f"{name}<<{delimiter}\n{value}\n{delimiter}\n".encode()
    file = Path(path)
    if _size(file) + len(line) > OUTPUT_LIMIT:
        raise UsageError(
            f"the output {name!r} has {len(line):,} bytes; the outputs of a job may have {OUTPUT_LIMIT:,}",
            hint="plan fewer shards, or use shorter names of pools",
        )
    _append(file, line)


def set_json_output(name: str, value: object, environ: Mapping[str, str] = os.environ) -> None:
    """Set the output ``name`` to ``value`` as JSON on one line; raises as :func:`set_output`."""
    set_output(name, json.dumps(value, allow_nan=False, separators=(",", ":")), environ)


def add_summary(markdown: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Append ``markdown`` to the summary of this step, cut where it would be too large.

    False outside GitHub Actions, where nothing is written. The text must be safe already.
    """
    path = environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return False
    file = Path(path)
    room = SUMMARY_LIMIT - _size(file)
    data = f"{markdown.rstrip()}\n\n".encode()
    if len(data) > room:
        notice = _NOTICE.encode()
        if room <= len(notice):
            return True  # what is there already ends with the notice
        kept = data[: room - len(notice)]
        data = kept[: kept.rfind(b"\n") + 1].decode(errors="ignore").encode() + notice
    _append(file, data)
    return True


def annotation(level: str, message: str, title: str = "") -> str:
    """The line that shows ``message`` at the top of the run; ``level`` is notice, warning or error.

    ``title`` is ours, of letters and blanks.
    """
    if level not in ("notice", "warning", "error") or (title and not title.replace(" ", "").isalpha()):
        raise ValueError(level, title)
    escaped = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{level}{title and f' title={title}'}::{escaped}"


def annotate(level: str, message: str, title: str = "") -> None:
    """Show ``message`` at the top of the run; outside of GitHub Actions, a note on stderr."""
    if in_actions():
        say_command(annotation(level, message, title))
    else:
        sys.stderr.write(f"note: {message}\n")
        sys.stderr.flush()


def in_actions() -> bool:
    """Whether this is a step of GitHub Actions, or of something that behaves like it."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


def _append(file: Path, data: bytes) -> None:
    with file.open("ab") as stream:
        stream.write(data)
