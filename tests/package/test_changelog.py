"""A release needs version, tag and changelog to agree; its notes are a section of the changelog."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from source_tree import ROOT

from torchgauge import __version__
from torchgauge.cli.version import described_version

TREE = ("CHANGELOG.md", "pyproject.toml", "scripts/release.py", "src/torchgauge/__init__.py")


def release(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(tree / "scripts" / "release.py"), *arguments]
    return subprocess.run(command, cwd=tree, check=False, capture_output=True, text=True)


def set_version(tree: Path, version: str) -> None:
    path = tree / "src" / "torchgauge" / "__init__.py"
    path.write_text(path.read_text(encoding="utf-8").replace(__version__, version), encoding="utf-8")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What a release reads and writes, in a folder of its own."""
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_check_of_a_release_passes_where_version_tag_and_changelog_agree(tree):
    """The message names each of them that does not."""
    refused = release(tree, "check", "--tag", "v1.2.3")
    assert refused.returncode == 2
    for fault in (f"{__version__}, which is no release", "the tag is v1.2.3", "(not released)'; write: ## "):
        assert fault in refused.stderr
    set_version(tree, "1.2.3")
    changelog = tree / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    for head, code in (("1.2.3 (not released)", 2), ("1.2.30 (2026-12-01)", 2), ("1.2.3 (2026-12-01)", 0)):
        changelog.write_text(re.sub(r"^## .*$", f"## {head}", text, count=1, flags=re.MULTILINE), "utf-8")
        checked = release(tree, "check", "--tag", "v1.2.3")
        assert checked.returncode == code, (head, checked.stderr)


def test_the_notes_are_the_first_section_of_the_changelog(tree):
    """They end where the section before begins."""
    (tree / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 1.2.3 (2026-12-01)\n\n### Fixed\n\n- A.\n\n## 1.2.2 (2026-11-01)\n\n- B.\n",
        encoding="utf-8",
    )
    assert release(tree, "notes", "--out", "notes.md").returncode == 0
    assert (tree / "notes.md").read_text(encoding="utf-8") == "### Fixed\n\n- A.\n"


@pytest.mark.parametrize("version", ["1.2", "1.2.3.dev0", "01.2.3", "1.2.3-rc1", "1.2.3+local", "v1.2.3"])
def test_only_a_normal_version_of_three_parts_is_a_release(tree, version):
    """PEP 440 knows more, and would write some of these in another way."""
    set_version(tree, version)
    assert "which is no release" in release(tree, "check").stderr


def test_a_development_tree_says_its_commit_and_a_release_does_not(tmp_path):
    """Between releases the commit stands after the version, with a word where files were changed."""
    (tmp_path / "file").write_text("one", encoding="utf-8")
    assert described_version("1.2.3.dev0", tmp_path) == "1.2.3.dev0"
    for words in ("init -q", "add file", "-c user.name=t -c user.email=t@example.invalid commit -q -m one"):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        subprocess.run(["git", *words.split()], cwd=tmp_path, check=True, env=environment)
    said = described_version("1.2.3.dev0", tmp_path)
    assert re.fullmatch(r"1\.2\.3\.dev0\+g[0-9a-f]{12}", said)
    assert described_version("1.2.3", tmp_path) == "1.2.3"
    (tmp_path / "file").write_text("two", encoding="utf-8")
    assert described_version("1.2.3.dev0", tmp_path) == f"{said}.dirty"
