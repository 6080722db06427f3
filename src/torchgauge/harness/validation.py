"""Checking data files by what they say they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torchgauge import registry
from torchgauge.clock import SYSTEM_CLOCK, utc
from torchgauge.errors import DataFileError
from torchgauge.harness.configurations import BUNDLED, load_configurations
from torchgauge.results.policy import SECTIONS, load_policy
from torchgauge.suites.catalog import AnyRecipe, load_suite_file
from torchgauge.suites.document import read_document
from torchgauge.suites.expectations import load_expectations
from torchgauge.suites.ops.suite import load_ops_file
from torchgauge.suites.tolerances import load_tolerances

DATA = Path(__file__).resolve().parent.parent / "suites" / "data"


def validate(files: Sequence[str]) -> list[str]:
    """Names of the files that are right: ``files``, or every bundled data file.

    Raises :class:`DataFileError` with file, line and field at the first mistake.
    """
    paths = [Path(name) for name in files] or [*sorted(DATA.rglob("*.yaml")), BUNDLED]
    for path in paths:
        _validate_one(path)
    return [str(path) for path in paths]


def _recipe_type(top: Any) -> type[Any]:
    """The strict form of the recipes of the suite that the file names; empty recipes for a new suite."""
    name = top.get("suite")
    if name in registry.names("torchgauge.suites"):
        return getattr(registry.load("torchgauge.suites", name), "recipe_type", AnyRecipe)
    return AnyRecipe


def _validate_one(path: Path) -> None:
    """Check one file as what its top-level keys make it."""
    top = read_document(path).value
    keys = set(top) if isinstance(top, dict) else set()
    if "models" in keys:
        load_suite_file(path, recipe_type=_recipe_type(top))
    elif "device" in keys or "expectations" in keys:
        load_expectations(path)
    elif "classes" in keys:
        load_tolerances(path)
    elif "configurations" in keys:
        load_configurations(path)
    elif "not_judged" in keys:
        load_ops_file(path)
    elif keys & set(SECTIONS):
        load_policy(path, utc(SYSTEM_CLOCK.now()).date())
    else:
        raise DataFileError(
            str(path),
            f"its top-level keys ({', '.join(sorted(keys)) or 'none'}) fit no kind of data file",
            hint="a suite has `models`, the operators have `not_judged`, expectations have `device`, "
            "tolerances have `classes`, configurations have `configurations`, a policy has `defaults`, "
            "`suites`, `patterns` or `cases`",
        )
