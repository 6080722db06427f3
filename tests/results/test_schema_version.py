"""Files of another schema version are refused by name, whichever of them is read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the runner imports test files by path

from other_schema import OLDER, age_run

from torchgauge.errors import OtherSchemaError, UsageError
from torchgauge.records import SCHEMA_VERSION
from torchgauge.results.fsck import check_store
from torchgauge.results.publication import publish_again
from torchgauge.results.store import Store


@pytest.fixture
def mixed(tmp_path: Path, build) -> Store:
    """Return a store with a run of an older version and one of today's."""
    store = Store.open(tmp_path / "s", create=True)
    for run_id in ("old", "today"):
        build.published(store, run_id)
    age_run(store, "old")
    return store


def test_an_old_run_is_neither_resumed_nor_published_again(mixed: Store) -> None:
    """Its plan is refused before anything is written."""
    with pytest.raises(OtherSchemaError, match="older torchgauge"):
        mixed.run("old").open_journal()
    with pytest.raises(OtherSchemaError, match="older torchgauge"):
        publish_again(mixed, "old")
    findings = {(finding.path, finding.remedy) for finding in check_store(mixed).findings}
    assert {path for path, _ in findings} == {"runs/old/plan.json"}
    assert all("measure again" in remedy for _, remedy in findings)


@pytest.mark.parametrize(
    ("version", "problem", "hint"),
    [
        (SCHEMA_VERSION + 1, "was written by a newer torchgauge", "upgrade"),
        (OLDER, "was written by an older torchgauge", "measure again"),
        (0, "was written by an older torchgauge", "measure again"),
        ("1", "'1' is not a whole number", "restore"),
        (None, "None is not a whole number", "restore"),
    ],
)
def test_a_store_and_a_plan_of_another_version_are_refused_with_advice(
    tmp_path: Path, build, version: object, problem: str, hint: str
) -> None:
    """The message names the file."""
    store = Store.open(tmp_path / "s", create=True)
    build.published(store)
    plan, marker = store.run("run-1").plan_path, store.path / "store.json"
    for path in (plan, marker):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": version}))
    with pytest.raises(UsageError, match=problem) as refused:
        store.run("run-1").plan()
    assert str(plan) in refused.value.message
    assert hint in refused.value.hint
    with pytest.raises(UsageError, match=problem) as refused:
        Store.open(store.path)
    assert str(marker) in refused.value.message
