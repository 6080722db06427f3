"""The command ``refused-by-name`` in each of its forms, on installed packages and what is none."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from refused_by_name.command import cell, main

ROOT = Path(__file__).parent / "planted"


@pytest.fixture
def printed(capsys, monkeypatch):
    """Return a function that runs the command and returns its output; the planted package is there."""
    monkeypatch.syspath_prepend(str(ROOT))

    def run(*arguments: str) -> str:
        assert main(arguments) == 0
        return capsys.readouterr().out

    return run


def test_every_form_has_the_same_places(printed):
    """A page, CSV and JSON."""
    (plain,) = json.loads(printed("planted_package", "--json"))["packages"]
    assert plain["files"] == 5
    rows = list(csv.DictReader(io.StringIO(printed("planted_package", "--csv"))))
    assert [(row["file"], int(row["line"])) for row in rows] == [
        (each["file"], each["line"]) for each in plain["refusals"]
    ]
    page = printed("planted_package")
    assert page.startswith("## Refused by name in `planted_package`")
    raising = [each for each in plain["refusals"] if each["effect"] == "raises"]
    assert f"Of them {len(raising)} raise" in page
    assert all(f"| `{each['file']}:{each['line']}` |" in page for each in raising)


def test_an_installed_package_has_its_version(printed):
    """It is scanned where it lies."""
    (plain,) = json.loads(printed("jinja2", "--json"))["packages"]
    assert plain["files"] > 20
    assert re.match(r"\d", plain["version"])


def test_progress_is_printed_beside_the_output(capsys, monkeypatch, tmp_path):
    """A package of thousands of files takes minutes: stderr has a line for every hundred."""
    (tmp_path / "many").mkdir()
    for number in range(150):
        (tmp_path / "many" / f"part{number}.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["many", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["packages"][0]["files"] == 150
    lines = [f"many: {number} of 150 files scanned" for number in (0, 100)]
    assert printed.err.splitlines() == ["many: reading 150 files", *lines]


@pytest.mark.parametrize("name", ["no_such_package", "../torch", "this"])
def test_a_name_that_is_not_a_package_is_a_mistake(capsys, name):
    """An unknown name, a path, and a module without a folder."""
    with pytest.raises(SystemExit) as ended:
        main([name])
    assert ended.value.code == 2
    assert "is not an installed package" in capsys.readouterr().err


def test_the_source_of_a_package_does_not_act_in_a_table():
    """Code ends where the cell ends, on the same line."""
    assert cell("a`<b>`|c\nd\x1b[31m") == "`a'<b>'\\|c d [31m`"
    assert len(cell("x" * 1_000)) == 122
    assert cell("") == ""


def test_it_imports_the_standard_library_alone():
    """It runs where nothing else is installed."""
    program = "import sys, refused_by_name.command; print(*sys.modules)"
    command = [sys.executable, "-S", "-c", program]
    path = {"PYTHONPATH": str(ROOT.parents[1] / "src")}
    done = subprocess.run(command, env=path, capture_output=True, text=True, check=True)
    imported = {name.partition(".")[0] for name in done.stdout.split()} - {"refused_by_name", "__main__"}
    assert imported <= sys.stdlib_module_names
