"""``torchgauge.yml`` is read strictly: every mistake has its line and says what to try."""

from __future__ import annotations

import pytest

from torchgauge.errors import DataFileError
from torchgauge.workflows.config import parse_config, policy_file

GOOD = """\
version: 1
campaign: {suites: [toy], tier: smoke, budget: 30m}
labels: [my-scale-set]
pools:
  - name: host
    device: cpu
    runs-on: [ubuntu-latest]
    install: "pip install torch==2.13.0"
    trust: anyone
  - name: card-a
    device: npusim
    runs-on: [self-hosted, Linux, tg-card-a]
    container: registry.example/image:1
    shards: 3
    budget: 1.5h
  - name: card-b
    device: npusim
    runs-on: my-scale-set
gate: {policy: policy.yml, undecided: failure}
store: {branch: data/results}
dashboard: {base-url: "https://owner.github.io/name"}
nightly: {at: "23:41", expect-by: "05:30"}
"""


@pytest.mark.parametrize(
    "image", ["registry.example:5000/a/b:v1.2", f"image@sha256:{'0' * 64}", f"image:latest@sha256:{'0' * 64}"]
)
def test_an_image_of_one_version_is_taken(image):
    """A tag or a digest, from any registry."""
    assert parse_config(GOOD.replace("registry.example/image:1", image)).pools[1].container == image


MISTAKES = [
    ("version: 1", "version: 2", 1, "version 2"),
    ("    install:", "    instal:", 8, "did you mean install?"),
    ("    runs-on: [ubuntu-latest]", "    runs-on: []", 7, "no runner labels"),
    ("[ubuntu-latest]", "[ubuntu-lates]", 7, "did you mean ubuntu-latest"),
    ("[ubuntu-latest]", "[self-hosted, linux]", 7, "unlike machines"),
    ("[self-hosted, Linux, tg-card-a]", "[self-hosted, gpu]", 12, "unknown runner label 'gpu'"),
    ("  - name: card-a", "  - name: host", 10, "duplicate pool 'host', first on line 5"),
    ("  - name: card-a", "  - name: Card/A", 10, "pool name"),
    ("    device: cpu", "    device: 'cpu:0'", 6, "is not a device name"),
    ("image:1", "image", 13, "pinned to one version"),
    ("image:1", "image:1 --privileged", 13, "pinned to one version"),
    ("trust: anyone", "trust: anyone\n    budget: 5h", 10, "hosted runner"),
    ("shards: 3", "shards: 255", 4, "257 shards"),
    ("budget: 1.5h", "budget: soon", 15, "not a duration"),
    ("tier: smoke", "tier: '${{ secrets.TOKEN }}'", 2, "expression"),
    ('"pip install torch==2.13.0"', '"pip install ${{ inputs.x }}"', 8, "expression"),
    ('"pip install torch==2.13.0"', '"pip install\\nrm"', 8, "cannot be printed"),
    ('"pip install torch==2.13.0"', '"pip \u202einstall"', 8, "cannot be printed"),
    ("data/results", "--force", 20, "is not a valid name of a branch"),
    ("https://owner.github.io/name", "javascript:alert(1)", 21, "not a URL"),
]


@pytest.mark.parametrize(("old", "new", "line", "words"), MISTAKES, ids=[each[3] for each in MISTAKES])
def test_a_mistake_names_its_line(old, new, line, words):
    """The message has file and line, the words that matter, and what to try where we know it."""
    assert GOOD.count(old) >= 1
    with pytest.raises(DataFileError) as caught:
        parse_config(GOOD.replace(old, new, 1))
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"torchgauge.yml:{line} ")


def test_the_policy_is_the_one_that_is_named_else_that_of_the_file_here(tmp_path, monkeypatch):
    """What opens issues and what measures again must look away where the gate does."""
    monkeypatch.chdir(tmp_path)
    assert (policy_file(None), policy_file("own.yml")) == ("", "own.yml")
    text = "version: 1\ncampaign: {suites: [toy]}\ngate: {policy: policy.yml}\n"
    text += "pools: [{name: host, device: cpu, runs-on: ubuntu-24.04}]\n"
    (tmp_path / "torchgauge.yml").write_text(text)
    assert (policy_file(""), policy_file("own.yml")) == ("policy.yml", "own.yml")
    (tmp_path / "other.yml").write_text(text.replace("policy.yml", "second.yml"))
    assert policy_file(None, "other.yml") == "second.yml"
