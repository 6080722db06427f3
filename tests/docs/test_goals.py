"""What the docs call met is met by the figure that stands beside it, and what they call missed is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NUMBER = re.compile(
    r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)\s*(%|KB|KiB|MB|MiB|GB|CPU s|ms|s|min|points|rows/s|characters)?"
)
FACTOR = {
    "ms": 1e-3,
    "min": 60.0,
    "CPU s": 1.0,
    "s": 1.0,
    "KB": 1e3,
    "KiB": 1024.0,
    "MB": 1e6,
    "MiB": 2.0**20,
}
MORE_IS_BETTER = ("rows/s",)


def rows(text: str) -> Iterator[dict[str, str]]:
    """The rows of all tables in ``text``, by the head of each column."""
    heads: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            heads = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not heads:
            heads = [cell.lower() for cell in cells]
        elif not set("".join(cells)) <= set("-: "):
            yield dict(zip(heads, cells, strict=False))


def numbers(text: str) -> list[tuple[float, str]]:
    """The numbers of ``text`` in base units, each with its unit."""
    found = []
    for number, unit in NUMBER.findall(re.sub(r"\([^)]*\)", "", text)):
        found.append((float(number.replace(",", "")) * FACTOR.get(unit, 1.0), unit))
    return found


def judged(page: str) -> Iterator[tuple[str, bool, bool]]:
    """Each row with one figure, one goal and one word: the row, what it says, and what is so."""
    for row in rows(page):
        goal = row.get("limit") or row.get("asked for") or row.get("asked for, busy") or ""
        measured = row.get("measured") or row.get("value") or row.get("time") or row.get("ratio") or ""
        word = next((cell for cell in reversed(row.values()) if re.search(r"\b(met|missed)\b", cell)), "")
        said = set(re.findall(r"\b(met|missed)\b", word))
        if len(said) != 1 or ";" in word + measured or re.search(r"\b(above|contains)\b", goal):
            continue
        goals = numbers(goal.split(":")[0])
        figures = numbers(measured.split(":")[0].split(" to ")[-1])
        if len(goals) != 1 or not figures:
            continue
        (wanted, unit), (seen, other) = goals[0], figures[0]
        if unit and other and (unit in FACTOR) != (other in FACTOR):
            continue
        at_least = "at least" in goal or unit in MORE_IS_BETTER
        yield str(row), said == {"met"}, seen >= wanted if at_least else seen <= wanted


def test_what_is_called_met_is_met() -> None:
    """A number just below its goal is missed; tables with one figure and one goal are read."""
    found = list(judged((ROOT / "docs" / "performance.md").read_text(encoding="utf-8")))
    assert len(found) >= 15
    assert [row for row, said, so in found if said is not so] == []


@pytest.mark.parametrize(
    ("row", "right"),
    [
        ("| a | at least 95 % | 94.88 %: met |", False),
        ("| a | at least 95 % | 94.88 %: missed |", True),
        ("| a | 5 ms | 4.9 ms: met |", True),
        ("| a | 1 s | 1,200 ms: met |", False),
        ("| a | 10,000 rows/s | 9,400: missed |", True),
    ],
)
def test_a_word_that_does_not_fit_its_figure_is_found(row: str, right: bool) -> None:
    """The reader of tables itself: units, directions and thousands."""
    page = f"| figure | limit | measured |\n|---|---|---|\n{row}\n"
    assert all(said is so for _, said, so in judged(page)) is right


def test_no_text_calls_a_goal_of_95_met_by_less() -> None:
    """The sentence on suites of 300 cases did, by 94.88 %: each of its rows is held against it."""
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    section = text.partition("### Suites of 300 cases")[2].partition("\n### ")[0]
    assert "at least 95 % with six launches and\nhistory: 97 to 99.6 %, met" in section
    assert "at least 80 % was asked for" in section
    found, known = [], True
    for row in rows(section):
        if not row["noise and history"].startswith("the same"):
            known = "no history" not in row["noise and history"]
        if row["slow"] == "5 by 5%":
            found.append((known, float(row["slow red"].partition("%")[0])))
    assert len([share for known, share in found if known]) >= 4
    assert len([share for known, share in found if not known]) >= 4
    assert all(share >= (97 if known else 80) for known, share in found)
