"""What a suite's models need from pip: merged, ordered, and without what is never fetched."""

from __future__ import annotations

import pytest

from torchgauge import registry
from torchgauge.suites.install_needs import bundled_install, distribution_of, needs_of
from torchgauge.suites.suite import ModelEntry


def entry(name: str, *requirements: str, packages: tuple[str, ...] = ("torch",)) -> ModelEntry:
    return ModelEntry(
        name, ("full",), {"inference": 1}, packages=packages, recipe={"requirements": list(requirements)}
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("torch_geometric==2.4.0", "torch-geometric"),
        ("Pillow", "pillow"),
        ("git+https://github.com/facebookresearch/detectron2@0df2d73d0013", "detectron2"),
        ("git+https://example.org/x.git#egg=some_name", "some-name"),
    ],
)
def test_a_requirement_has_the_name_of_its_distribution(text: str, name: str) -> None:
    """As package indexes spell it, also where it is an address."""
    assert distribution_of(text) == name


def test_what_may_do_harm_comes_last() -> None:
    """Compiled, pinned and foreign packages follow everything else; torch is never asked for."""
    made = [
        entry("a", "torch_scatter", "tqdm"),
        entry("b", "git+https://example.org/lib.git", "einops", "functorch"),
        entry("c", "omegaconf", "omegaconf==2.3.0"),
        entry("d", "Tqdm"),
    ]
    needs = needs_of("mine", made)
    assert [need.name for need in needs] == ["tqdm", "einops", "omegaconf", "torch-scatter", "lib"]
    assert [bool(need.last) for need in needs] == [False, False, False, True, True]
    assert {need.name: need.models for need in needs}["tqdm"] == ("a", "d")
    assert {need.name: need.texts for need in needs}["omegaconf"] == ("omegaconf==2.3.0",)
    assert {need.name: need.isolated for need in needs}["torch-scatter"] is False


def test_torchbench_needs_what_its_models_say() -> None:
    """Each requirement of each model is there, but for what is never fetched; shared ones are for all."""
    models = registry.load("torchgauge.suites", "torchbench").models()
    needs = {need.name: need for need in needs_of("torchbench", models)}
    facts = bundled_install()
    asked = {
        distribution_of(str(text))
        for model in models
        for text in (*model.packages, *model.recipe.get("requirements", ()))  # type: ignore[misc]
    }
    shared = {distribution_of(text) for text in facts.suites["torchbench"]}
    assert set(needs) == (asked | shared) - set(facts.never)
    assert needs["setuptools"].texts == ("setuptools<81",)
    assert needs["timm"].models == ()
    assert not {"torch", "functorch"} & set(needs)
    assert set(facts.last) <= asked, "a package that comes last and that nobody needs"
