"""The guides to the seams are followed: their files make a package, their commands are typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from torchgauge import registry

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "how-to"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# ([\w.]+)\n")
DEADLINE_S = 600
SEAMS = {
    "torchgauge.devices": "bring-up-a-device.md",
    "torchgauge.suites": "write-a-plugin.md",
    "torchgauge.scenarios": "write-a-plugin.md",
    "torchgauge.backends": "write-a-plugin.md",
    "torchgauge.publishers": "write-a-plugin.md",
    "torchgauge.executors": "write-a-plugin.md",
    "torchgauge.checks": "check-a-device.md",
    "torchgauge.metrics": "write-a-plugin.md",
}
PLUGIN = "write-a-plugin.md"
SLOW = ("Add a suite", "Add a scenario", "Add a backend")
"""Sections whose commands run torch."""
WALKED = (*SLOW, "Add a publisher", "Add an executor", "Add a metric")


def blocks(page: str, language: str, section: str = "") -> list[str]:
    """Return the fenced blocks of one language, of the whole page or of one section."""
    text = (GUIDES / page).read_text(encoding="utf-8")
    if section:
        text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [body for kind, body in BLOCK.findall(text) if kind == language]


def package(page: str, folder: Path) -> None:
    """What the page's blocks make: the files that name themselves, and the metadata with the entry points."""
    for body in [*blocks(page, "python"), *blocks(page, "yaml")]:
        if named := FILE.match(body):
            (folder / named[1]).write_text(body, encoding="utf-8")
    points = "\n".join(blocks(page, "toml"))
    points = re.sub(r'\[project\.entry-points\."([\w.]+)"\]', r"[\1]", points).replace('"', "")
    metadata = folder / "acme-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(points, encoding="utf-8")


def test_every_seam_has_a_guide_that_names_its_group() -> None:
    """A group of entry points without a guide is a seam that nobody can use."""
    assert set(SEAMS) == set(registry.GROUPS)
    for group, page in SEAMS.items():
        assert any(f'"{group}"' in block for block in blocks(page, "toml")), f"{page} has no entry of {group}"


@pytest.mark.torch
@pytest.mark.parametrize(
    "section", [pytest.param(name, marks=pytest.mark.full if name in SLOW else ()) for name in WALKED]
)
def test_a_guide_can_be_followed(section: str, tmp_path: Path) -> None:
    """Each command of a section ends with 0 in a folder that has only the files of the page."""
    site, work = tmp_path / "site-packages", tmp_path / "work"
    site.mkdir()
    package(PLUGIN, site)
    work.mkdir()
    for data in site.glob("*.yaml"):
        (work / data.name).write_bytes(data.read_bytes())
    commands = [
        line.removeprefix("$ ")
        for block in blocks(PLUGIN, "console", section)
        for line in block.splitlines()
        if line.startswith("$ ")
    ]
    assert len(commands) > 1
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("TORCHGAUGE_")},
        "HOME": str(tmp_path),
        "ACME_LOCK": str(tmp_path / "lock"),
        "OMP_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH", "")])]),
    }
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command],
            check=False,
            capture_output=True,
            text=True,
            cwd=work,
            env=environment,
            timeout=DEADLINE_S,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
