"""Checking data files by what they say they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torchgauge import registry
from torchgauge.clock import SYSTEM_CLOCK, utc
from torchgauge.errors import DataFileError
from torchgauge.harness.data_mistakes import mistakes_in
from torchgauge.harness.planning.configurations import BUNDLED, load_configurations
from torchgauge.harness.planning.entry_words import check_file
from torchgauge.results.claims.claim_file import DATA as CLAIMS
from torchgauge.results.claims.claim_file import load_claims
from torchgauge.results.comparing.policy import SECTIONS, load_policy
from torchgauge.results.scorecard.declarations import load_declarations
from torchgauge.results.scorecard.scorecard_file import DATA as SCORECARD
from torchgauge.results.scorecard.scorecard_file import bundled_scorecard, load_scorecard
from torchgauge.suites.catalog import AnyRecipe, load_suite_file
from torchgauge.suites.conflicts import load_conflicts
from torchgauge.suites.document import read_document
from torchgauge.suites.expectations import load_expectations
from torchgauge.suites.install_needs import load_install
from torchgauge.suites.ops.suite import load_ops_file
from torchgauge.suites.tolerances import load_tolerances

DATA = Path(__file__).resolve().parent.parent / "suites" / "data"


def validate(files: Sequence[str]) -> tuple[list[str], list[DataFileError]]:
    """Names of the files that are right, of ``files`` or all bundled ones, and every mistake in others."""
    paths = _paths(files)
    own = [str(path) for path in paths if path != BUNDLED and "configurations" in _keys_if_any(path)]
    right: list[str] = []
    mistakes: list[DataFileError] = []
    for path in paths:
        found = mistakes_in(path, lambda each: _validate_one(each, own))
        mistakes += found
        right += [str(path)] * (not found)
    return right, mistakes


def notes(files: Sequence[str]) -> list[str]:
    """What is right in form but out of date in ``files``, or in every bundled data file.

    For now of tolerances alone: exceptions that have expired, that nothing meets, or that change nothing.
    """
    found: list[str] = []
    for path in _paths(files):
        if "classes" not in _keys_if_any(path):
            continue
        suites = registry.names(registry.SUITES)
        models = {name: registry.load(registry.SUITES, name).models() for name in suites}
        found += load_tolerances(path).notes(models, utc(SYSTEM_CLOCK.now()).date())
    return found


def _paths(files: Sequence[str]) -> list[Path]:
    bundled = [*sorted(DATA.rglob("*.yaml")), BUNDLED, *sorted(CLAIMS.glob("*.yaml")), SCORECARD]
    return [Path(name) for name in files] or bundled


def _keys(path: Path) -> set[str]:
    """The top-level keys, which say what kind of file it is."""
    top = read_document(path).value
    return set(top) if isinstance(top, dict) else set()


def _keys_if_any(path: Path) -> set[str]:
    """The same; none of a file that cannot be read, which is a mistake of its own."""
    try:
        return _keys(path)
    except DataFileError:
        return set()


def _recipe_type(top: Any) -> type[Any]:
    """The strict form of the recipes of the suite that the file names; empty recipes for a new suite."""
    name = top.get("suite")
    if name in registry.names(registry.SUITES):
        return getattr(registry.load(registry.SUITES, name), "recipe_type", AnyRecipe)
    return AnyRecipe


def _validate_one(path: Path, configurations: list[str]) -> None:
    """Check one file as what its top-level keys make it; a suite may name what ``configurations`` declare."""
    top, keys = read_document(path).value, _keys(path)
    if "models" in keys:
        check_file(path, load_suite_file(path, recipe_type=_recipe_type(top)), configurations)
    elif "declarations" in keys:
        load_declarations(path, bundled_scorecard())
    elif "device" in keys or "expectations" in keys:
        load_expectations(path)
    elif "classes" in keys:
        load_tolerances(path)
    elif "configurations" in keys:
        load_configurations(path)
    elif "claims" in keys:
        load_claims(path)
    elif "install" in keys:
        load_install(path)
    elif "conflicts" in keys:
        load_conflicts(path)
    elif "databases" in keys:
        load_scorecard(path)
    elif "not_judged" in keys:
        load_ops_file(path)
    elif keys & set(SECTIONS):
        load_policy(path, utc(SYSTEM_CLOCK.now()).date())
    else:
        raise DataFileError(
            str(path),
            f"its top-level keys ({', '.join(sorted(keys)) or 'none'}) match no kind of data file",
            hint="a suite has `models`, the operators have `not_judged`, expectations have `device`, "
            "tolerances have `classes`, conflicts have `conflicts`, what pip installs has `install`, "
            "configurations have `configurations`, claims have `claims`, a device's declarations have "
            "`declarations`, the scorecard has `databases`, "
            "a policy has `defaults`, `suites`, `patterns` or `cases`",
        )
