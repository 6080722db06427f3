"""Which models a claim counts."""

from __future__ import annotations

import pytest

from torchgauge.errors import UnknownNameError
from torchgauge.harness.planning.claim_models import list_models
from torchgauge.results.claims.claim import Select


def names(suite: str, **changes: object) -> list[str]:
    """The models of one suite that a selection counts."""
    return [model for _, model in list_models(Select(suites=(suite,), **changes), {}).models]


def test_all_is_the_population_of_pytorch():
    """A private suite of the store does not decide what is claimed of PyTorch's; it is named, and can be."""
    stored = {"timm": ["resnet18"], "ours": ["net"], "toy": ["sum"]}
    found = list_models(Select(), stored)
    assert {suite for suite, _ in found.models} == {"torchbench", "huggingface", "timm"}
    assert found.notes == ("suite ours is not part of PyTorch, so not counted; --suite ours counts it",)
    both = list_models(Select(suites=("all", "ours")), stored)
    assert ("ours", "net") in both.models
    assert not any("not counted" in note for note in both.notes)


def test_what_only_the_store_knows_is_counted_and_said():
    """An imported model that no suite lists, and a suite that is not installed."""
    found = list_models(Select(suites=("timm", "mine")), {"timm": ["my_net"], "mine": ["a"]})
    assert ("timm", "my_net") in found.models
    assert found.unlisted == (("timm", "my_net"), ("mine", "a"))
    assert found.notes == ("suite mine is not installed: only its rows in the store are counted",)


def test_a_stored_model_of_another_tier_is_left_out():
    """The tier of the claim decides, whatever else was measured."""
    full = set(names("timm")) - set(names("timm", tier="smoke"))
    other = min(full)
    found = list_models(Select(suites=("timm",), tier="smoke"), {"timm": [other]})
    assert ("timm", other) not in found.models


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mode": "traning"}, "unknown mode 'traning'; did you mean training"),
        ({"dtype": "flot32"}, "unknown dtype 'flot32'; did you mean float32"),
        ({"models": ("resnet19",)}, "unknown model 'resnet19'; did you mean resnet18"),
    ],
)
def test_what_nothing_here_or_in_the_store_has_is_refused(changes, said):
    """A slip in a claim file would else be a claim that nothing was measured for."""
    with pytest.raises(UnknownNameError, match=said):
        list_models(Select(suites=("timm",), **changes), {})
