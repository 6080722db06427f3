"""The simulated device behaves as PyTorch, models and compilers expect of a device."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest


def names(group: str) -> list[str]:
    """List the checks of a group without importing it, as that would import torch."""
    tree = ast.parse((Path(__file__).parent / "checks" / f"{group}.py").read_text(encoding="utf-8"))
    return [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("check_")]


@pytest.mark.parametrize("name", names("tensors"))
def test_tensors(check, name):
    """Tensors, storages, operators and random numbers work; each check states what it expects."""
    check("tensors", name)


@pytest.mark.parametrize("name", names("models"))
def test_models(check, name):
    """Whole models give the CPU's results; each check states what it expects."""
    check("models", name)


@pytest.mark.parametrize("name", names("compiling"))
def test_compiling(check, name):
    """torch.compile and torch.export work; each check states what it expects."""
    check("compiling", name)
