"""The hash of torchgauge comes from pip itself, or from the person who wrote it down."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from small_wheels import wheel

from torchgauge.errors import UsageError
from torchgauge.workflows.package_hash import hashed


@pytest.fixture
def index(monkeypatch, tmp_path: Path) -> Path:
    """A folder of wheels, which is all that pip sees."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("asked", ["gauge==1.0", "gauge", "gauge>=0.5"])
def test_a_release_is_pinned_to_its_version_and_hash(index: Path, asked: str) -> None:
    """Whatever it was called: a file of hashes takes exact versions alone."""
    found = hashlib.sha256(wheel(index, "gauge", "something-that-is-not-there").read_bytes()).hexdigest()
    assert hashed(asked) == f"gauge==1.0 --hash=sha256:{found}"


def test_an_address_keeps_its_place(index: Path) -> None:
    """The archive at the address is what is hashed."""
    path = wheel(index, "gauge")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    assert hashed(f"gauge @ {path.as_uri()}") == f"gauge @ {path.as_uri()} --hash=sha256:{found}"


def test_a_hash_that_is_written_down_is_taken_without_pip(index: Path) -> None:
    """So that workflows can be written without a network."""
    told = "nowhere==1.0 --hash=sha256:" + "a" * 64
    assert hashed(told) == told


@pytest.mark.parametrize("asked", ["nowhere==1.0", "--index-url=https://evil.example/ nowhere"])
def test_what_pip_does_not_find_is_an_error_with_a_way_out(index: Path, asked: str) -> None:
    """Nothing is written without a hash."""
    with pytest.raises(UsageError, match="pip does not find") as caught:
        hashed(asked)
    assert "torchgauge.yml" in caught.value.hint
