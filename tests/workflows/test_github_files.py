"""What a step tells GitHub cannot be turned into something else by what it tells."""

from __future__ import annotations

import json
import re

import pytest

from torchgauge.errors import UsageError
from torchgauge.workflows import github_files as files


def read_outputs(text: str) -> dict[str, str]:
    """The outputs in a file, read as the runner reads it."""
    found, lines = {}, iter(text.splitlines())
    for line in lines:
        name, delimiter = line.split("<<", 1)
        value = []
        for following in lines:
            if following == delimiter:
                break
            value.append(following)
        found[name] = "\n".join(value)
    return found


def test_outputs_are_what_was_set(tmp_path):
    """A value may hold equals signs, angle brackets and JSON; each has a delimiter of its own."""
    path = tmp_path / "output"
    environ = {"GITHUB_OUTPUT": str(path)}
    files.set_output("plain", "a=b<<EOF", environ)
    files.set_json_output("matrix", {"include": [{"pool": "p", "name": "a\nforged=1"}]}, environ)
    text = path.read_text()
    found = read_outputs(text)
    assert found["plain"] == "a=b<<EOF"
    assert json.loads(found["matrix"])["include"][0]["name"] == "a\nforged=1"
    assert len(set(re.findall(r"<<(torchgauge-\w+)", text))) == 2


@pytest.mark.parametrize("value", ["a\nmatrix=forged", "a\rb", "a\x1b[2J", "\u2028", "\u202e"])
def test_a_value_of_several_lines_is_refused(tmp_path, value):
    """Nothing is written of a value that is not one printable line."""
    path = tmp_path / "output"
    with pytest.raises(ValueError, match="one line"):
        files.set_output("name", value, {"GITHUB_OUTPUT": str(path)})
    assert not path.exists()


@pytest.mark.parametrize("name", ["", "a b", "a=b", "a\nb", "1a", "a<<b"])
def test_a_name_that_is_none_is_refused(tmp_path, name):
    """Names are words."""
    with pytest.raises(ValueError, match="not a valid name"):
        files.set_output(name, "x", {"GITHUB_OUTPUT": str(tmp_path / "output")})


def test_outputs_need_the_git_host_and_have_a_limit(tmp_path):
    """Outside a step, and above a megabyte, it is a person's mistake with what to try."""
    with pytest.raises(UsageError, match="GITHUB_OUTPUT"):
        files.set_output("name", "x", {})
    environ = {"GITHUB_OUTPUT": str(tmp_path / "output")}
    files.set_output("first", "x" * 600_000, environ)
    with pytest.raises(UsageError, match="may have"):
        files.set_output("second", "x" * 600_000, environ)


def test_a_summary_is_cut_with_a_notice(tmp_path):
    """A summary stays below the limit at which the whole of it would be dropped, and says what it lacks."""
    path = tmp_path / "summary"
    environ = {"GITHUB_STEP_SUMMARY": str(path)}
    assert not files.add_summary("x", {})
    for _ in range(3):
        assert files.add_summary("\n".join(["- é line"] * 60_000), environ)
    data = path.read_bytes()
    assert len(data) <= files.SUMMARY_LIMIT
    assert data.decode().rstrip().endswith("exceeds GitHub's limit for the summary of a step.")


def test_an_annotation_is_one_line():
    """Line feeds and per cent signs of a message are written as the runner reads them."""
    assert files.annotation("error", "50%\nmore") == "::error::50%25%0Amore"
    with pytest.raises(ValueError, match="fatal"):
        files.annotation("fatal", "x")
