"""Attacks on identity: a set that says it is of another job is refused by name, and nobody's rows change."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign_sets import (
    Files,
    Night,
    bytes_of,
    files_of,
    import_sets,
    in_row,
    sealed,
    with_run_id,
    write_folder,
)

from torchgauge.results.dataset import read_table
from torchgauge.workflows.collect import Collection, collect
from torchgauge.workflows.ingest.refusal import Reason

POOLS = ("alpha", "beta")
"""The attacker owns the machines of alpha."""


def make_night(folder: Path) -> Night:
    return Night(folder, pools=POOLS)


def honest(night: Night, folder: str = "artifacts") -> Path:
    """The sets of all four jobs."""
    where = night.path / folder
    for pool in POOLS:
        for shard in (1, 2):
            night.pack(shard, pool=pool, folder=where)
    return where


def collected(night: Night, folder: Path, attempts: int = 1) -> Collection:
    """What a collector in the workflow's run with this many attempts says."""
    return collect(folder, replace(night.expected, attempts=attempts), night.store, clock=night.clock)


def rows_of(night: Night, pool: str) -> dict[str, str]:
    """Case to run of every row of ``pool``; fails where a case has two."""
    table = read_table(night.store, "results", columns=["run_id", "case_id"])
    rows = [row for row in table.to_pylist() if f"Z-{pool}-" in row["run_id"]]
    found = {row["case_id"]: row["run_id"] for row in rows}
    assert len(found) == len(rows), "a case is counted twice"
    return found


def test_a_pool_cannot_write_the_numbers_of_another(tmp_path: Path) -> None:
    """A set of alpha's machine that says it is beta's second attempt replaces nothing and is in no table."""
    night = make_night(tmp_path)
    artifacts = honest(night)
    forged = night.pack(1, 2, pool="beta", folder=night.path / "forged")
    first = collected(night, artifacts)
    shutil.copytree(forged, artifacts / forged.name)
    second = collected(night, artifacts)
    assert first.complete
    assert second.complete
    assert [(each.artifact, each.reason) for each in second.rejected] == [
        (forged.name, Reason.FOREIGN_IDENTITY)
    ]
    assert set(rows_of(night, "beta").values()) == {night.run_id(n, pool="beta") for n in (1, 2)}
    assert not (night.store.path / "superseded").exists()


def test_a_stolen_run_id_drops_nobodys_shard(tmp_path: Path) -> None:
    """A set of alpha with the id of beta's run, which sorts first, is refused; beta's comes in."""
    night = make_night(tmp_path)
    artifacts = honest(night)
    mine = artifacts / night.job(1, pool="alpha").artifact
    stolen = with_run_id(files_of(mine), night.run_id(1, pool="beta"))
    shutil.rmtree(mine)
    write_folder(mine, stolen)
    found = collected(night, artifacts)
    assert [(each.artifact, each.reason) for each in found.rejected] == [(mine.name, Reason.FOREIGN_IDENTITY)]
    assert [(each.pool, each.shard) for each in found.missing] == [("alpha", 1)]
    assert len(rows_of(night, "beta")) == 4


Edit = Callable[[Files], Files]


@dataclass(frozen=True)
class Attack:
    """What alpha's machine submits under ``name`` (empty: its own) and the word that answers it."""

    edit: Edit
    word: Reason
    name: str = ""
    attempts: int = 1


def says(**fields: Any) -> Edit:
    """The set with these fields in its manifest."""
    return lambda files: sealed(files, **fields)


def renamed(run_id: str) -> Edit:
    return lambda files: with_run_id(files, run_id)


