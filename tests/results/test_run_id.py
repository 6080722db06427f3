"""What runs are called: one grammar for all, and ids that follow from what a run is."""

from __future__ import annotations

import pytest

from torchgauge.results.run_id import MOST_ATTEMPTS, ShardAttempt, is_run_id, new_run_id

AT = 1_780_000_000.0


class StoppedClock:
    def now(self) -> float:
        return AT

    def steady(self) -> float:
        return AT


def attempt(**changes: object) -> ShardAttempt:
    fields: dict[str, object] = {
        "planned_at": AT,
        "pool": "card-a",
        "shard": 2,
        "attempt": 1,
        "digest": "1a2b3c4d5e6f7081",
    }
    return ShardAttempt(**{**fields, **changes})  # type: ignore[arg-type]


def test_the_id_of_an_attempt_follows_from_what_it_is():
    """Plan, pool, shard and attempt make the id, and each of them changes it."""
    assert attempt().run_id == "20260528T202640Z-card-a-002-01-1a2b3c4d"
    others = [
        attempt(planned_at=AT + 1),
        attempt(pool="card-b"),
        attempt(shard=3),
        attempt(attempt=2),
        attempt(digest="0" * 16),
    ]
    assert len({each.run_id for each in [attempt(), *others]}) == 6


def test_ids_sort_by_time_then_pool_shard_and_attempt():
    """Numbers have a fixed width, so that the tenth comes after the ninth."""
    in_order = [
        attempt(shard=shard, attempt=number).run_id for shard in (1, 2, 10, 100) for number in (1, 2, 9, 10)
    ]
    assert in_order == sorted(in_order)
    assert attempt(planned_at=AT + 1, pool="a").run_id > in_order[-1]


@pytest.mark.parametrize(
    "changes", [{"attempt": 0}, {"attempt": MOST_ATTEMPTS + 1}, {"shard": 0}, {"shard": 1000}]
)
def test_numbers_that_no_id_holds_are_refused(changes: dict[str, int]):
    """An id of another width would sort elsewhere."""
    with pytest.raises(ValueError, match="out of range for a run id"):
        attempt(**changes)


def test_all_ids_that_are_given_are_of_the_grammar():
    """Both forms, also of pools whose names look like the end of an id."""
    given = [new_run_id(StoppedClock()), attempt().run_id]
    given += [attempt(pool=pool).run_id for pool in ("a", "0", "a" * 40, "x-001-01-1a2b3c4d", "con")]
    assert [is_run_id(each, AT) for each in given] == [True] * 7


@pytest.mark.parametrize(
    "text",
    [
        *("", "0", "CON", "index.html", "run-1", "99991231T235959Z-00000000", "20260230T000000Z-00000000"),
        *("20260528T202640Z-1a2b3c4d\n", "20260528T202640Z-1A2B3C4D", "\uff120260528T202640Z-1a2b3c4d"),
        *(None, 7),
    ],
)
def test_what_is_of_no_run_is_not_of_the_grammar(text: object):
    """Other words, days that are none, and what only looks like it."""
    assert not is_run_id(text, AT)
