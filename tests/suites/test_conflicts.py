"""Which installed versions are known to break others, by the rules that ship and by a person's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchgauge.errors import DataFileError
from torchgauge.suites.conflicts import bundled_conflicts, fitting, load_conflicts, misfit

RULES = {rule.package: rule for rule in bundled_conflicts()}


@pytest.mark.parametrize(
    ("package", "versions", "says"),
    [
        (
            "torchaudio",
            {"torchaudio": "2.1.0", "torch": "2.13.0"},
            "built for torch 2.1, but torch 2.13.0 is installed",
        ),
        ("torchaudio", {"torchaudio": "2.9.1", "torch": "2.9.0"}, ""),
        ("torchaudio", {"torchaudio": "2.11.0", "torch": "2.13.0"}, ""),  # its stable interface
        ("torchaudio", {"torchaudio": "2.11.0", "torch": "2.10.0"}, "needs torch 2.11 or later"),
        ("torchaudio", {"torchaudio": "2.11.0", "torch": "2.13.0+cpu"}, "is not a +cpu build"),
        ("torchaudio", {"torchaudio": "2.11.0"}, ""),  # without torch nothing is known
        ("torchvision", {"torchvision": "0.20.1", "torch": "2.13.0"}, "built for torch 2.5"),
        ("torchao", {"torchao": "0.18.0", "diffusers": "0.39.0"}, "torchao 0.18.0 beside diffusers 0.39.0"),
        ("torchao", {"torchao": "0.18.0", "diffusers": "0.30.3"}, ""),
        ("diffusers", {"diffusers": "0.30.3", "transformers": "5.23.0"}, "beside transformers 5.23.0 breaks"),
        ("diffusers", {"diffusers": "0.30.3", "transformers": "4.57.3"}, ""),
        ("numpy", {"numpy": "2.1.0", "torch": "2.2.2"}, "numpy 2.1.0 beside torch 2.2.2"),
        ("numpy", {"numpy": "2.1.0", "torch": "2.5.0"}, ""),
        ("setuptools", {"setuptools": "84.2.1", "librosa": "0.9.2"}, "pkg_resources"),
        ("setuptools", {"setuptools": "84.2.1", "librosa": "0.11.0"}, ""),
        ("tensorflow", {"tensorflow": "2.20.0", "transformers": "4.57.3"}, "tensorflow 2.20.0 beside"),
        ("tensorflow", {"tensorflow": "2.20.0", "transformers": "5.23.0"}, ""),
        ("jax", {"jax": "0.7.0", "transformers": "4.57.3"}, "jax 0.7.0 beside transformers 4.57.3"),
        ("flax", {"flax": "0.12.0", "transformers": "4.57.3"}, "flax 0.12.0 beside transformers 4.57.3"),
        ("opacus", {"opacus": "1.5.4"}, "opacus_cifar10"),
    ],
)
def test_versions_decide(package: str, versions: dict[str, str], says: str) -> None:
    """Each shipped rule finds what does not fit and leaves alone what does."""
    found = misfit(RULES[package], versions)
    assert (says in found) if says else (found == "")


def test_every_shipped_rule_has_a_case_above() -> None:
    """A rule that nobody tried may be wrong."""
    (mark,) = (m for m in test_versions_decide.pytestmark if m.name == "parametrize")  # type: ignore[attr-defined]
    assert {case[0] for case in mark.args[1] if case[2]} == set(RULES)


@pytest.mark.parametrize(
    ("package", "torch", "requirement"),
    [
        ("torchaudio", "2.5.1", "torchaudio==2.5.*"),
        ("torchaudio", "2.13.0", "torchaudio>=2.11"),
        ("torchaudio", "2.13.0+cpu", "torchaudio<0"),  # the index has none that fits
        ("torchvision", "2.5.1", "torchvision==0.20.*"),
        ("torchvision", "2.13.0+cpu", "torchvision==0.28.*"),
        ("opacus", "2.13.0", None),
    ],
)
def test_what_fits_can_be_asked_of_pip(package: str, torch: str, requirement: str | None) -> None:
    """The version that belongs to a torch, as a requirement."""
    assert fitting(RULES[package], {"torch": torch}) == requirement


WHOLE = """conflicts:
  - package: one
    since: "2"
    unneeded: true
    breaks: another package
    fix: uninstall -y one
    reason: it was seen to
    link: https://example.org/1
    date: 2026-11-01
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('    since: "2"\n', "", "the entry has no rule for a conflict"),
        ("    unneeded: true\n", "", "the entry has no pattern of error messages"),
        ("    unneeded: true\n", "    says: ['(']\n", "not a regular expression"),
        ("breaks:", "brakes:", "did you mean breaks"),
        ("conflicts:\n", "conflicts:\n" + WHOLE.partition("\n")[2], "has two rules"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    """``torchgauge validate`` names file, line and field."""
    path = tmp_path / "conflicts.yaml"
    path.write_text(WHOLE)
    assert [rule.package for rule in load_conflicts(path)] == ["one"]
    path.write_text(WHOLE.replace(old, new, 1))
    with pytest.raises(DataFileError, match=r"conflicts\.yaml:\d+") as caught:
        load_conflicts(path)
    assert said in str(caught.value)
