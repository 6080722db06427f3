"""The worker half keeps to the stated minimum: Python 3.10 with its standard library, and torch 2.5."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch_use
import worker_half

from torchgauge.devices.minimum import OLDEST_PYTHON, OLDEST_TORCH, release, spelled

ROOT = Path(__file__).resolve().parents[2]
INVENTORY = Path(__file__).parent / "data" / "torch-2.5.txt"
HALF = worker_half.worker_half()
OURS = {"click", "jinja2", "msgspec", "pandas", "plotly", "pyarrow", "rich", "scipy", "yaml"}
"""What torchgauge's parent is installed with, but for numpy, which model libraries bring along."""
IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] not in ("torch", "torchvision", "timm", "transformers"):
            raise
"""


@pytest.fixture(scope="module")
def inventory() -> dict[str, frozenset[str]]:
    """Names of the oldest torch."""
    return torch_use.read_inventory(INVENTORY)


def test_worker_half_holds_what_runs_in_a_worker_and_nothing_of_the_parent() -> None:
    """The modules are found from what the parent names to a child."""
    assert {
        "harness.worker.entry",
        "harness.worker.torch_checks",
        "devices.hooks",
        "suites.toy.models",
        "records.codec",
    } <= {name.removeprefix("torchgauge.") for name in HALF}
    assert not [name for name in HALF if name.split(".")[1:2] in (["cli"], ["results"], ["dashboard"])]


@pytest.mark.parametrize("name", HALF)
def test_syntax_is_that_of_the_oldest_python(name: str) -> None:
    """A newer form, such as a type parameter, does not parse."""
    ast.parse(HALF[name].read_text(encoding="utf-8"), feature_version=OLDEST_PYTHON)


@pytest.mark.parametrize("name", HALF)
def test_no_package_of_the_parent_is_imported(name: str) -> None:
    """A foreign interpreter has none of them."""
    tops = {module.partition(".")[0] for module in worker_half.imported(name, HALF[name])}
    assert not tops & OURS


@pytest.mark.parametrize("name", HALF)
def test_every_name_of_torch_is_in_the_oldest_or_guarded(
    name: str, inventory: dict[str, frozenset[str]]
) -> None:
    """A name that came later is asked for with getattr, hasattr or try."""
    source = HALF[name].read_text(encoding="utf-8")
    found = [f"{HALF[name]}:{line}: {problem}" for line, problem in torch_use.unguarded(source, inventory)]
    assert found == []


def test_standard_library_is_that_of_the_oldest_python(tmp_path: Path) -> None:
    """Mypy knows which names each version of the standard library has."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    (tmp_path / "modern.py").write_text("import tomllib\nfrom enum import StrEnum\n")
    assert "StrEnum" in check_types(tmp_path, str(tmp_path / "modern.py"))
    modules = [word for name in HALF for word in ("-m", name)]
    assert check_types(tmp_path, *modules) == ""


def check_types(folder: Path, *what: str) -> str:
    """What mypy says of ``what`` under the oldest Python; empty where it finds nothing."""
    options = ("--config-file", str(ROOT / "pyproject.toml"), "--python-version", spelled(OLDEST_PYTHON))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            *options,
            "--cache-dir",
            str(folder / "cache"),
            "--no-error-summary",
            *what,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_worker_half_imports_in_a_real_oldest_python() -> None:
    """Every module but those whose libraries are missing there."""
    python = worker_half.oldest_python()
    if python is None:
        pytest.skip("there is no Python 3.10 on this machine")
    done = subprocess.run(
        [python, "-W", "error", "-c", IMPORT_ALL, *HALF],
        env={**os.environ, "PYTHONPATH": str(worker_half.PACKAGE.parent), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.accelerator.synchronize()",
        "from torch import accelerator",
        "from torch._inductor.utils import clear_caches",
        "def f(torch):\n    return torch.no_such_name",
        "import torch\ngetattr(torch, 'accelerator')",
        "import torch\ntry:\n    torch.accelerator\nexcept ImportError:\n    pass",
        "import torch\nif not hasattr(torch, 'accelerator'):\n    torch.accelerator",
    ],
)
def test_unguarded_new_name_is_found(source: str, inventory: dict[str, frozenset[str]]) -> None:
    """However it is written."""
    assert len(list(torch_use.unguarded(source, inventory))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.nn.Linear(2, 2).anything",
        "import torch\ngetattr(torch, 'accelerator', None)",
        "import torch\nif hasattr(torch, 'accelerator'):\n    torch.accelerator.synchronize()",
        "import torch\ntry:\n    torch.accelerator\nexcept (OSError, AttributeError):\n    pass",
        "try:\n    from torch import accelerator\nexcept ImportError:\n    accelerator = None",
        "import contextlib, torch\nwith contextlib.suppress(AttributeError):\n    torch.accelerator",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from torch import accelerator",
    ],
)
def test_old_or_guarded_name_is_right(source: str, inventory: dict[str, frozenset[str]]) -> None:
    """A guard is lexical, so that a reader sees it."""
    assert list(torch_use.unguarded(source, inventory)) == []


def test_inventory_is_of_the_stated_minimum() -> None:
    """The file says which version it was made from, and the docs say the same."""
    version = INVENTORY.read_text(encoding="utf-8").splitlines()[0].split()[4].rstrip(",")
    assert release(version) == OLDEST_TORCH
    page = (ROOT / "docs" / "how-to" / "compare-two-builds.md").read_text(encoding="utf-8")
    assert f"Python {spelled(OLDEST_PYTHON)} or later" in page
    assert f"torch {spelled(OLDEST_TORCH)} or later" in page
