"""The README's pictures are made by a script."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
IMAGES = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", README)


def test_the_script_makes_every_picture(store: Path, tmp_path: Path, browser: Any) -> None:
    """From any store with a compiled configuration."""
    assert browser
    script = ROOT / "docs" / "generate_pictures.py"
    subprocess.run([sys.executable, str(script), str(store), str(tmp_path)], check=True, capture_output=True)
    assert {path.name for path in tmp_path.iterdir()} == {Path(path).name for _, path in IMAGES}
    assert (tmp_path / "front-page.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "inductor-against-eager.svg").read_text().startswith("<svg")
