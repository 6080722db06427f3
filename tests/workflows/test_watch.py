"""The watch alarms for a night that is missing or has gaps, and only for a night that is due."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, time, timezone

import pytest

from torchgauge.errors import UsageError
from torchgauge.records import SCHEMA_VERSION, Plan, RunSettings
from torchgauge.results.store import Store
from torchgauge.workflows.campaign import CampaignPlan, PoolPlan, ShardPlan
from torchgauge.workflows.nights import due_night, moment_of, night_of, time_of_day
from torchgauge.workflows.watch import (
    Expectations,
    NightReport,
    NightState,
    WatchReport,
    is_complete,
    watch,
    watch_lines,
    watch_markdown,
)

SIX = time(6, 0, tzinfo=timezone.utc)
MORNING = moment_of("2027-01-31T06:30")
EXPECTED = Expectations(SIX)
HOSTILE = ["\x1b[2Jgone", "a\nok  b", "\u202eevil", "a | b", "**x** # `x`", "::error::no", "\x06 1"]


def begin(store, pool, shard, of=2, *, night="2027-01-31", attempt=1, tail="a", counts=None):
    """A run as the intake leaves it: its folder, whose it is, and its counts."""
    run_id = f"{night.replace('-', '')}T0200{shard:02d}Z-{pool}{attempt}{tail}"
    folder = store.begin(Plan(run_id, 1.0, ("torchgauge",), RunSettings(), ()))
    said = {
        "campaign_id": f"{night}-2.13.0-0123abcd",
        "pool": pool,
        "shard": shard,
        "of": of,
        "attempt": attempt,
    }
    (folder.path / "provenance.json").write_text(json.dumps(said))
    info = {"state": "complete", "created_at": 1.0, "planned": 3, "counts": counts or {"pass": 3}}
    info["schema_version"] = SCHEMA_VERSION
    folder.info_path.write_text(json.dumps(info))
    table = store.table_path("results", run_id)
    table.parent.mkdir(exist_ok=True)
    table.write_bytes(b"")  # published: the counts are those of run.json
    return run_id


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    return Store.open(tmp_path / "store", create=True)


@pytest.mark.parametrize(
    ("now", "expect_by", "begins", "due"),
    [
        ("2027-01-31T06:00", "06:00", "01:17", "2027-01-31"),
        ("2027-01-31T05:59", "06:00", "01:17", "2027-01-30"),
        ("2027-01-31T06:00", "06:00", "23:41", "2027-01-30"),
        ("2027-01-31T05:59", "06:00", "23:41", "2027-01-29"),
        ("2027-01-31T07:30+02:00", "06:00", "01:17", "2027-01-30"),
        ("2027-01-31T23:59", "06:00", "06:00", "2027-01-30"),
    ],
)
def test_the_night_that_is_due(now, expect_by, begins, due):
    """A night is due from the time at which it is expected, a day later where it begins after that time."""
    assert due_night(moment_of(now), time_of_day(expect_by), time_of_day(begins)) == date.fromisoformat(due)


def test_a_whole_night_is_no_alarm(store):
    """All shards with rows that say something: complete."""
    begin(store, "host", 1)
    begin(store, "host", 2)
    report = watch(store.path, EXPECTED, MORNING)
    assert not report.alarm
    assert report.nights[0].campaign_id == "2027-01-31-2.13.0-0123abcd"


def test_a_missing_night_is_an_alarm(store, tmp_path):
    """A store with other nights only, an empty one, and none at all."""
    begin(store, "host", 1, of=1, night="2027-01-30")
    assert watch(store.path, EXPECTED, MORNING).nights[0].state is NightState.MISSING
    assert watch(tmp_path / "gone", EXPECTED, MORNING).nights[0].state is NightState.MISSING
    assert not watch(store.path, EXPECTED, moment_of("2027-01-31T05:00")).alarm


def test_gaps_are_named(store):
    """A shard, a pool and cases that were not measured: each stands there in words."""
    begin(store, "host", 1, counts={"pass": 2, "not_run": 1, "infra": 1})
    report = watch(store.path, Expectations(SIX, pools=("host", "card")), MORNING)
    assert report.alarm
    assert report.nights[0].gaps == (
        "pool card: no result",
        "pool host, shard 2 of 2: no result",
        "pool host, shard 1 of 2: 2 of 4 cases were not measured",
    )
    assert "shard 2 of 2" in "\n".join(watch_lines(report))
    assert "**incomplete**" in watch_markdown(report)


def test_the_newest_attempt_counts(store):
    """A second attempt that measured everything closes the gap of the first."""
    begin(store, "host", 1, of=1, counts={"infra": 3})
    begin(store, "host", 1, of=1, attempt=2)
    assert not watch(store.path, EXPECTED, MORNING).alarm


def test_a_campaign_that_is_there_is_known(store, tmp_path):
    """Not at all, with a gap, and whole: only then a second start of the night has nothing to do."""
    shards = tuple(ShardPlan(number, 2, ("a",), 1.0, "0" * 16) for number in (1, 2))
    pool = PoolPlan("host", "fake", ("x",), "", 1.0, shards)
    name = "2027-01-31-2.13.0-0123abcd"
    plan = CampaignPlan(name, 1.0, "2027-01-31", "", "", "2.13.0", "0123abcd", (pool,))
    assert not is_complete(None, plan)
    assert not is_complete(tmp_path / "gone", plan)
    begin(store, "host", 1)
    assert not is_complete(store.path, plan)
    begin(store, "host", 2)
    assert is_complete(store.path, plan)
    assert not is_complete(store.path, replace(plan, campaign_id="2027-01-31-2.14.0-0123abcd"))


@pytest.mark.parametrize(("read", "text"), [(night_of, "31.1."), (time_of_day, "late"), (moment_of, "now")])
def test_what_is_no_time_is_refused(read, text):
    """A person's mistake says how it is written."""
    with pytest.raises(UsageError, match="write it as"):
        read(text)


@pytest.mark.parametrize(
    "text", ["\x1b[2Jgone", "a\nok  b", "\u202eevil", "a | b", "**x** # `x`", "::error::no", "\x06 1"]
)
def test_what_pools_and_campaigns_are_called_acts_on_no_terminal(text: str) -> None:
    """Each gap is one visible line, and so is each night."""

    def lines(word: str) -> list[str]:
        night = NightReport("2026-05-28", NightState.INCOMPLETE, word, 1, (f"pool {word}: no result",))
        return watch_lines(WatchReport("2026-05-28T06:00", "06:00", (night,)))

    assert len(lines(text)) == len(lines("tame")) >= 3
    assert all(line.isprintable() and not line.startswith("::") for line in lines(text))