IDENTITY, RUN_ID, ATTEMPT, SCHEMA = Reason.FOREIGN_IDENTITY, Reason.RUN_ID, Reason.ATTEMPT, Reason.SCHEMA
CAMPAIGN = "2026-05-28-torch-2.9.0-aabbccdd"
NOT_NAMES = {
    "of the last day there is": "99991231T235959Z-00000000",
    "of a second in the future": "20991231T235959Z-00000000",
    "of a month that is none": "20261301T000000Z-00000000",
    "of a day that is none": "20260230T000000Z-00000000",
    "of an hour that is none": "20260528T246000Z-00000000",
    "of a time before all others": "00010101T000000Z-00000000",
    "of the year 2019": "20191231T235959Z-00000000",
    "zero": "0",
    "empty": "",
    "a device of another system": "CON",
    "the same in small letters": "con",
    "a device with an extension": "NUL.txt",
    "a page of the site": "index.html",
    "a folder": ".",
    "the folder above": "..",
    "a path": "../../etc",
    "an absolute path": "/etc/passwd",
    "a hidden file": ".staging-0000.tmp",
    "an option": "-rf",
    "an abbreviation": "latest",
    "one step back": "latest~1",
    "without a zone": "20260528T201000-00000000",
    "with a small z": "20260528T201000z-00000000",
    "without an end": "20260528T201000Z",
    "with a short end": "20260528T201000Z-0000000",
    "with a long end": "20260528T201000Z-000000000",
    "with large digits": "20260528T201000Z-0000000A",
    "with a blank": "20260528T201000Z-00000000 ",
    "with a second extension": "20260528T201000Z-00000000.parquet",
    "percent-encoded": "%2e%2e%2f",
    "very long": "20260528T201000Z-" + "0" * 300,
    "of a pool in capitals": "20260528T201000Z-Alpha-001-01-00000000",
    "of a pool with dots": "20260528T201000Z-../x-001-01-00000000",
    "of a shard without zeros": "20260528T201000Z-alpha-1-1-00000000",
}
"""Run ids that torchgauge gives to nothing."""
OTHERS = {
    "beta's run": "{stamp}-beta-001-01-{digest}",
    "beta's second attempt": "{stamp}-beta-001-02-{digest}",
    "the other shard": "{stamp}-alpha-002-01-{digest}",
    "the next attempt": "{stamp}-alpha-001-02-{digest}",
    "another plan": "{stamp}-alpha-001-01-00000000",
    "another night": "20260101T000000Z-alpha-001-01-{digest}",
    "a run of no campaign": "20260528T201000Z-1a2b3c4d",
    "what sorts first of all": "20200101T000000Z-00000000",
}
"""Run ids that torchgauge gives, and to somebody else."""
CLAIMS: dict[str, Attack] = {
    "beta's pool": Attack(says(pool="beta"), IDENTITY),
    "beta's pool and run": Attack(
        lambda files: sealed(with_run_id(files, "{stamp}-beta-001-01-{digest}"), pool="beta"),
        IDENTITY,
    ),
    "the other shard": Attack(says(shard=2), IDENTITY),
    "beta's other shard": Attack(says(pool="beta", shard=2), IDENTITY),
    "attempt 2 in its own artifact": Attack(says(attempt=2), IDENTITY),
    "attempt 0": Attack(says(attempt=0), ATTEMPT),
    "attempt -1": Attack(says(attempt=-1), ATTEMPT),
    "attempt 51": Attack(says(attempt=51), ATTEMPT),
    "attempt 2^53": Attack(says(attempt=2**53), ATTEMPT),
    "attempt 2^53 + 1": Attack(says(attempt=2**53 + 1), ATTEMPT),
    "an attempt in words": Attack(says(attempt="1"), SCHEMA),
    "an attempt and a half": Attack(says(attempt=1.5), SCHEMA),
    "no attempt": Attack(says(attempt=None), SCHEMA),
    "a shard that is none": Attack(says(shard=3), Reason.FOREIGN_SHARD),
    "shard 0": Attack(says(shard=0), Reason.FOREIGN_SHARD),
    "a pool that is none": Attack(says(pool="gamma"), Reason.FOREIGN_SHARD),
    "a pool in capitals": Attack(says(pool="ALPHA"), Reason.FOREIGN_SHARD),
    "another campaign": Attack(says(campaign_id="2026-05-27-torch-2.9.0-aabbccdd"), Reason.FOREIGN_CAMPAIGN),
    "another plan of the campaign": Attack(says(campaign_digest="0" * 16), Reason.PLAN_DIGEST),
    "an artifact of beta": Attack(lambda f: f, IDENTITY, f"results-{CAMPAIGN}-beta-1-1"),
    "an artifact of the other shard": Attack(lambda f: f, IDENTITY, f"results-{CAMPAIGN}-alpha-2-1"),
    "an artifact of the next attempt": Attack(lambda f: f, IDENTITY, f"results-{CAMPAIGN}-alpha-1-2"),
    "an artifact of another night": Attack(
        lambda f: f, IDENTITY, "results-2026-05-27-torch-2.9.0-aabbccdd-alpha-1-1"
    ),
    "an artifact of no set": Attack(lambda f: f, IDENTITY, "results"),
    "an artifact with a padded number": Attack(lambda f: f, IDENTITY, f"results-{CAMPAIGN}-alpha-01-1"),
    "an artifact in capitals": Attack(lambda f: f, IDENTITY, f"RESULTS-{CAMPAIGN}-alpha-1-1"),
}
ATTACKS = {
    **CLAIMS,
    **{f"a run id {name}": Attack(renamed(text), RUN_ID) for name, text in NOT_NAMES.items()},
    **{
        f"a run id of the machine {name}": Attack(says(made_as=text), RUN_ID)
        for name, text in NOT_NAMES.items()
    },
    **{f"the run id of {name}": Attack(renamed(text), IDENTITY) for name, text in OTHERS.items()},
}


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Night:
    """A night whose honest sets are in the store."""
    night = make_night(tmp_path_factory.mktemp("identity"))
    assert collected(night, honest(night)).complete
    return night


