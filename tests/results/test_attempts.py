"""Several attempts at a case are one row, which tells of all, and no repetition makes a failure a pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchgauge.records import Again, Cause, Modifier, Result, Status
from torchgauge.results.attempts import Attempts
from torchgauge.results.dataset import read_table
from torchgauge.results.journal import EarlierAttempt, End, Kind, RunState
from torchgauge.results.store import Store

ASKED, ALONE, BROKE = Again.ASKED, Again.ALONE, Again.INFRASTRUCTURE
CAUSES = {Status.INFRA: Cause.KILLED, Status.OOM: Cause.HOST_LIMIT, Status.NOT_RUN: Cause.QUARANTINED}


@pytest.fixture
def ended(build):
    """A row of one case that ended in a status."""

    def make(status: str) -> Result:
        found = Status(status)
        return replace(
            build.result(), status=found, cause=CAUSES.get(found), reason=f"it was {status}", modifiers=()
        )

    return make


WAYS = {
    "once": ([], "pass", ("pass", 1, 0, False)),
    "killed, then well": ([("infra", BROKE)], "pass", ("pass", 2, 2, False)),
    "killed twice": ([("infra", BROKE)], "infra", ("infra", 2, 2, False)),
    "out of memory beside others, then well": ([("oom", ALONE)], "pass", ("pass", 2, 2, False)),
    "out of memory beside others and alone": ([("oom", ALONE)], "oom", ("oom", 2, 2, False)),
    "three passes": ([("pass", ASKED), ("pass", ASKED)], "pass", ("pass", 3, 3, False)),
    "the second fails": ([("pass", ASKED), ("error", ASKED)], "pass", ("error", 2, 3, True)),
    "the last fails": ([("pass", ASKED), ("pass", ASKED)], "crash", ("crash", 3, 3, True)),
    "fails in two ways": ([("error", ASKED), ("crash", ASKED)], "pass", ("crash", 2, 3, True)),
    "passes, then killed twice": ([("pass", ASKED), ("infra", BROKE)], "infra", ("pass", 1, 3, False)),
    "killed, and no device is left": ([("infra", BROKE)], "not_run", ("infra", 1, 0, False)),
    "out of memory beside others, and no device is left": (
        [("oom", ALONE)],
        "not_run",
        ("not_run", 2, 2, False),
    ),
    "passes beside others, and no device is left": ([("pass", ALONE)], "not_run", ("pass", 1, 0, False)),
    "passes, and no device is left": ([("pass", ASKED), ("pass", ASKED)], "not_run", ("pass", 2, 2, False)),
}


@pytest.mark.parametrize("way", WAYS)
def test_one_of_several_attempts_is_the_row(way: str, ended) -> None:
    """Its number, how many are told, and whether they differ."""
    earlier, last, (status, number, told, flaky) = WAYS[way]
    attempts = Attempts()
    for each, again in earlier:
        attempts.add(again, ended(each))
    row, left = attempts.close(ended(last))
    assert (row.status.value, row.attempt, len(row.attempts)) == (status, number, told)
    assert (Modifier.FLAKY in row.modifiers) is flaky
    assert bool(row.flaky) is flaky
    assert not (flaky and row.counted)
    assert [each.number for each in row.attempts] == list(range(1, told + 1))
    kept = {each for each, _ in [*earlier, (last, None)]}
    assert {row.status.value, *([left.result.status.value] if left else [])} <= kept
    assert attempts.earlier == {}


def test_a_row_that_was_closed_elsewhere_keeps_its_attempts_behind_those_before(ended) -> None:
    """A worker of a job tells of its own attempts; the job before it was lost."""
    elsewhere, here = Attempts(), Attempts()
    elsewhere.add(ASKED, ended("pass"))
    closed, _ = elsewhere.close(ended("pass"))
    shifted = replace(
        closed, attempt=3, attempts=tuple(replace(each, number=each.number + 1) for each in closed.attempts)
    )
    here.add(BROKE, ended("infra"))
    row, _ = here.close(shifted)
    assert [(each.number, each.status.value) for each in row.attempts] == [
        (1, "infra"),
        (2, "pass"),
        (3, "pass"),
    ]


@pytest.mark.parametrize("state", [RunState.OUT_OF_BUDGET, RunState.INTERRUPTED])
def test_a_run_that_was_cut_short_between_attempts_tells_of_those_that_were_made(
    state: RunState, tmp_path, build, ended
) -> None:
    """Nothing measured is lost: the attempt is the row until the run goes on, and the journal has it all."""
    store = Store.open(tmp_path / "store", create=True)
    folder = store.begin(build.plan(models=("linear",)))
    earlier = EarlierAttempt(ASKED, ended("error"))
    with folder.open_journal() as journal:
        journal.append(Kind.ATTEMPT, [earlier])
        journal.append(Kind.END, [End(state, build.created_at)])
        assert list(journal.attempts()) == [earlier]
    store.finish("run-1")
    (row,) = read_table(store, "results").to_pylist()
    assert (row["status"], row["attempt"], row["attempts"]) == ("error", 1, None)


def test_what_neighbours_may_be_to_blame_for_is_no_row_when_a_run_gives_up(ended) -> None:
    """The case is not_run then; what passed beside them stands."""
    oom, well = Attempts(), Attempts()
    oom.add(ALONE, ended("oom"))
    well.add(ALONE, ended("pass"))
    key = ended("oom").case.key
    assert oom.give_up(key) is None
    given = well.give_up(key)
    assert given is not None
    assert given.status is Status.PASS
