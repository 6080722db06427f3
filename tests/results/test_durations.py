"""What a store knows of cases: how long they took, how and when they ended, and what runs take beside."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchgauge.errors import DataFileError, UsageError
from torchgauge.records import Cause, Environment, Status
from torchgauge.results.durations import read_durations_file, read_history
from torchgauge.results.journal import End, Kind, RunState
from torchgauge.results.store import Store
from torchgauge.testing import make_case, make_plan, make_result

A, B, *_ = FOUR = [make_case(name) for name in "abcd"]
HERE = {"cpu.model": "This CPU", "cpu.cores_available": 2}


def machine(model: str) -> Environment:
    """An environment on a processor of that model."""
    facts = (("cpu.cores_available", 2), ("cpu.model", model))
    return Environment(A.device.name, facts)


def add_run(store: Store, number: int, *results, on: str = "This CPU") -> None:
    """Publish run ``number``, planned at second 1000 times number, with ``results`` on a machine."""
    run_id = f"2026010{number}T000000Z-00000000"
    plan = replace(make_plan(*(each.case for each in results), run_id=run_id), created_at=1000.0 * number)
    folder = store.begin(plan)
    with folder.open_journal() as journal:
        journal.append(Kind.ENVIRONMENT, [machine(on)])
        rows = [replace(each, run_id=run_id, environment_id=machine(on).id) for each in results]
        journal.append(Kind.RESULT, rows)
        journal.append(Kind.END, [End(RunState.COMPLETE, 0.0)])
    store.finish(run_id)


def ended(case, seconds: float, at: float, status: Status = Status.PASS, **more):
    """A result that started at ``at`` and took ``seconds``."""
    return make_result(case, status, started_at=at, duration_s=seconds, **more)


@pytest.fixture
def store(tmp_path) -> Store:
    """An empty store."""
    return Store.open(tmp_path / "store", create=True)


def test_the_median_of_the_last_five_counts(store):
    """Newest first; a case that was not run took no time."""
    for number, seconds in enumerate((100.0, 1.0, 2.0, 3.0, 4.0, 50.0), start=1):
        add_run(store, number, ended(A, seconds, 1000.0 * number + 20))
    add_run(store, 7, make_result(A, Status.NOT_RUN, cause=Cause.BUDGET), ended(B, 9.0, 7030.0))
    known = read_history(store, [A.id, B.id])
    assert known.cases[A.id].seconds == (50.0, 4.0, 3.0, 2.0, 1.0)
    assert known.seconds == {A.id: 3.0, B.id: 9.0}


def test_how_and_when_a_case_ended_last(store):
    """The newest run that reached it says so."""
    add_run(store, 1, ended(A, 1.0, 1020.0), ended(B, 1.0, 1030.0))
    add_run(store, 2, ended(A, 1.0, 2020.0, Status.ERROR))
    known = read_history(store, [A.id, B.id]).cases
    assert (known[A.id].status, known[A.id].unexpected, known[A.id].at) == ("error", True, 2020.0)
    assert (known[B.id].status, known[B.id].unexpected, known[B.id].at) == ("pass", False, 1030.0)


def test_seconds_of_other_machines_count_only_where_there_are_none_of_this(store):
    """Another processor says nothing of A, which ran here, and all that is known of B."""
    add_run(store, 1, ended(A, 10.0, 1020.0))
    add_run(store, 2, ended(A, 90.0, 2020.0), ended(B, 70.0, 2110.0), on="Another CPU")
    assert read_history(store, [A.id, B.id], machine=HERE).seconds == {A.id: 10.0, B.id: 70.0}
    assert read_history(store, [A.id, B.id]).cases[A.id].seconds == (90.0, 10.0)


def test_what_a_run_takes_beside_its_rows(store):
    """20 s before the first case; 40 s from the first to the end of the last where rows say 20 s."""
    add_run(
        store,
        1,
        *(ended(case, 5.0, at) for case, at in zip(FOUR, (1020.0, 1030.0, 1040.0, 1055.0), strict=True)),
    )
    known = read_history(store, [A.id])
    assert (known.startup_s, known.wall_ratio) == (20.0, 2.0)


def test_groups_that_begin_together_do_not_make_a_run_look_short(store):
    """They are prepared at once and measured in turn: a plan after such a run had said 3 ms for 26 s."""
    add_run(store, 1, *(ended(case, 10.0, 1020.0 + number / 1e3) for number, case in enumerate(FOUR)))
    known = read_history(store, [A.id])
    assert known.wall_ratio == pytest.approx(1 / 4, rel=0.01)


def test_a_run_of_few_groups_says_nothing_of_it(store):
    """Its last group is most of it, and what came after its row is in none."""
    add_run(store, 1, ended(A, 15.0, 1020.0), ended(B, 8.0, 1058.0))
    known = read_history(store, [A.id])
    assert (known.startup_s, known.wall_ratio) == (20.0, None)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"a": 1}', '{"form": "torchgauge-durations", "seconds": {"a": "long"}}',
             '{"form": "torchgauge-durations", "seconds": {"a": -1}}',
             '{"form": "torchgauge-durations", "seconds": {"a": NaN}}'],
)  # fmt: skip
def test_what_is_no_file_of_durations_is_refused(tmp_path, text):
    """With the file's name and how to make one; so is a path with nothing at it."""
    path = tmp_path / "durations.json"
    path.write_text(text)
    with pytest.raises(DataFileError, match=r"durations\.json"):
        read_durations_file(path)
    with pytest.raises(UsageError, match="neither a store nor a file"):
        read_durations_file(tmp_path / "none")
