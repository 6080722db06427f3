"""Templates quote what they print, whatever a template does with it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest

from torchgauge.results import document
from torchgauge.results.document import Ours

BAD = "\x1b[31m| `x` @all <b>**#1** \u202e"


def rendered(form: str, template: str, **data: object) -> str:
    """``template`` as a document of ``form`` is made, before it is laid out."""
    return document._environment(form).from_string(template).render(**data)


@pytest.mark.parametrize("form", ["markdown", "terminal"])
@pytest.mark.parametrize(
    "expression",
    ["bad", "bad|upper", "bad ~ 1", "1|string ~ bad", "[bad]|join(', ')", "'%s'|format(bad)", "bad|safe",
     "[bad]|each", "bad|brief(300)", "bad|link", "bad|escape", "ours ~ bad"],
)  # fmt: skip
def test_no_expression_prints_a_stores_text_as_it_is(form: str, expression: str) -> None:
    """Whatever a template does with it, and also where it forgets to quote."""
    text = rendered(form, f"{{{{ {expression} }}}}", bad=BAD, ours=Ours("x"))
    assert text, "nothing is printed"
    assert not set("\x1b\u202e|<b").intersection(text.replace("<code>", "").replace("</code>", "")) - {"b"}
    assert "**" not in text


ARGUMENTS = ["echo", "a\n\n\n\nb  c\td", "\n\n\n| x |\n\n\n"]


@pytest.fixture
def _template(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A document that is a command between blank lines of its own."""
    monkeypatch.setattr(document, "_source", lambda _name: "before\n\n\n\n{{ command|command }}\n\n\n\nafter")
    document._environment.cache_clear()
    yield
    document._environment.cache_clear()


@pytest.mark.usefixtures("_template")
def test_a_command_in_markdown_keeps_the_blank_lines_of_its_arguments() -> None:
    """With fewer of them it would repeat something else; blank lines around it are the template's own."""
    command = shlex.join(ARGUMENTS)
    text = document.markdown("any", command=command)
    assert text == f"before\n\n```text\n{command}\n```\n\nafter\n"


@pytest.mark.usefixtures("_template")
def test_a_command_on_a_terminal_is_one_line_that_a_shell_reads_as_the_same() -> None:
    """Line feeds in its arguments are written as a shell's own sign for them."""
    lines = document.terminal("any", command=shlex.join(ARGUMENTS)).splitlines()
    assert (len(lines), lines[0], lines[-1]) == (5, "before", "after")
    shell = [sys.executable, "-c", "import sys; print(ascii(sys.argv[1:]))", "_"]
    said = subprocess.run(
        ["bash", "-c", lines[2].replace("echo", shlex.join(shell), 1)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.strip() == ascii(["_", *ARGUMENTS[1:]])
