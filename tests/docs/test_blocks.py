"""What can be checked in a fenced block without running it: Python, YAML and TOML."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

import pytest
import tomllib
import yaml

from torchgauge import registry
from torchgauge.errors import DataFileError
from torchgauge.harness.bisect.builds import load_builds
from torchgauge.harness.validation import validate
from torchgauge.workflows.config import read_config

sys.path.insert(0, str(Path(__file__).parent))

from doc_pages import Block, all_blocks

NOT_OURS = {"jobs", "on", True, "apiVersion"}
"""Keys of a workflow of GitHub's and of a manifest of Kubernetes; YAML 1.1 reads `on` as true."""


def imported(tree: ast.AST) -> list[tuple[str, str]]:
    """Module and name of each import from torchgauge; no name where the module itself is imported."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "torchgauge":
            found += [(node.module, each.name) for each in node.names]
        elif isinstance(node, ast.Import):
            found += [(each.name, "") for each in node.names if each.name.split(".")[0] == "torchgauge"]
    return found


def problem_of_python(text: str) -> str:
    """Why a block is no Python, or which import does not resolve; empty where it is right."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    for module, name in imported(tree):
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None:
            return f"there is no module {module}"
        below = Path(spec.origin).parent / (name or "-") if spec.submodule_search_locations else Path("-")
        if name and name not in defined(Path(spec.origin)) and not below.with_suffix(".py").is_file():
            return f"{module} has no {name}"
    return ""


def defined(source: Path) -> set[str]:
    """Names that a module has, read and not imported: a worker's modules would bring torch in here."""
    found: set[str] = set()
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(each.asname or each.name).split(".")[0] for each in node.names}
        else:  # names for type checkers are public ones that are imported when they are used
            found |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            imports = [each for each in ast.walk(node) if isinstance(each, ast.ImportFrom)]
            found |= {each.asname or each.name for one in imports for each in one.names}
    return found


def problem_of_yaml(text: str, folder: Path) -> str:
    """Why the loader of its kind refuses a block; empty where it takes it."""
    try:
        keys = set(yaml.safe_load(text))
    except yaml.YAMLError as error:
        return f"no YAML: {error}"
    path = folder / "block.yaml"
    path.write_text(text, encoding="utf-8")
    try:
        if keys & NOT_OURS:
            return ""
        if "pools" in keys:
            if "campaign" not in keys:  # the part of the file that the page is about
                path.write_text(f"version: 1\ncampaign: {{suites: [toy]}}\n{text}", encoding="utf-8")
            read_config(path)
        elif "builds" in keys:
            load_builds(path)
        elif keys == {"models", "suite"}:
            # The recipes are the reader's own: their fields are in the guide's Python.
            whole = yaml.safe_load(text)
            for model in whole["models"]:
                model.pop("recipe", None)
            path.write_text(yaml.safe_dump(whole), encoding="utf-8")
            validate_all(path)
        else:
            validate_all(path)
    except DataFileError as error:
        return str(error)
    return ""


def validate_all(path: Path) -> None:
    """Raise the first mistake in the file, if there is one."""
    _, mistakes = validate([str(path)])
    if mistakes:
        raise mistakes[0]


@pytest.mark.parametrize("block", all_blocks("python"), ids=str)
def test_python_compiles_and_its_imports_are_there(block: Block) -> None:
    """Each block is Python, and each name of torchgauge's is where the block says."""
    assert not problem_of_python(block.text)


@pytest.mark.parametrize("block", all_blocks("yaml"), ids=str)
def test_yaml_is_what_its_loader_takes(block: Block, tmp_path: Path) -> None:
    """Each block is a whole file of its kind, and the real loader takes it."""
    assert not problem_of_yaml(block.text, tmp_path)


@pytest.mark.parametrize("block", all_blocks("toml"), ids=str)
def test_toml_names_groups_that_there_are(block: Block) -> None:
    """Each block is TOML, and a group of entry points in it is one of torchgauge's or of torch's."""
    groups = tomllib.loads(block.text).get("project", {}).get("entry-points", {})
    assert {group for group in groups if group.startswith("torchgauge.")} <= set(registry.GROUPS)
