"""The catalogue lists checks from their sources and runs none of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import torchgauge
from torchgauge.errors import InfrastructureError
from torchgauge.suites.conformance import catalogue as under_test

SOURCE = Path(torchgauge.__file__).resolve().parent.parent
VENDOR = Path(__file__).resolve().parents[2] / "checks_plugin"
CHECKS = Path(under_test.__file__).parent / "checks"
HEAD = "GROUP = 'g'\nfrom torchgauge.suites.conformance.check_context import check\n"


def test_every_module_is_listed() -> None:
    """A new file of checks that nobody lists would never run."""
    files = {path.stem for path in CHECKS.glob("*.py")} - {"__init__"}
    assert files == set(under_test.MODULES)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (HEAD + "@check('torch.y')\ndef f(bench):\n    pass\n", "no docstring"),
        (HEAD + "@check()\ndef f(bench):\n    'Doc.'\n", "does not name the torch API"),
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
