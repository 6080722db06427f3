"""torchvision whose compiled operators do not load can still be imported."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="needs torchvision"),
]


@pytest.mark.parametrize("order", ["import-first", "schemas-first"])
def test_the_schemas_make_the_import_work(child: Callable[..., Any], order: str) -> None:
    """The import works after the definition, also when it failed before; a second call changes nothing."""
    facts = child("child_torchvision.py", order)
    assert facts["after"] == ""
    assert facts["transforms"] is True
    assert facts["notes"][0] == facts["notes"][1] == facts["again"]
    if order == "import-first":
        broken = "operator torchvision::nms does not exist" in facts["plain"]
        assert broken or facts["plain"] == ""
        assert bool(facts["notes"][0]) is broken
