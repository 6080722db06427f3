"""What must not stand in a template or a module of the site: ways by which text becomes markup or code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchgauge import dashboard

ROOT = Path(dashboard.__file__).parent
MODULES = sorted((ROOT / "static").glob("*.js"))
TEMPLATES = sorted((ROOT / "templates").iterdir())
STYLE_WITH_DIGEST = "<style>{{ style|safe }}</style>"
"""In the one page that is a single file: the package's own style, whose digest is in the page's policy."""

SOURCES = sorted(ROOT.rglob("*.py"))

IN_MODULES = {
    "markup from text": r"(?:inner|outer|insertAdjacent|set)HTML\w*|createContextualFragment|DOMParser",
    "document.write": r"document\s*\.\s*write",
    "code from text": r"\beval\s*\(|new\s+Function\b|set(?:Timeout|Interval)\s*\(\s*[\"'`]|javascript:",
    "an inline handler": r"\.on[a-z]+\s*=[^=]|setAttribute\(\s*[\"'`](?:on|style)|srcdoc",
    "an address elsewhere": r"https?://(?!www\.w3\.org/|github\.com/pytorch/pytorch/commit/\$)",
    "a debugging leftover": r"\bconsole\s*\.|\bdebugger\b|@ts-(?:ignore|nocheck)",
    "storage of the browser": r"localStorage|sessionStorage|document\.cookie|indexedDB",
}
IN_TEMPLATES = {
    "an inline handler": r"\son[a-z]+\s*=",
    "an inline style": r"\sstyle\s*=|<style\b",
    "an inline script": r"<script\b(?![^>]*\bsrc=)|javascript:|srcdoc",
    "an address elsewhere": r"(?:src|href)\s*=\s*[\"']?\s*(?:https?:)?//",
    "text that is not escaped": r"\|\s*safe\b|autoescape\s+false",
}
IN_SOURCES = {
    "an inline handler": r"<[a-z][^>]*\son[a-z]+=",
    "an inline style": r"<[a-z][^>]*\sstyle=",
    "an inline script": r"<script\b(?![^>]*\bsrc=)",
    "escaping switched off": r"autoescape\s*=\s*False",
}


def _found(paths: list[Path], rules: dict[str, str]) -> list[str]:
    return [
        f"{path.name}:{number}: {rule}: {line.strip()[:80]}"
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for rule, pattern in rules.items()
        if not (path.name == "support_table.html.j2" and line.startswith(STYLE_WITH_DIGEST))
        if re.search(pattern, line)
    ]


def test_no_module_makes_markup_or_code_of_text() -> None:
    assert len(MODULES) >= 8
    assert _found(MODULES, IN_MODULES) == []


def test_no_template_has_a_script_a_style_or_a_handler_of_its_own() -> None:
    assert len(TEMPLATES) >= 10
    assert _found(TEMPLATES, IN_TEMPLATES) == []


def test_no_page_written_in_python_has_them_either() -> None:
    assert _found(SOURCES, IN_SOURCES) == []


@pytest.mark.parametrize(
    ("rules", "line"),
    [
        (IN_MODULES, "node.innerHTML = text;"),
        (IN_MODULES, "button.onclick = () => 1;"),
        (IN_MODULES, 'setTimeout("go()", 1)'),
        (IN_TEMPLATES, '<p style="color: red">'),
        (IN_TEMPLATES, '<a onclick="go()">'),
        (IN_TEMPLATES, "<script>go()</script>"),
        (IN_TEMPLATES, "{{ text | safe }}"),
        (IN_SOURCES, 'yield f"<td style=\\"width: {n}\\">"'),
    ],
)
def test_the_rules_find_what_they_are_for(rules: dict[str, str], line: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(line)
    assert _found([path], rules)
