"""What a step prints holds no command of a stranger, however it is cut up, and our own ones stay."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchgauge.workflows.guarded_log import GuardedLog, harmless

HOSTILE = (
    "::add-mask::a", "  ::error::a", "\t::set-output name=a::b", "\u2003::stop-commands::x", "##[add-mask]a",
    "rejected x##[add-mask]collected%0Ax: y", "a ####[group]b", "::::", "##[[a]",
)  # fmt: skip
PLAIN = ("a::b", "torch::nn", "# [a]", "##a[", "$ a ## [b]", "x ::warning::y", "", "100 %", "∎ ünïcode ✓")


def obeyed(line: str) -> bool:
    """Whether the runner takes ``line`` for a command, by the rules of its own parser."""
    return line.lstrip().startswith("::") or "##[" in line


@pytest.mark.parametrize("line", HOSTILE)
def test_a_command_is_taken_apart(line: str) -> None:
    """A blank goes between its signs, and nothing else changes."""
    assert obeyed(line)
    said = harmless(line)
    assert not obeyed(said)
    assert said.replace(" ", "") == line.replace(" ", "")


@pytest.mark.parametrize("line", PLAIN)
def test_other_text_stays_as_it_is(line: str) -> None:
    """Two colons inside a line and single signs are no command."""
    assert harmless(line) == line


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("step", [1, 2, 3, 1000])
def test_a_command_in_parts_is_seen(step: int, end: str) -> None:
    """However text is cut into writes and lines, what comes out is the same and no line is a command."""
    text = end.join((*HOSTILE, *PLAIN))
    stream = io.StringIO(newline="")
    log = GuardedLog(stream)
    assert sum(log.write(text[at : at + step]) for at in range(0, len(text), step)) == len(text)
    assert stream.getvalue() == end.join(map(harmless, (*HOSTILE, *PLAIN)))
    assert not any(map(obeyed, stream.getvalue().split(end)))


def test_a_command_of_our_own_has_a_line_to_itself() -> None:
    """Also behind a line that has not ended."""
    stream = io.StringIO()
    log = GuardedLog(stream)
    log.write("half ")
    log.command("::notice::a")
    log.write("::error::b")
    assert stream.getvalue() == "half \n::notice::a\n: :error::b"


def printed(folder: Path, into_file: bool = False, **more: str) -> list[str]:
    """Lines that ``torchgauge`` prints as a step about a file whose name holds both forms."""
    name = "a##[add-mask]b\n\x1b]0;title\x07::error::c µ"
    words = [sys.executable, "-m", "torchgauge.cli.main", "validate", name]
    environment = {**os.environ, "GITHUB_ACTIONS": "true", **more}
    if into_file:
        with (folder / "out").open("wb") as file:
            subprocess.run(words, stdout=file, stderr=file, cwd=folder, env=environment, check=False)
        return (folder / "out").read_text().splitlines()
    done = subprocess.run(
        words, capture_output=True, text=True, errors="replace", cwd=folder, env=environment, check=False
    )
    return (done.stdout + done.stderr).splitlines()


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_nothing_that_a_step_prints_is_obeyed(tmp_path: Path, encoding: str) -> None:
    """A real process, whose error repeats what it was given, whatever its streams can encode.

    No terminal sequence hides the begin of a command. Into a file a command goes as it is.
    """
    lines = printed(tmp_path, PYTHONIOENCODING=encoding)
    assert any("## [add-mask]b" in line for line in lines)
    assert any(": :error::c" in line for line in lines)
    assert not any(map(obeyed, lines))
    assert not any("\x1b" in line for line in lines)
    assert any("##[add-mask]b" in line for line in printed(tmp_path, into_file=True))
