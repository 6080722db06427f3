"""A file with several mistakes says all of them, each with its own line."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchgauge.harness.validation import validate

SUITE = """\
suite: mine
models:
  - name: a
    tires: [smoke]
  - name: b
    tiers: [smoke]
    batch: {inference: x}
  - name: c
    tiers: [smoke]
    batch: {inference: 1}
    recipe: {}
  - name: d
    tiers: [smoke]
"""


def lines_of(path: Path) -> list[int | None]:
    """The lines of the mistakes in ``path``."""
    return [each.line for each in validate([str(path)])[1]]


def test_each_entry_with_a_mistake_is_named(tmp_path) -> None:
    """The lines are those of the file, and the right entry between them is not named."""
    path = tmp_path / "mine.yaml"
    path.write_text(SUITE)
    right, mistakes = validate([str(path)])
    assert right == []
    assert [each.line for each in mistakes] == [4, 7, 12]
    assert [each.field for each in mistakes][:2] == ["models[0].tires", "models[1].batch.inference"]
    assert {each.file for each in mistakes} == {str(path)}
    assert all(str(path) in str(each) for each in mistakes)


@pytest.mark.parametrize(
    "text",
    [
        SUITE.replace("models:", "modells:"),  # without it there is no section that must be there
        "defualts:\n  tolerance: 0.1\n",
        '{"suite": "mine", "modells": {},\n "models": []}\n',
    ],
)
def test_a_section_that_is_misspelt_is_one_mistake(tmp_path, text) -> None:
    """Taken out, it would be missing; what shares its lines with others is not taken out."""
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    assert len(lines_of(path)) == 1


@pytest.mark.parametrize(
    ("text", "lines"),
    [("colours: [red\n", [2]), ("suite: mine\nmodels: 3\n", [2]), ("models: [\n", [2]), ("", [None])],
)
def test_what_cannot_be_read_on_is_one_mistake(tmp_path, text, lines) -> None:
    """No YAML, a section that is none, and nothing at all."""
    path = tmp_path / "file.yaml"
    path.write_text(text)
    assert lines_of(path) == lines


def test_files_are_all_looked_at(tmp_path) -> None:
    """A missing file hides no mistake of another, and a right one is named."""
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("suites:\n  toy: {tolerance: 0.02}\n")
    bad.write_text("suites:\n  toy: {tolerence: 0.1}\n")
    right, mistakes = validate([str(tmp_path / "missing.yaml"), str(bad), str(good)])
    assert right == [str(good)]
    assert [Path(each.file).name for each in mistakes] == ["missing.yaml", "bad.yaml"]
