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
    "torchgauge.suites": "add-a-suite.md",
    "torchgauge.scenarios": "add-a-scenario.md",
    "torchgauge.backends": "add-a-backend.md",
    "torchgauge.publishers": "add-a-publisher.md",
    "torchgauge.executors": "add-an-executor.md",
    "torchgauge.checks": "check-a-device.md",
    "torchgauge.metrics": "add-a-metric.md",
}
SLOW = ("add-a-suite.md", "add-a-scenario.md", "add-a-backend.md")
"""Guides whose commands run torch."""
WALKED = (*SLOW, "add-a-publisher.md", "add-an-executor.md", "add-a-metric.md")


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of one language, in order."""
    text = (GUIDES / page).read_text(encoding="utf-8")
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
    "page", [pytest.param(page, marks=pytest.mark.full if page in SLOW else ()) for page in WALKED]
)
def test_a_guide_can_be_followed(page: str, tmp_path: Path) -> None:
    """Each command ends with 0 in a folder that holds what the page wrote, and nothing else."""
    site, work = tmp_path / "site-packages", tmp_path / "work"
    site.mkdir()
    package(page, site)
    work.mkdir()
    for data in site.glob("*.yaml"):
        (work / data.name).write_bytes(data.read_bytes())
    commands = [
        line.removeprefix("$ ")
        for block in blocks(page, "console")
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
