"""The reference of YAML keys is whole: every strict structure, every key, and a meaning for each."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import yaml_keys  # noqa: E402

WITHOUT_KEYS = {"AnyRecipe", "_Strict", "Select"}
"""The recipe of a suite that reads none, a base of others, and a file's selection with what options add."""


def strict_structures() -> set[str]:
    """Names of the classes in ``src`` that refuse unknown fields, and of those that inherit it."""
    found: set[str] = set()
    bases: dict[str, set[str]] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(
                    each.id for each in node.bases if isinstance(each, ast.Name)
                )
                if any(each.arg == "forbid_unknown_fields" for each in node.keywords):
                    found.add(node.name)
    return found | {name for name, above in bases.items() if above & found}


def test_every_strict_structure_is_in_the_reference() -> None:
    """A new kind of file, or a part of one, is described: add it to ``KINDS`` in ``docs/yaml_keys.py``."""
    assert strict_structures() - WITHOUT_KEYS <= yaml_keys.structures()


def test_the_page_has_a_row_for_a_key_with_its_type_default_and_limits() -> None:
    """What the loader enforces is what the page says."""
    rows = yaml_keys.yaml_files().splitlines()
    assert any(row.startswith("| `shards` | whole number, at least 1, at most 256 | `1` |") for row in rows)
    assert any(row.startswith("| `alpha` | number, above 0, below 1 | empty |") for row in rows)
    assert any(row.startswith("| `suite` | text, not empty | **required** |") for row in rows)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("branch = ", "# branch = ", "say what 'branch' of [StoreFields] means"),
        ("[StoreFields]\n", '[StoreFields]\nbrunch = "a meal"\n', "[StoreFields] brunch"),
    ],
)
def test_a_key_and_its_meaning_need_each_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, old: str, new: str, problem: str
) -> None:
    """A key without a meaning, and a meaning of no key, end the generator with their name."""
    text = yaml_keys.MEANINGS.read_text(encoding="utf-8")
    assert old in text
    copy = tmp_path / "yaml_meanings.toml"
    copy.write_text(text.replace(old, new, 1), encoding="utf-8")
    monkeypatch.setattr(yaml_keys, "MEANINGS", copy)
    with pytest.raises(SystemExit, match="yaml_meanings") as raised:
        yaml_keys.yaml_files()
    assert problem in str(raised.value)


def test_a_default_is_shown_as_it_is_written() -> None:
    """Lists and texts stand as they could be typed."""

    class Part(msgspec.Struct):
        """A structure of this test."""

        words: tuple[str, ...] = ("a", "b")
        text: str = "c"
        nothing: str | None = None

    fields = msgspec.inspect.type_info(Part).fields
    assert [yaml_keys._default(each) for each in fields] == ['`["a", "b"]`', "`c`", "empty"]
