"""The realised hash identifies what was built, on every device and in every dtype."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch


@pytest.fixture(scope="session")
def realised(child):
    """Hash, parameters and inputs by variation."""
    return child("child_realise.py")


@pytest.mark.parametrize("variation", ["again", "dtype", "seed", "mode"])
def test_the_same_mathematics_has_the_same_hash(realised, variation) -> None:
    """Another dtype, seed or mode builds the same parameters and inputs."""
    assert realised[variation][0] == realised["base"][0]


@pytest.mark.parametrize("variation", ["batch", "model", "python", "cast", "synthetic"])
def test_other_mathematics_has_another_hash(realised, variation) -> None:
    """Another shape or model is something else, so are inputs that stand for others; a cast is not."""
    assert realised[variation][0] != realised["base"][0]


def test_the_built_thing_is_described(realised) -> None:
    """Parameters are counted and inputs are written out; a model without torch has none."""
    assert realised["base"][1] > 0
    assert realised["base"][2].startswith("args.0: float32[4x")
    assert realised["python"][1:] == [0, ""]
    assert realised["synthetic"][2].endswith("synthetic, in the shape of a data set")
