"""The docs are part of the product: names are in them, links resolve, generated pages are current."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

from torchgauge import registry
from torchgauge.harness.planning.configurations import bundled
from torchgauge.records import METRICS, Cause, Modifier, Phase, Status

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *(path for path in ROOT.glob("*.md")),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("packages/*/README.md"),
    ]
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def text_of(path: Path) -> str:
    """The page without its fenced blocks, which hold code and no links."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def relative_links() -> list[tuple[Path, str]]:
    """Page and target of every link to a file of this repository."""
    return [
        (page, target)
        for page in PAGES
        for target in LINK.findall(text_of(page))
        if not re.match(r"[a-z]+:", target)
    ]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def whole(folder: str) -> str:
    """All pages under ``folder`` as one text."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / folder).glob("**/*.md")))


@pytest.mark.parametrize("kind", [Status, Phase, Cause, Modifier], ids=lambda kind: kind.__name__)
def test_every_member_of_the_vocabulary_has_a_meaning_and_no_other_name_has(kind):
    """The data file of the statuses' page has one meaning for each status, phase, cause and modifier."""
    meanings = tomllib.loads((ROOT / "docs" / "status_meanings.toml").read_text(encoding="utf-8"))
    section = meanings[{"Status": "Statuses"}.get(kind.__name__, f"{kind.__name__}s")]
    assert sorted(section) == sorted(member.value for member in kind)


@pytest.mark.parametrize("name", [*METRICS, *bundled(), *registry.GROUPS])
def test_every_metric_configuration_and_plugin_group_is_in_the_docs(name):
    """A name that users meet in results or on the command line is written somewhere in ``docs``."""
    assert f"`{name}`" in whole("docs")


@pytest.mark.parametrize(
    ("page", "target"), relative_links(), ids=lambda value: value if isinstance(value, str) else value.name
)
def test_relative_links_resolve(page, target):
    """A link within the repository leads to a file that is there, and its anchor to a heading."""
    name, _, anchor = target.partition("#")
    found = (page.parent / name).resolve() if name else page
    assert found.exists(), f"{page.relative_to(ROOT)} links to {target}"
    assert found.is_relative_to(ROOT)
    if anchor:
        assert anchor in anchors(found), f"{page.relative_to(ROOT)} links to {target}"


def test_generated_pages_are_what_the_code_says():
    """``docs/generate_reference.py --check`` finds no difference."""
    script = ROOT / "docs" / "generate_reference.py"
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script), "--check"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