@pytest.fixture(scope="module")
def mine(night: Night) -> Files:
    """The true set of alpha's first shard."""
    return files_of(night.path / "artifacts" / night.job(1, pool="alpha").artifact)


@pytest.mark.parametrize("name", ATTACKS)
def test_an_identity_that_is_not_ones_own_is_refused_at_the_collection(
    name: str, night: Night, mine: Files, tmp_path: Path
) -> None:
    """The word of the table answers it, and the store is as it was to the byte."""
    attack, before = ATTACKS[name], bytes_of(night.store.path)
    artifact = attack.name or night.job(1, pool="alpha").artifact
    write_folder(tmp_path / "artifacts" / artifact, attack.edit(dict(mine)))
    beside = night.job(2, pool="beta").artifact  # with two artifacts, each has the folder of its name
    shutil.copytree(night.path / "artifacts" / beside, tmp_path / "artifacts" / beside)
    found = collected(night, tmp_path / "artifacts", attack.attempts)
    assert [(each.artifact, each.reason) for each in found.rejected] == [(artifact, attack.word)]
    assert bytes_of(night.store.path) == before


@pytest.mark.parametrize("attempt", [2, 3, 50])
def test_an_attempt_that_the_git_host_never_made_is_refused(
    attempt: int, night: Night, tmp_path: Path
) -> None:
    """However right a set is for its artifact: the workflow ran once."""
    for pool in POOLS:
        night.pack(1, attempt, pool=pool, folder=tmp_path / f"{attempt}")
    before = bytes_of(night.store.path)
    found = collected(night, tmp_path / f"{attempt}", 1)
    assert [each.reason for each in found.rejected] == [IDENTITY] * 2
    assert bytes_of(night.store.path) == before


def test_one_attempt_under_sixty_run_ids_comes_in_once(tmp_path: Path) -> None:
    """Whatever ids copies of a set take, its rows are counted once."""
    night = make_night(tmp_path)
    true = night.pack(1, pool="alpha")
    ids = [f"20260528T201000Z-{number:08x}" for number in range(60)]
    copies = [write_folder(tmp_path / name, with_run_id(files_of(true), name)) for name in ids]
    taken, refused = import_sets(night.store, [*copies, true, true], night.expected, night.clock)
    assert [run.new for run in taken] == [True, False]
    assert [each.reason for each in refused] == [IDENTITY] * 60
    assert len(rows_of(night, "alpha")) == 2


def test_other_numbers_for_the_same_attempt_do_not_replace_the_first(tmp_path: Path) -> None:
    """Who submits a shard twice with other numbers has the first ones counted."""
    night = make_night(tmp_path)
    first = night.pack(1, pool="alpha")
    other = night.pack(1, pool="alpha", folder=tmp_path / "other", results=night.results(1, duration_s=7.0))
    taken, refused = import_sets(night.store, [first, other], night.expected, night.clock)
    assert [run.new for run in taken] == [True]
    assert [each.reason for each in refused] == [Reason.RUN_EXISTS]


def test_all_attempts_at_once_leave_one(tmp_path: Path) -> None:
    """Fifty attempts in any order: the last one's rows are in the tables, and no others."""
    night = make_night(tmp_path)
    sets = [night.pack(1, attempt, pool="alpha") for attempt in (3, 1, 5, 2)]
    taken, refused = import_sets(night.store, sets, night.expected, night.clock)
    assert [run.attempt for run in taken] == [3, 5]
    assert [each.reason for each in refused] == [Reason.SUPERSEDED] * 2
    assert set(rows_of(night, "alpha").values()) == {night.run_id(1, 5, "alpha")}


def test_there_are_enough_attacks() -> None:
    """The corpus does not shrink unseen."""
    assert len(ATTACKS) >= 100


def test_a_folder_called_like_anothers_zip_is_no_set_of_that_job(tmp_path: Path) -> None:
    """An artifact ``NAME.zip`` of one pool, unpacked, would make the honest set of ``NAME`` ambiguous."""
    night = Night(tmp_path, pools=("alpha", "beta"))
    honest = night.pack(1, pool="beta")
    forged = in_row(files_of(honest), b'"duration_s":0.0', b'"duration_s":9.0')
    write_folder(honest.with_name(f"{honest.name}.zip"), forged)
    found = collect(honest.parent, night.expected, night.store, clock=night.clock)
    assert [(each.artifact, each.reason) for each in found.rejected] == [
        (f"{honest.name}.zip", Reason.FOREIGN_IDENTITY)
    ]
    assert [(run.pool, run.artifact) for run in found.runs] == [("beta", honest.name)]
