"""The asynchronous device behaves as PyTorch and models expect of a device, and breaks as it is told to."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch


def names(group: str) -> list[str]:
    """List the checks of a group without importing it, as that would import torch."""
    tree = ast.parse((Path(__file__).parent / "checks" / f"{group}.py").read_text(encoding="utf-8"))
    return [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("check_")]


def cases() -> list[tuple[str, str]]:
    """Every check with its group."""
    groups = ("tensors", "streams", "memory", "randomness", "models", "faults")
    return [(group, name) for group in groups for name in names(group)]


@pytest.mark.parametrize(("group", "name"), cases())
def test_check(check, group, name):
    """Each check states what it expects."""
    check(group, name)
