"""What a model can find out of whoever runs it, and tell in every way it has."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

NAMES = "TORCHGAUGE_FAULTS_LOOK_FOR"
"""Variable with the names of the variables that are looked for, in the environments of all ancestors."""


def found() -> list[str]:
    """The values of those variables, and those of our own environment, as one text each."""
    wanted = os.environ[NAMES].split(",")
    values, pid = [], os.getpid()
    while pid > 1:
        try:
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
        pairs = [each.decode(errors="replace").partition("=") for each in variables]
        values += [value for name, _, value in pairs if name in wanted]
    return sorted(set(values))


def tell() -> str:
    """Print everything in many forms and leave a process whose command tells it too; the same as a text."""
    print("names I was given:", *sorted(os.environ))
    print("environment:", dict(os.environ))
    said = []
    for value in found():
        data = value.encode()
        said += [value, quote(value, safe=""), repr(value), data.hex(), f"reversed {value[::-1]}"]
        said += [base64.b64encode(b"x" * lead + data).decode() for lead in range(3)]
    text = "\n".join(said)
    print(text)
    print(text, file=sys.stderr, flush=True)
    words = [sys.executable, "-c", "import time; time.sleep(60)", *found()]
    subprocess.Popen(words, start_new_session=True)
    return text
