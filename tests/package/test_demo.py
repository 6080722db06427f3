"""The demo goes on after failures of cases, stops at mistakes, and shows something before the long part."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "scripts" / "demo.sh"
STUB = """#!/bin/sh
echo "$*" >> "$DEMO_SAID"
case $1 in
    run) exit $DEMO_CODE ;;
    dashboard) mkdir -p "$5" ;;
esac
"""


def _demo(folder: Path, code: int) -> tuple[int, list[str], str]:
    """Exit code, the commands in their order, and what is said, where each run ends with ``code``."""
    stub, said = folder / "torchgauge", folder / "said"
    stub.write_text(STUB, encoding="utf-8")
    stub.chmod(0o755)
    done = subprocess.run(
        ["sh", str(DEMO), str(stub), "store", str(folder / "site")],
        env={"PATH": "/usr/bin:/bin", "DEMO_SAID": str(said), "DEMO_CODE": str(code)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, said.read_text(encoding="utf-8").splitlines(), done.stdout


@pytest.mark.parametrize("code", [0, 1, 3])
def test_a_site_is_there_before_the_long_part_and_again_after_it(tmp_path: Path, code: int) -> None:
    """A case that fails is a result: the demo goes on, and says twice where the site is."""
    ended, said, told = _demo(tmp_path, code)
    assert ended == 0
    assert [each.split()[0] for each in said] == ["devices", "run", "dashboard", "run", "dashboard"]
    assert "--device cpu" in said[1]
    assert "--device all" in said[3]
    assert told.count(f"The dashboard is in {tmp_path / 'site'}/index.html") == 2


@pytest.mark.parametrize("code", [2, 130])
def test_a_mistake_or_an_interrupt_ends_it(tmp_path: Path, code: int) -> None:
    """With the same exit code, and nothing is built."""
    ended, said, _ = _demo(tmp_path, code)
    assert ended == code
    assert [each.split()[0] for each in said] == ["devices", "run"]
