"""Strict YAML: what is read, what is refused, and where each value stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchgauge.errors import DataFileError
from torchgauge.suites.document import parse_document, read_document


def test_scalars_follow_the_core_schema() -> None:
    """Words such as ``no`` stay text, ``1e-4`` is a number, a quoted number is text."""
    text = "a: no\nb: 1e-4\nc: '12'\nd: 12\ne: true\nf: null\ng: 2026-11-21\nh: -.5\ni: 1_000\nj: ''\n"
    expected = {
        "a": "no",
        "b": 1e-4,
        "c": "12",
        "d": 12,
        "e": True,
        "f": None,
        "g": "2026-11-21",
        "h": -0.5,
        "i": "1_000",
        "j": "",
    }
    assert parse_document(text, "f.yaml").value == expected


def test_every_field_knows_its_line() -> None:
    """Lines are counted from one and belong to the key of a field or to the item of a list."""
    document = parse_document("models:\n  - name: a\n    batch:\n      inference: 1\n  - name: b\n", "f.yaml")
    assert document.line_of("$.models[0].batch.inference") == 4
    assert document.line_of("$.models[1]") == 5
    assert document.line_of("$.models[1].absent.deeper") == 5
    assert document.line_of("$.elsewhere") == 1


@pytest.mark.parametrize(
    ("text", "line", "field", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "a", "duplicate key 'a', first on line 1"),
        ("a: &here 1\n", 1, "a", "the anchor &here is not allowed"),
        ("a: 1\nb: *here\n", 2, "b", "the alias *here is not allowed"),
        ("a:\n  <<: {x: 1}\n", 2, "a", "the merge key << is not allowed"),
        ("a: !!python/name:os.system x\n", 1, "a", "is not allowed"),
        ("a: 1\n---\nb: 2\n", 2, "", "a second document is not allowed"),
        ("a: 1\n? [x]\n: 2\n", 2, "", "a key that is not a name is not allowed"),
        ("a: 1e999\n", 1, "a", "the number 1e999 is not allowed"),
        (f"a: {'9' * 10_000}\n", 1, "a", "the number 9999"),
        (f"a: {'0' * 5_000}1\n", 1, "a", "the number 0000"),
        (f"a: {'[' * 200}{']' * 200}\n", 1, f"a{'[0]' * 63}", "more than 64 levels"),
        (f"? {'k' * 1_000_000}\n: 1\n", 1, "", "the key 'kkkk"),
        ('"a\\nb": 1\n', 1, "", "the key 'a\\nb' is not allowed"),
        ("a: [1\nb: 2\n", 2, "", "not valid YAML"),
    ],
)
def test_refusals_name_file_line_and_field(text: str, line: int, field: str, problem: str) -> None:
    """What could hide a mistake is an error that says where it stands."""
    with pytest.raises(DataFileError) as caught:
        parse_document(text, "f.yaml")
    at = f" at `{field}`" if field else ""
    assert caught.value.message.startswith(f"f.yaml:{line}{at}: ")
    assert problem in caught.value.message
    assert len(caught.value.message) < 500
    assert len(caught.value.message.splitlines()) == 1


@pytest.mark.parametrize("text", ["", "# only a comment\n"])
def test_an_empty_file_is_an_error(text: str) -> None:
    """A file without a document says so."""
    with pytest.raises(DataFileError, match="is empty"):
        parse_document(text, "f.yaml")


def test_unreadable_files_are_errors(tmp_path: Path) -> None:
    """A missing file and one that is not UTF-8 are data file errors, not tracebacks."""
    with pytest.raises(DataFileError, match="cannot be read"):
        read_document(tmp_path / "absent.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
    with pytest.raises(DataFileError, match="not UTF-8"):
        read_document(tmp_path / "latin.yaml")
    (tmp_path / "control.yaml").write_bytes(b"a: \x01\n")
    with pytest.raises(DataFileError, match="not valid YAML"):
        read_document(tmp_path / "control.yaml")
