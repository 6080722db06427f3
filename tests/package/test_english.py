"""What torchgauge says is English: one case and two cases, in words of the field, without shouting."""

from __future__ import annotations

import re

import pytest
from message_templates import ROOT, Template, templates

from torchgauge.counted import counted

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    import tomli as tomllib

SAY = tomllib.loads((ROOT / "docs" / "plain_words.toml").read_text(encoding="utf-8"))
ORDINARY = re.compile("ahead|bench|book|corner|cut|folded|fold|handed|shares|standing|turns?|worth")
"""Words that are no names here, and mean what they mean to everybody."""
NUMBER = r"len\(|sum\(|\.total\(\)|\|length|\|integer|\b(?:count|number|total|planned|n|rows)\b(?!\()"
"""What makes a number of things, as an expression says it."""
NO_NOUN = re.compile(
    "across|as|bytes|comes|differs|digits|does|ends|has|holds|is|its|takes|less|matches|means|pass|plus|says|seconds|"
    "series|this|times|versus|was|which"
)
PLURAL = re.compile(r"\{([^{}]+)\} (?:(?!of |in |and |to |at )[a-z-]+ )?([a-z]+s)\b")
IS_NO = re.compile(r"(?<!there )(?<!There )\b(?:is|are) no (?!longer\b|more\b)[A-Za-z{]")
TWO_SPACES = re.compile(r"[a-z]{2}[,.;:]? {2,}[a-z]{2}")
SHOUT = re.compile(
    r"[a-z]!(?:\s|$)|\b(?:ERROR|WARNING|FAILED|FAIL|REGRESSION|UNDECIDED|INCOMPLETE|NOT|ALL)\b"
)


def plural(text: str) -> bool:
    """Whether a number is followed by a plural, which is wrong for 1."""
    return any(
        not NO_NOUN.fullmatch(noun)
        and "count(" not in expression
        and "counted(" not in expression
        and (re.search(NUMBER, expression) or re.search(rf"\b{noun}$", expression))
        for expression, noun in PLURAL.findall(text)
    )


def private(text: str) -> bool:
    """Whether there is a word that only we knew; what to say instead is in ``docs/plain_words.toml``."""
    words = re.findall(r"(?<![\w./{-])[a-z]+(?![\w}/=-])", re.sub(r"\{[^{}]*\}", "{}", text))
    return any(word in SAY and not ORDINARY.fullmatch(word) for word in words)


RULES = {
    "a number is counted with its noun, by torchgauge.counted": plural,
    "what is not something is said to be not that": lambda text: bool(IS_NO.search(text)),
    "no private words": private,
    "no two spaces in a sentence": lambda text: not text.startswith("  ") and bool(TWO_SPACES.search(text)),
    "no shouting": lambda text: bool(SHOUT.search(text)),
}
WRONG = {
    "a number is counted with its noun, by torchgauge.counted": "{len(cases)} cases in {len(groups)} groups",
    "what is not something is said to be not that": "{text!r} is no shard",
    "no private words": "the lane was mended",
    "no two spaces in a sentence": "two  spaces",
    "no shouting": "INCOMPLETE: look again!",
}
FIXED = {"quads of {pair.key}", "{cores} cores"}
"""What random numbers are drawn from, and what stores call a class of machines: as it was ever said."""
EXCEPT = (
    "devices/hooks.py",  # messages of torch, as they are recognised
    "suites/conformance/check_context.py",
    "suites/torchbench/synthetic_data.py",  # labels of data
    "suites/ops/script.py",  # a program
    "dashboard/",
)
"""Texts that are not said on a terminal."""


@pytest.fixture(scope="module")
def said() -> list[Template]:
    """Every text that may reach a terminal."""
    return [each for each in templates() if not each.where.startswith(EXCEPT)]


@pytest.mark.parametrize("rule", RULES)
def test_every_message_keeps_the_rule(rule: str, said: list[Template]) -> None:
    """Of thousands of texts in modules, documents and help; each rule notices what breaks it."""
    assert len(said) > 5000
    assert RULES[rule](WRONG[rule])
    wrong = [each for each in said if each.text not in FIXED and RULES[rule](each.text)]
    assert [f"{each.where}: {each.text[:150]}" for each in wrong] == []


def test_one_and_several_are_told_apart() -> None:
    """Regular nouns, with words before them, and verbs that go with the number."""
    assert [counted(number, "case") for number in (0, 1, 2, 2000)] == [
        "0 cases",
        "1 case",
        "2 cases",
        "2,000 cases",
    ]
    assert [counted(2, noun) for noun in ("batch", "more entry", "day")] == [
        "2 batches",
        "2 more entries",
        "2 days",
    ]
    assert [counted(number, "run is", "runs are") for number in (1, 3)] == ["1 run is", "3 runs are"]
