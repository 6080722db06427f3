"""The filter language: what it finds, and what it says when it is misused."""

from __future__ import annotations

import pytest

from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.records import Status
from torchgauge.results.query import query


@pytest.fixture
def full(store, build):
    results = [
        build.result(),
        build.crashed(),
        build.result(model="bert_base", duration_s=90.0),
        build.result(model="bert[large]", status=Status.FAIL_ACCURACY, duration_s=120.0),
    ]
    build.published(store, results=results, models=("linear", "conv", "bert_base", "bert[large]"))
    return store


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], ["linear", "conv", "bert_base", "bert[large]"]),
        (["status=crash"], ["conv"]),
        (["status!=pass"], ["conv", "bert[large]"]),
        (["status=crash", "status=pass", "model!=linear"], ["conv", "bert_base"]),
        (["model=bert*"], ["bert_base", "bert[large]"]),
        (["model=bert[*"], ["bert[large]"]),
        (["model!=bert*"], ["linear", "conv"]),
        (["duration_s>60"], ["bert_base", "bert[large]"]),
        (["duration_s>=90", "duration_s<1.2e2"], ["bert_base"]),
        (["unexpected=true"], ["conv", "bert[large]"]),
        (["cause="], ["linear", "bert_base", "bert[large]"]),
        (["cause!="], ["conv"]),
        (["rmse>0", "model=conv"], []),
        (["modifiers=degraded"], ["conv"]),
        (["started_at>=2025-10-09"], ["linear", "conv", "bert_base", "bert[large]"]),
        (["started_at>2025-10-09T12:00:00+00:00"], []),
        (["reason=killed by signal 11"], ["conv"]),
    ],
)
def test_conditions_select_rows(full, conditions, expected):
    """Alternatives of one field, all fields together, patterns, order, nulls, lists and times."""
    assert query(full, conditions)["model"].tolist() == expected


def test_every_table_can_be_asked(full):
    """The table is named, and its own columns are the fields."""
    assert query(full, ["metric=latency", "median<1"], table="summaries")["n"].tolist() == [3, 3, 3]
    assert query(full, ["kind=identity", "key=torch"], table="environments")["value"].tolist() == ['"2.9.0"']


def test_an_empty_store_answers_with_no_rows(store):
    """A question to a store without runs is no error."""
    assert query(store, ["status=crash", "model=b*", "duration_s>1", "modifiers=flaky"]).empty


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("statsu=crash", "did you mean status"),
        ("status", "is not a condition"),
        ("duration_s>long", "'long' is not a value for duration_s"),
        ("unexpected=maybe", "true or false"),
        ("started_at>yesterday", "2025-01-31"),
        ("modifiers>1", "cannot be ordered"),
        ("duration_s>", "value is empty"),
    ],
)
def test_a_mistake_is_a_usage_error_with_a_hint(full, condition, message):
    """What is wrong is said, with what would have been right; nothing is evaluated."""
    with pytest.raises(UsageError, match=message):
        query(full, [condition])


def test_an_unknown_table_is_suggested(full):
    """Tables have names, and a slip of the pen finds the right one."""
    with pytest.raises(UnknownNameError, match="did you mean samples"):
        query(full, [], table="sample")
