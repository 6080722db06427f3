"""The tutorial is typed as it stands, in an empty folder and an empty home."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
INTERRUPTED_BY_TIMEOUT = 124


def commands() -> list[str]:
    """Every command of a console block, in order."""
    blocks = re.findall(r"```console\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)
    return [
        line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")
    ]


@pytest.mark.torch
def test_every_command_of_the_tutorial_works(tmp_path: Path) -> None:
    """Each command ends as the text says: with 0, or with the exit code of `timeout` where it interrupts."""
    home = tmp_path / "home"
    work = tmp_path / "work"
    home.mkdir()
    work.mkdir()
    scripts = Path(sys.executable).parent
    environment = {
        **{name: os.environ[name] for name in ("LANG", "TMPDIR", "PYTHONPATH") if name in os.environ},
        "HOME": str(home),
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
    }
    typed = commands()
    assert len(typed) > 8
    for command in typed:
        done = subprocess.run(
            ["bash", "-c", command],
            check=False,
            capture_output=True,
            text=True,
            cwd=work,
            env=environment,
            timeout=400,
        )
        expected = INTERRUPTED_BY_TIMEOUT if command.startswith("timeout ") else 0
        assert done.returncode == expected, f"$ {command}\n{done.stdout}\n{done.stderr}"
    assert (work / "site" / "index.html").is_file()
