"""The promises that are recorded beside this file hold; ``python tests/frozen/promises.py`` renews them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import promises

NAMES = (
    *(f"{store}.{part}.txt" for store in promises.STORES for part in ("commands", "site")),
    *("yaml.txt", "journal.txt", "names.txt"),
)
RENEW = (
    "python tests/frozen/promises.py renews what is recorded, and prints this difference; a person reads it"
)


@pytest.fixture(scope="module")
def recorded_now() -> dict[str, str]:
    """All promises as the code keeps them now."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    return promises.record()


@pytest.mark.torch
@pytest.mark.parametrize("name", NAMES)
def test_a_promise_is_kept(name: str, recorded_now: dict[str, str]) -> None:
    """Equal to the letter, after what is normalised; the difference is shown."""
    difference = promises.difference(name, recorded_now[name])
    assert not difference, f"\n{difference[:20_000]}\n{RENEW}"


def test_each_recorded_file_is_compared() -> None:
    """No file of promises lies there that nothing compares."""
    assert sorted(file.name for file in promises.RECORDED.iterdir()) == sorted(NAMES)
