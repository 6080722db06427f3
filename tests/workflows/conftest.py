"""A night of two shards and the files of a set of it that is taken as it is: what attacks begin with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from campaign_sets import Files, Night, files_of


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Night:
    """A planned night with a store, of which each module has its own."""
    return Night(tmp_path_factory.mktemp("night"))


@pytest.fixture(scope="module")
def good(night: Night) -> Files:
    """The files of a set that is taken as it is."""
    return files_of(night.pack(1))
