"""Which models a claim counts."""

from __future__ import annotations

import pytest

from torchgauge.errors import UnknownNameError
from torchgauge.harness.planning.claim_models import list_models
from torchgauge.results.claims.claim import Select


def names(suite: str, **changes: object) -> list[str]:
    """The models of one suite that a selection counts."""
    return [model for _, model in list_models(Select(suites=(suite,), **changes), {}).models]


def test_a_tier_holds_the_ones_before_it():
    """Smoke is in standard, and standard in full."""
    smoke, standard, full = (set(names("timm", tier=tier)) for tier in ("smoke", "standard", "full"))
    assert smoke < standard < full
    assert len(full) >= 65


def test_all_means_the_suites_of_models():
    """The toy suite and the suites of checks are no models."""
    suites = {suite for suite, _ in list_models(Select(), {"ops": ["add"], "toy": ["sum"]}).models}
    assert suites == {"torchbench", "huggingface", "timm"}


def test_all_is_the_population_of_pytorch():
    """A private suite of the store does not decide what is claimed of PyTorch's; it is named, and can be."""
    stored = {"timm": ["resnet18"], "ours": ["net"], "toy": ["sum"]}
    found = list_models(Select(), stored)
    assert {suite for suite, _ in found.models} == {"torchbench", "huggingface", "timm"}
    assert found.notes == ("suite ours is not PyTorch's and not counted; --suite ours counts it",)
    both = list_models(Select(suites=("all", "ours")), stored)
    assert ("ours", "net") in both.models
    assert not any("not counted" in note for note in both.notes)


def test_patterns_select_by_name_and_by_suite():
    """A glob over names, and suite/model."""
    assert names("timm", models=("timm/resnet18*",)) or names("timm", models=("*resnet*",))
    assert all("resnet" in name for name in names("timm", models=("*resnet*",)))


def test_what_only_the_store_knows_is_counted_and_said():
    """An imported model that no suite lists, and a suite that is not installed."""
    found = list_models(Select(suites=("timm", "mine")), {"timm": ["my_net"], "mine": ["a"]})
    assert ("timm", "my_net") in found.models
    assert found.unlisted == (("timm", "my_net"), ("mine", "a"))
    assert found.notes == ("suite mine is not installed: only what the store has of it is counted",)


def test_a_stored_model_of_another_tier_is_left_out():
    """The tier of the claim decides, whatever else was measured."""
    full = set(names("timm")) - set(names("timm", tier="smoke"))
    other = min(full)
    found = list_models(Select(suites=("timm",), tier="smoke"), {"timm": [other]})
    assert ("timm", other) not in found.models


def test_a_model_without_the_mode_is_not_counted():
    """A mode that no suite offers counts what the store has of it."""
    found = list_models(Select(suites=("timm",), mode="generate"), {"timm": ["my_net"]})
    assert found.models == (("timm", "my_net"),)


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


def test_a_model_that_only_the_store_has_can_be_named():
    """A plain name is known where the store has it."""
    found = list_models(Select(suites=("timm",), models=("my_net",)), {"timm": ["my_net"]})
    assert found.models == (("timm", "my_net"),)


def test_an_unknown_suite_is_named_with_suggestions():
    """Neither installed nor in the store."""
    with pytest.raises(UnknownNameError, match="did you mean timm"):
        list_models(Select(suites=("tim",)), {})
