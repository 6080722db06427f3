"""The catalogue lists checks from their sources and runs none of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import torchgauge
from torchgauge.errors import InfrastructureError
from torchgauge.suites.conformance import catalogue as under_test
from torchgauge.suites.conformance.suite import SUITE

SOURCE = Path(torchgauge.__file__).resolve().parent.parent
VENDOR = Path(__file__).resolve().parents[2] / "checks_plugin"
CHECKS = Path(under_test.__file__).parent / "checks"
HEAD = "GROUP = 'g'\nfrom torchgauge.suites.conformance.check_context import check\n"


def test_the_catalogue_is_as_large_as_promised() -> None:
    """About a hundred checks in some twenty groups, each with a sentence and its part of torch."""
    found = under_test.catalogue()
    assert len(found) >= 100
    assert len(under_test.groups()) >= 20
    assert all(entry.doc.endswith(".") and entry.api for entry in found.values())
    assert {entry.tier for entry in found.values()} == {"smoke", "standard", "full"}


def test_every_module_is_listed() -> None:
    """A new file of checks that nobody lists would never run."""
    files = {path.stem for path in CHECKS.glob("*.py")} - {"__init__"}
    assert files == set(under_test.MODULES)


def test_every_group_is_called_after_its_module() -> None:
    """A person who reads a name finds the file."""
    ours = [entry for entry in under_test.catalogue().values() if entry.module.startswith(under_test.CHECKS)]
    assert all(entry.module == f"{under_test.CHECKS}.{entry.group}" for entry in ours)


def test_entries_of_the_suite_are_checks() -> None:
    """Names survive a case id, and each check has exactly one case."""
    for entry in SUITE.models():
        assert re.fullmatch(r"[a-z_0-9]+\.[a-z_0-9]+", entry.name)
        assert (entry.framework, entry.batch, len(entry.dtypes)) == ("check", {"check": 1}, 1)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("from x import check\n@check('torch.y')\ndef f(bench):\n    'Doc.'\n", "no constant GROUP"),
        (HEAD + "@check('torch.y')\ndef f(bench):\n    pass\n", "no docstring"),
        (HEAD + "@check()\ndef f(bench):\n    'Doc.'\n", "which part of torch"),
        (HEAD + "API = 'x'\n@check(API)\ndef f(bench):\n    'Doc.'\n", "not written out"),
        ("def f(:\n", "invalid syntax"),
    ],
)
def test_a_mistake_in_a_module_is_said_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    """A vendor sees which line of which file to fix."""
    path = tmp_path / "checks.py"
    path.write_text(text)
    with pytest.raises(InfrastructureError, match=problem) as raised:
        under_test.read_checks("checks", path)
    assert str(path) in str(raised.value)


def test_a_module_that_is_not_there_is_said() -> None:
    """An entry point may outlive its module."""
    with pytest.raises(InfrastructureError, match="no source of the module"):
        under_test.source_of("torchgauge.suites.no_such_module")


def test_a_vendors_checks_are_listed_and_neither_they_nor_torch_are_imported() -> None:
    """The parent lists what an entry point names by reading its source."""
    code = (
        "import sys\n"
        "from torchgauge.suites.conformance.suite import SUITE\n"
        "print([e.name for e in SUITE.models() if e.name.startswith('bad.')])\n"
        "print('torch' in sys.modules, 'torchgauge_bad_checks' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(SOURCE), str(VENDOR)]),
            "TORCHGAUGE_TEST_REFUSE_IMPORT": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names, imported = done.stdout.splitlines()
    assert "'bad.aborts'" in names
    assert imported == "False False"
