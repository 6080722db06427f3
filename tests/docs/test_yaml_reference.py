"""The reference of YAML keys has every strict structure."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

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
