"""News fragments become a section of the changelog, and a release is one only where everything says so."""

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

FRAGMENTS = sorted(path for path in (ROOT / "changelog.d").glob("*.md") if path.name != "README.md")
TREE = ("CHANGELOG.md", "pyproject.toml", "scripts/release.py", "src/torchgauge/__init__.py")


def towncrier(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "towncrier", "build", *arguments]
    return subprocess.run(command, cwd=tree, check=False, capture_output=True, text=True)


def release(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(tree / "scripts" / "release.py"), *arguments]
    return subprocess.run(command, cwd=tree, check=False, capture_output=True, text=True)


def set_version(tree: Path, version: str) -> None:
    path = tree / "src" / "torchgauge" / "__init__.py"
    path.write_text(path.read_text(encoding="utf-8").replace(__version__, version), encoding="utf-8")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What a release reads and writes, in a folder of its own, with the fragments of today."""
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "changelog.d", tmp_path / "changelog.d")
    return tmp_path


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.name)
def test_a_fragment_is_sentences_in_one_paragraph(path):
    """It becomes one item of a list, so it has no heading, list or empty line of its own."""
    text = path.read_text(encoding="utf-8")
    assert re.match(r"[A-Z`]", text), "it begins as a sentence does"
    assert re.search(r"[.:]\n\Z", text), "it ends with a full stop and one line break"
    assert "\n\n" not in text
    assert not re.search(r"^\s*(#|[-*+] |\d+\. )", text, re.MULTILINE)


def test_every_fragment_is_in_the_draft_under_its_kind(tree):
    """What the next section would say is complete, and each kind stands once."""
    (tree / "changelog.d" / "gone.removed.md").write_text("Something is gone.\n", encoding="utf-8")
    done = towncrier(tree, "--draft", "--version", "1.2.3", "--date", "2026-12-01")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("## 1.2.3 (2026-12-01)\n\n### ")
    kinds = dict(re.findall(r"^### (\w+)\n\n(.*?)(?=\n### |\Z)", done.stdout, re.MULTILINE | re.DOTALL))
    for path in (tree / "changelog.d").glob("*.*.md"):
        told = " ".join(kinds[path.suffixes[-2][1:].capitalize()].split())
        assert "- " + " ".join(path.read_text(encoding="utf-8").split()) in told, path.name


def test_a_fragment_of_an_unknown_kind_is_refused(tree):
    """A typing error in a name must not lose the news."""
    (tree / "changelog.d" / "new.improved.md").write_text("Something is better.\n", encoding="utf-8")
    done = towncrier(tree, "--draft", "--version", "1.2.3")
    assert done.returncode != 0
    assert "new.improved.md" in done.stdout + done.stderr


def test_a_section_goes_above_older_ones_and_takes_its_fragments(tree):
    """What stood in the changelog stays, and the check of the release passes from then on."""
    before = (tree / "CHANGELOG.md").read_text(encoding="utf-8")
    refused = release(tree, "check", "--tag", "v1.2.3")
    assert refused.returncode == 2
    for fault in (f"{__version__}, which is no release", "the tag is v1.2.3", "CHANGELOG.md", "changelog.d"):
        assert fault in refused.stderr

    assert towncrier(tree, "--yes", "--version", "1.2.3").returncode == 0
    set_version(tree, "1.2.3")
    assert [path.name for path in (tree / "changelog.d").glob("*.*.md")] == []
    passed = release(tree, "check", "--tag", "v1.2.3")
    assert passed.returncode == 0, passed.stderr
    first = (tree / "CHANGELOG.md").read_text(encoding="utf-8")
    assert first.startswith(before.rstrip())

    (tree / "changelog.d" / "more.fixed.md").write_text("More is right.\n", encoding="utf-8")
    assert towncrier(tree, "--yes", "--version", "1.3.0").returncode == 0
    second = (tree / "CHANGELOG.md").read_text(encoding="utf-8")
    assert second.startswith(before.rstrip())
    assert second.index("## 1.3.0") < second.index("## 1.2.3")
    assert second.endswith(first.removeprefix(before.rstrip()).lstrip())
    assert "of 1.3.0, not of 1.2.3" in release(tree, "check").stderr


def test_the_notes_are_the_section_of_the_version(tree):
    """They end where the section before begins; between releases they are the draft of the next."""
    (tree / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 1.2.3 (2026-12-01)\n\n### Fixed\n\n- A.\n\n## 1.2.2 (2026-11-01)\n\n- B.\n",
        encoding="utf-8",
    )
    assert release(tree, "notes", "--out", "draft.md").returncode == 0
    assert "### Added" in (tree / "draft.md").read_text(encoding="utf-8")
    set_version(tree, "1.2.3")
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
