"""Claims as data: what ships is right, and a mistake is named with its file, line and field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchgauge.errors import DataFileError, UnknownNameError
from torchgauge.results.claims.catalogue import find_claim
from torchgauge.results.claims.claim import Claim, Expect, Over
from torchgauge.results.claims.claim_file import bundled_claims, condition_of, load_claims
from torchgauge.results.claims.claim_text import published_text

HEAD = """\
claims:
  - name: mine
    title: mine is faster
    statement: mine is faster than yours
    published:
      by: me
      link: https://example.org/
      date: "2026"
      number: 0.9
    question:
"""
SHARE = "      aggregation: share\n      condition: speedup > 1\n"


def sides(aggregation: str, base: str, head: str) -> str:
    """A question on two sides; ``head`` is on its fourth line."""
    asked = ("aggregation: " + aggregation, "metric: latency", f"base: {{{base}}}", f"head: {{{head}}}")
    return "".join(f"      {line}\n" for line in asked)


def written(tmp_path: Path, question: str, head: str = HEAD) -> Path:
    """A file with one claim whose question begins on line 11."""
    path = tmp_path / "mine.yaml"
    path.write_text(head + question)
    return path


def test_a_claim_of_ones_own_needs_few_fields(tmp_path):
    """The published number is the threshold, and what is not said stands at its default."""
    (claim,) = load_claims(written(tmp_path, SHARE))
    assert claim.question.threshold == 0.9
    assert (claim.question.expect, claim.question.over) == (Expect.AT_LEAST, Over.ATTEMPTED)
    assert claim.select.suites == ("all",)
    assert str(claim.question.condition) == "speedup > 1"
    assert claim.line == 2


@pytest.mark.parametrize(
    ("question", "line", "said"),
    [
        ("      aggregation: most\n", 11, "invalid enum value 'most'"),
        ("      aggregation: share\n", 11, "a share needs `condition`"),
        ("      aggregation: share\n      condition: fast\n", 12, "'fast' is not a condition"),
        ("      aggregation: share\n      condition: speed > 1\n", 12, "did you mean speedup"),
        ("      aggregation: geomean\n", 11, "a geomean needs `metric`"),
        ("      aggregation: pass_rate\n      threshold: 93\n", 12, "a share of 93 is above 1"),
        (SHARE + "      treshold: 1\n", 13, "unknown field 'treshold'; did you mean threshold?"),
        ("      aggregation: ratio\n      metric: latency\n      base: {torch: a}\n", 11, "only one of"),
        (
            sides("ratio", "torch: a", "torch: a"),
            14,
            "`base` and `head` are equal",
        ),
        (
            sides("ratio", "torch: a, configuration: x", "torch: b, configuration: y"),
            14,
            "the sides differ in configuration and environment",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path, question, line, said):
    """File, line and what to do, as in every data file."""
    path = written(tmp_path, question)
    with pytest.raises(DataFileError) as caught:
        load_claims(path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{path}:")
    assert caught.value.line in (line, line - 1), str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("link: https://example.org/", "link: somewhere", "link"),
        ("name: mine", "name: My Claim", "name"),
        ("      number: 0.9\n", "", "the claim has no threshold"),
        ("      number: 0.9\n", "      number: -1\n", "number"),
    ],
)
def test_what_was_published_is_checked_too(tmp_path, old, new, said):
    """A claim without a source, a date or a number is none."""
    assert old in HEAD
    with pytest.raises(DataFileError, match=said):
        load_claims(written(tmp_path, SHARE, HEAD.replace(old, new)))


def test_two_claims_of_one_name_are_refused(tmp_path):
    """The second one is named with the line of the first."""
    text = HEAD + SHARE
    path = tmp_path / "two.yaml"
    path.write_text(text + text.removeprefix("claims:\n"))
    with pytest.raises(DataFileError, match="'mine' is declared on line 2 too"):
        load_claims(path)


@pytest.mark.parametrize("claim", bundled_claims(), ids=lambda claim: claim.name)
def test_a_bundled_claim_has_a_source_a_date_and_a_public_link(claim: Claim):
    """What is not known of a claim is left out, never made up."""
    assert claim.published.link.startswith("https://")
    assert re.match(r"20\d\d", claim.published.date)
    assert claim.published.number is not None or claim.counts or "without numbers" in claim.published.settings
    assert published_text(claim)


def test_words_that_one_claim_alone_has_mean_it():
    """Free words need not be a title."""
    assert find_claim("memory compression", bundled_claims()).name == "dashboard-memory"
    assert find_claim("97.5 193", bundled_claims()).name == "inductor-faster-on-cpu"
    assert find_claim("windows linux", bundled_claims()).name == "windows-as-fast-as-linux"


@pytest.mark.parametrize(
    ("words", "meant"),
    [("inductor-faster-on-gpu", "inductor-faster-on-cpu"), ("memory of zebras", "dashboard-memory")],
)
def test_unknown_words_bring_suggestions(words, meant):
    """By likeness of the name, or by the words that are known."""
    with pytest.raises(UnknownNameError) as caught:
        find_claim(words, bundled_claims())
    assert meant in caught.value.suggestions
    assert meant in str(caught.value)


def test_a_condition_is_read_whole():
    """Operators, decimals and exponents; nothing else."""
    assert str(condition_of("compile_cold<=1.5e2")) == "compile_cold <= 150"
    assert [condition_of(f"speedup {sign} 1").holds(1.0) for sign in (">", ">=", "<", "<=")] == [
        False, True, False, True,
    ]  # fmt: skip
    with pytest.raises(ValueError, match="not a condition"):
        condition_of("speedup > 1; import os")
