"""``torchgauge ops census --refused`` in each of its forms, on a package that is installed."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from torchgauge.cli.main import cli
from torchgauge.errors import UsageError

PACKAGE = "safetensors"


def said(*arguments: str) -> str:
    """What the command prints."""
    done = CliRunner().invoke(cli, ["ops", "census", "--refused", "--package", PACKAGE, *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_every_form_has_the_same_places():
    """Text, Markdown, CSV and JSON."""
    (plain,) = json.loads(said("--json"))["packages"]
    assert plain["files"] > 3
    assert plain["version"]
    rows = list(csv.DictReader(io.StringIO(said("--csv"))))
    assert [(row["file"], int(row["line"])) for row in rows] == [
        (each["file"], each["line"]) for each in plain["refusals"]
    ]
    title = f"Refused by name in {PACKAGE} {plain['version']}"
    assert said().startswith(title)
    assert said("--markdown").startswith(f"## Refused by name in `{PACKAGE}` `{plain['version']}`")


def test_what_is_no_package_is_a_users_mistake():
    """Neither a name that nobody has nor a path."""
    for name in ("no_such_package", "../torch"):
        with pytest.raises(UsageError, match="not a package"):
            cli.main(["ops", "census", "--refused", "--package", name], standalone_mode=False)
    with pytest.raises(UsageError, match="three kinds of census"):
        cli.main(["ops", "census", "--refused", "--static", "--device", "cpu"], standalone_mode=False)
