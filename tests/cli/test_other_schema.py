"""A store of another schema version is refused by name; one old run beside new ones is named and left out."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import nightly_store
import stored_runs
from other_schema import OLDER, age_run, age_store

from torchgauge.errors import OtherSchemaError
from torchgauge.records import SCHEMA_VERSION
from torchgauge.results.comparing.comparison_store import comparison_ids
from torchgauge.results.store import Store

OLD, BEFORE, NEW = "night-000", "night-004", "night-005"
WRITTEN = (
    f"was written by an older torchgauge (schema version {OLDER}; "
    f"this torchgauge reads version {SCHEMA_VERSION})"
)
STORE_VERBS = (
    "blockers --device fake", "claim dashboard-speedup --device fake", f"compare {BEFORE} {NEW}", "compat",
    "expect update --dry-run --suite toy", f"export {NEW} --format hud-v3 --out OUT", f"gate {BEFORE} {NEW}",
    "noise", "noise suggest", f"report {NEW}", "results compact --dry-run", "results export --csv OUT",
    "results fsck", "results list", f"results publish {NEW}", "results query", f"results show {NEW}",
    "scorecard", "trend --no-keep", "triage", "dashboard build STORE --out SITE",
)  # fmt: skip
"""Verbs that read a store."""
NOT_NAMED = ("export", "noise suggest", "report", "results compact", "results publish", "results show")
"""Verbs that read no run but the one that they name, and one that reads none of the old run's month."""


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of six nights and two A/B runs."""
    path = tmp_path_factory.mktemp("nights") / "store"
    nightly_store.history(path, [1e-3] * 6)
    store = Store.open(path)
    for seed in (1, 2):
        stored_runs.control_run(store, seed, [0.01])
    return path


@pytest.fixture(scope="module")
def mixed(nights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return that store with a night and an A/B run of an older version among the others."""
    path = Path(shutil.copytree(nights, tmp_path_factory.mktemp("mixed") / "store"))
    store = Store.open(path)
    age_run(store, OLD)
    age_run(store, comparison_ids(store)[0], "comparisons")
    return path


def _words(verb: str, store: Path, out: Path) -> list[str]:
    words = (
        verb.replace("OUT", str(out / "out.csv"))
        .replace("STORE", str(store))
        .replace("SITE", str(out / "site"))
    )
    return words.split() if "STORE" in verb else [*words.split(), "--store", str(store)]


@pytest.mark.parametrize("verb", STORE_VERBS)
def test_a_store_of_an_older_version_ends_each_verb_with_one_message(
    invoke, nights: Path, tmp_path: Path, verb: str
) -> None:
    """The message names the file, both versions and what to do."""
    store = Path(shutil.copytree(nights, tmp_path / "store"))
    age_store(store)
    refused = invoke(*_words(verb, store, tmp_path)).exception
    assert isinstance(refused, OtherSchemaError)
    assert refused.message == f"{store}/store.json {WRITTEN}"


def test_the_message_is_printed_with_what_to_do(process, nights: Path, tmp_path: Path) -> None:
    """It is a person's mistake: exit 2."""
    store = Path(shutil.copytree(nights, tmp_path / "store"))
    age_store(store)
    done = process("results", "list", "--store", str(store))
    assert (done.returncode, done.stdout) == (2, "")
    assert " ".join(done.stderr.split()) == (
        f"error: {store}/store.json {WRITTEN} try: plan and measure again in a new store, "
        "or read this one with the older torchgauge"
    )


@pytest.mark.parametrize("verb", STORE_VERBS)
def test_one_old_run_beside_new_ones_is_named_and_left_out(
    invoke, mixed: Path, tmp_path: Path, verb: str
) -> None:
    """The verb comes to its end, and says which run it did not read and why."""
    done = invoke(*_words(verb, Path(shutil.copytree(mixed, tmp_path / "store")), tmp_path))
    assert not isinstance(done.exception, Exception), done.output
    if not verb.startswith(NOT_NAMED):
        assert ("ab-" if verb == "noise" else OLD) in done.output
        assert WRITTEN in " ".join(done.output.split())
