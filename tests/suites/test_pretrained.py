"""Pretrained weights: what is loaded from a folder, and what is said where there is nothing to load."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

needs_libraries = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "timm", "transformers")),
    reason="needs torch, timm and transformers",
)


@pytest.fixture(scope="module")
def offline(child: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    return child("child_pretrained.py", str(tmp_path_factory.mktemp("offline")), "offline")


@pytest.mark.torch
@needs_libraries
@pytest.mark.parametrize("library", ["transformers", "timm"])
def test_the_weights_of_a_folder_are_loaded(offline: Any, library: str) -> None:
    """Every tensor is the saved one, the row says where it came from, and dropout is off all the same."""
    built = offline[library]
    assert built["equal"]
    assert built["finite"]
    assert built["dropout"] == 0
    assert any("weights" in note for note in built["notes"]), built["notes"]
    assert not any("batch norms" in note for note in built["notes"]), "published statistics are kept"


@pytest.mark.torch
@needs_libraries
def test_a_head_that_no_checkpoint_has_is_seeded_and_said(offline: Any) -> None:
    """What is not in the checkpoint comes from the workload's seed, and a note counts it."""
    assert offline["head"]["repeated"]
    assert any(note.startswith("2 tensors are not in ") for note in offline["head"]["notes"])


@pytest.mark.torch
@needs_libraries
@pytest.mark.parametrize(
    ("case", "kind", "message"),
    [
        ("no checkpoint", "NotImplementedError", "BertForMaskedLM has no known pretrained weights"),
        ("no weights", "NotImplementedError", "publishes no weights of botnet50ts_256"),
        ("no class", "MissingPackageError", "has no BertForNothing"),
        ("no model", "MissingPackageError", "has no resnet18000"),
        ("no tag", "MissingPackageError", "has no resnet18.nonsense"),
    ],
)
def test_what_a_library_does_not_have_is_said(offline: Any, case: str, kind: str, message: str) -> None:
    """Weights that nobody publishes are unsupported; a model that the installed version lacks is skipped."""
    error = offline["errors"][case]
    assert error.startswith(f"{kind}: ")
    assert message in error


@pytest.mark.torch
@needs_libraries
def test_no_network_is_said_whether_forbidden_or_broken(
    offline: Any, child: Callable[..., Any], tmp_path: Path
) -> None:
    """Offline mode and a hub that does not answer both mean that nothing can be downloaded."""
    unreachable = child("child_pretrained.py", str(tmp_path), "unreachable")
    wanted = {"hub of transformers": "google-bert/bert-base-uncased", "hub of timm": "resnet18"}
    for errors in (offline["errors"], unreachable["errors"]):
        for case, name in wanted.items():
            assert errors[case].startswith("NoNetworkError: "), errors[case]
            assert name in errors[case]
