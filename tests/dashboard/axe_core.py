"""axe-core, the accessibility checker: brought by npm into the user's cache, never part of this repository.

As a command it fetches it and says so; that fails only where it is required.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

VERSION = "4.14.1"
INTEGRITY = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
_SCRIPT = Path(__file__).parents[2] / "scripts" / "npm_package.py"


def required() -> bool:
    """Whether a missing axe-core is a failure and no reason to skip."""
    return bool(os.environ.get("TORCHGAUGE_REQUIRE_NPM"))


@cache
def source() -> tuple[str, str]:
    """The text of axe-core, and else why there is none."""
    command = [sys.executable, str(_SCRIPT), "axe-core", VERSION, INTEGRITY]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode:
        return "", done.stderr.strip() or "npm_package.py failed"
    return (Path(done.stdout.strip()) / "axe.min.js").read_text(encoding="utf-8"), ""


def main() -> int:
    """Fetch it."""
    why = source()[1]
    if why:
        sys.stderr.write(f"pages are not checked by axe: {why}\n")
    return int(bool(why) and required())


if __name__ == "__main__":
    sys.exit(main())
