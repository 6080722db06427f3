"""``torchgauge.plugin`` is the public interface of the seams."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import torchgauge.plugin as public

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "how-to"
PAGES = [GUIDES / name for name in ("write-a-plugin.md", "bring-up-a-device.md", "check-a-device.md")]


def test_every_name_is_there() -> None:
    """Each is defined where the list says, once."""
    assert len(public.__all__) == len(set(public.__all__)) > 60
    assert set(public.__all__) <= set(dir(public))
    assert all(getattr(public, name) is not None for name in public.__all__)


def test_importing_it_loads_nothing_of_the_parents_half() -> None:
    """Worker code that takes a name of it runs where only torch is installed."""
    heavy = ("torch", "pandas", "msgspec", "click", "yaml", "numpy")
    program = (
        "import sys; from torchgauge.plugin import AcceleratorSession, DeviceDescriptor, Prepared;"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_guides_of_the_seams_import_nothing_else() -> None:
    """What a page shows is what will stay."""
    imported = [
        (page.name, line)
        for page in PAGES
        for line in re.findall(r"^\s*(?:from|import) torchgauge[\w.]*", page.read_text(), re.MULTILINE)
    ]
    assert len(imported) >= 10
    assert {line.strip() for _, line in imported} == {"from torchgauge.plugin"}, imported
