"""No device is named in code outside the devices room, so that a new device edits none of ours."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import torchgauge

PACKAGE = Path(torchgauge.__file__).parent
NAMES = re.compile(r"\b(cpu|cuda|xpu|npu|mps|hpu|npusim|fake)\b")
ALLOWED = {
    # PyTorch's own name of the host, where references run and outputs are kept, whatever is measured.
    ("suites/suite.py", "cpu"),
    # CPU time as an estimator, and as a column of what a worker notes of a step.
    ("results/comparing/estimators.py", "cpu"),
    ("harness/ab/alternation.py", "cpu"),
    ("harness/ab/wire.py", "cpu"),
    # Facts about the processor of a machine.
    ("results/runner_class.py", "cpu"),
    ("results/durations.py", "cpu"),
    ("results/trends/trend.py", "cpu"),
    ("dashboard/pages/environments.py", "cpu"),
    # PyTorch's own words for what comes to the host: Tensor.cpu(), and its operator in a profile.
    ("harness/worker/host_kernels.py", "cpu"),
    ("suites/conformance/checks/errors.py", "cpu"),
    ("suites/ops/script.py", "cpu"),
}


def named(path: Path) -> Iterator[tuple[str, str]]:
    """Every device name in a string of the file that is no docstring, or in an attribute of torch."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    short = path.relative_to(PACKAGE).as_posix()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield from ((short, name) for name in NAMES.findall(node.value))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
            yield from ((short, name) for name in NAMES.findall(node.attr))


def test_no_device_is_named_outside_the_devices_room() -> None:
    """The strings of every module outside ``devices/`` name no device, but for the documented ones."""
    files = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] != "devices"]
    assert len(files) > 50
    assert {found for path in files for found in named(path)} == ALLOWED
